//! How long a transition of a small run takes: `cargo bench -p workflow`. Prints the median of each kind, and of all.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
#![expect(clippy::print_stdout, reason = "and tells what it read")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use workflow::{Decision, EventId, ExecutionState, Facts, Heartbeat, Input};

#[path = "../tests/it/run.rs"]
#[expect(dead_code, clippy::unwrap_used, reason = "written for the tests, which use all of it")]
mod run;

use run::{Run, complete_workflow, payloads, schedule_activity, signal, start_timer};

/// As in the server: what a transition costs is above all what it allocates.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What is measured at a time: a single transition is too short for the clock.
const TRANSITIONS: u32 = 100;
const SAMPLES: usize = 301;
/// The core's budget.
const MEDIAN_MAX: Duration = Duration::from_micros(5);

fn main() {
    let mut all = Vec::new();
    for (name, run, input) in cases() {
        let mut samples: Vec<Duration> = (0..SAMPLES).map(|_| sample(&run.state, &input, &run.facts)).collect();
        samples.sort();
        println!("{name:<32} {:>8.2} µs", samples[SAMPLES / 2].as_secs_f64() * 1e6);
        all.extend(samples);
    }
    all.sort();
    let median = all[all.len() / 2];
    println!("{:<32} {:>8.2} µs, of {MEDIAN_MAX:?} at most", "median of all", median.as_secs_f64() * 1e6);
}

/// The mean of some transitions of the same state by the same input.
fn sample(state: &ExecutionState, input: &Input, facts: &Facts) -> Duration {
    let inputs: Vec<Input> = (0..TRANSITIONS).map(|_| input.clone()).collect();
    let began_at = Instant::now();
    for input in inputs {
        let decision = workflow::transition(black_box(state), input, facts);
        assert!(matches!(black_box(decision), Ok(Decision::Changed(_))), "a transition that changes nothing");
    }
    began_at.elapsed() / TRANSITIONS
}

fn cases() -> Vec<(&'static str, Run, Input)> {
    let work = || vec![schedule_activity("pay"), start_timer("later", Duration::from_secs(60))];
    let mut cases = Vec::new();
    cases.push(("signal", Run::idle(), Input::Signal(signal("request"))));
    let mut busy = Run::after(work());
    for number in 0..9000 {
        let signal = Input::Signal(signal(&format!("request-{number}")));
        if let Ok(Decision::Changed(next)) = workflow::transition(&busy.state, signal, &busy.facts) {
            busy.state = next.state;
        }
    }
    cases.push(("signal, after 9000 others", busy, Input::Signal(signal("request"))));
    let started = Run::started();
    let scheduled = started.scheduled().clone();
    let start = workflow::StartWorkflowTask {
        scheduled_event_id: scheduled.event_id,
        request_id: "poll".to_owned(),
        identity: "worker".to_owned(),
        task_queue: scheduled.task_queue,
        updates: Vec::new(),
        worker_version: None,
    };
    cases.push(("start of a workflow task", started, Input::StartWorkflowTask(start)));
    let working = Run::working();
    let completion = Input::CompleteWorkflowTask(Box::new(working.completion(work())));
    cases.push(("a workflow task with two commands", working, completion));
    let working = Run::working();
    let completion = Input::CompleteWorkflowTask(Box::new(working.completion(vec![complete_workflow()])));
    cases.push(("completion of the workflow", working, completion));
    let scheduled = Run::after(work());
    let start = workflow::StartActivity {
        scheduled_event_id: EventId(5),
        attempt: 1,
        stamp: 0,
        request_id: "poll".to_owned(),
        identity: "worker".to_owned(),
    };
    cases.push(("start of an activity", scheduled, Input::StartActivity(start)));
    let mut at_work = Run::after(work());
    at_work.start_activity(5).expect("a worker takes it");
    let activity = at_work.activity_ref(5);
    let beat = Heartbeat { activity: activity.clone(), details: Some(payloads("half")), identity: "worker".to_owned() };
    cases.push(("heartbeat", at_work, Input::Heartbeat(beat)));
    let mut at_work = Run::after(work());
    at_work.start_activity(5).expect("a worker takes it");
    let completed =
        workflow::CompleteActivity { activity, result: Some(payloads("out")), identity: "worker".to_owned() };
    cases.push(("completion of an activity", at_work, Input::CompleteActivity(completed)));
    cases
}
