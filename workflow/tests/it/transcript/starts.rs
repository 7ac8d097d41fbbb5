//! Transcripts of starts, signals and the first workflow task.

use workflow::{Input, Start};

use crate::others::parent;
use crate::run::{SECOND, plain_start};
use crate::transcript::{Transcript, full};

#[test]
fn a_start_records_all_that_it_was_given() {
    let mut transcript = Transcript::started("start, delayed, with a signal", full::start());
    transcript.step("a plain signal does not begin it", |run| run.input(Input::Signal(full::signal("early"))));
    transcript.step("the same signal again", |run| run.input(Input::Signal(full::signal("early"))));
    transcript.step("its first workflow task is asked for too early", |run| run.input(Input::ScheduleFirstTask));
    transcript.step("its first workflow task is due", |run| run.fire_next_timer());
    transcript.step("a signal", |run| run.input(Input::Signal(full::signal("later"))));
    transcript.check("starts");
}

#[test]
fn a_child_waits_for_its_parent_and_an_eager_start_for_nobody() {
    let start = Start { parent: Some(parent()), is_eager: true, ..plain_start() };
    let mut transcript = Transcript::started("start of a child", start);
    transcript.step("a signal from its parent only", |run| {
        run.input(Input::Signal(workflow::Signal { sender: full::sender(true), ..full::signal("s") }))
    });
    transcript.step("a signal from another workflow that means its own child", |run| {
        let mut signal = full::signal("t");
        signal.sender = full::sender(true)
            .map(|sender| workflow::Sender { execution: full::other_execution("stranger"), ..sender });
        run.input(Input::Signal(signal))
    });
    transcript.step("its parent has recorded its start", |run| run.input(Input::ScheduleFirstTask));
    let eager = Start { is_eager: true, cron_schedule: String::new(), ..plain_start() };
    transcript.follow("eager start", crate::run::Run::started_as(eager));
    transcript.step("its first workflow task is asked for again", |run| run.input(Input::ScheduleFirstTask));
    let cron = Start { cron_schedule: "*/5 * * * *".to_owned(), is_eager: true, ..plain_start() };
    transcript.follow("start by a cron schedule", crate::run::Run::started_as(cron));
    transcript.step("it is signaled and begins", |run| run.input(Input::SignalAndBegin(full::signal("s"))));
    let long = Start { execution_timeout: Some(20 * SECOND), task_timeout: 500 * SECOND, ..plain_start() };
    transcript.follow("timeouts that bound one another", crate::run::Run::started_as(long));
    transcript.check("children_and_eager_starts");
}
