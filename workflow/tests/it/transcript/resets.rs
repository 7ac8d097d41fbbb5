//! Transcripts of resets: what the new run has pending, and what it is given again.

use workflow::{ChildStarted, EventId, Input, Join, Start, UpdateOptions};

use crate::answers::{acceptance, response};
use crate::others::{self, CHILD_RUN, start_child};
use crate::run::{Run, SECOND, complete_workflow, plain_start, schedule_activity, start_timer};
use crate::transcript::{Transcript, full};

/// A run with one of each pending thing, and its workflow task at a worker.
fn eventful() -> Run {
    let mut run = Run::started_as(Start {
        run_timeout: Some(600 * SECOND),
        execution_timeout: Some(900 * SECOND),
        schedule_id: Some("nightly".into()),
        ..plain_start()
    });
    run.start_task();
    run.complete_task(vec![
        schedule_activity("a"),
        schedule_activity("b"),
        start_timer("t", 60 * SECOND),
        start_child("c"),
        others::signal(others::signal_attributes("other")),
        others::cancel(others::cancel_attributes("other")),
    ]);
    run.start_activity(6).unwrap();
    run.signal("before").unwrap();
    run.start_task();
    run
}

#[test]
fn a_reset_run_has_what_was_pending_and_is_given_what_came_later() {
    let mut base = eventful();
    let point = base.state.next_event_id.0;
    base.complete_task(Vec::new());
    base.input(Input::Signal(full::signal("after"))).unwrap();
    let header = full::header("of the child");
    let started = ChildStarted { initiated_event_id: EventId(8), run_id: CHILD_RUN, header };
    base.input(Input::ChildStarted(started)).unwrap();
    let callbacks = vec![full::callback("http://joined")];
    let join = Join { request_id: "j".to_owned(), callbacks, links: full::links("joiner") };
    base.input(Input::Join(join)).unwrap();
    base.admit("u").unwrap();
    base.start_task();
    base.answer(vec![acceptance("u"), response("u")]).unwrap();
    base.input(Input::ChildClosed(Box::new(others::closed("c", 8, others::completed())))).unwrap();
    base.later(5 * SECOND);
    let change = UpdateOptions {
        identity: "operator".to_owned(),
        priority: full::priority(1),
        fields: vec!["priority".to_owned()],
    };
    let run = base.reset_with(point, vec![change]).unwrap();
    let mut transcript = Transcript::of("the run that it was reset to", run);
    transcript.step("its workflow task is started", |run| {
        run.try_start_task("poll").map(|task| workflow::Reply::WorkflowTaskStarted(Box::new(task)))
    });
    transcript.step("completes", |run| run.try_complete_task(vec![complete_workflow()]));
    transcript.check("reset_run");
}

#[test]
fn a_reset_before_the_first_workflow_task_was_started() {
    let mut base = Run::started();
    base.start_task();
    base.complete_task(vec![complete_workflow()]);
    base.later(SECOND);
    let run = base.reset(3).unwrap();
    Transcript::of("reset to the first workflow task", run).check("early_reset");
}
