//! Transcripts of what operators do to activities and runs.

use proto::temporal::api::activity::v1::ActivityOptions;
use proto::temporal::api::taskqueue::v1::TaskQueue;
use workflow::{
    ActivityTarget, Heartbeat, Input, Jitter, Join, OptionsChange, PauseActivity, PauseRequest, Rejection, Reply,
    ResetActivity, UnpauseActivity, UpdateActivity, UpdateOptions,
};

use crate::run::{Run, SECOND, activity_attributes, failure, payloads, schedule, schedule_activity, span, start_timer};
use crate::transcript::{Transcript, full};

const JITTER: Jitter = Jitter { span: SECOND, seed: 9 };

fn pause(run: &mut Run, target: ActivityTarget) -> Result<Reply, Rejection> {
    let (identity, reason, request_id) = ("operator".to_owned(), "too hot".to_owned(), "p".to_owned());
    run.input(Input::PauseActivity(PauseActivity { target, identity, reason, request_id }))
}

fn unpause(run: &mut Run, resets: bool) -> Result<Reply, Rejection> {
    let (target, jitter) = (ActivityTarget::All, JITTER);
    run.input(Input::UnpauseActivity(UnpauseActivity {
        target,
        reset_attempts: resets,
        reset_heartbeat: resets,
        jitter,
    }))
}

fn reset(run: &mut Run, keep_paused: bool) -> Result<Reply, Rejection> {
    run.input(Input::ResetActivity(ResetActivity {
        target: ActivityTarget::Type("Pay".to_owned()),
        reset_heartbeat: true,
        keep_paused,
        restore_original_options: true,
        jitter: JITTER,
    }))
}

/// An activity that failed once after a heartbeat, and waits.
fn failed_once() -> Run {
    let mut run = Run::after(vec![schedule(activity_attributes())]);
    run.start_activity(5).unwrap();
    beat(&mut run).unwrap();
    run.later(SECOND);
    run.fail_activity(5, failure("first")).unwrap();
    run.later(SECOND / 2);
    run
}

fn beat(run: &mut Run) -> Result<Reply, Rejection> {
    let activity = run.activity_ref(5);
    run.input(Input::Heartbeat(Heartbeat { activity, details: Some(payloads("one")), identity: "w2".to_owned() }))
}

fn options() -> ActivityOptions {
    ActivityOptions {
        task_queue: Some(TaskQueue { name: "elsewhere".to_owned(), ..Default::default() }),
        schedule_to_close_timeout: span(100 * SECOND),
        schedule_to_start_timeout: span(30 * SECOND),
        start_to_close_timeout: span(20 * SECOND),
        heartbeat_timeout: span(5 * SECOND),
        retry_policy: full::policy(9),
        priority: full::priority(5),
        ..Default::default()
    }
}

fn update(run: &mut Run, fields: &[&str]) -> Result<Reply, Rejection> {
    let fields = fields.iter().map(|field| (*field).to_owned()).collect();
    let change = OptionsChange::Merge { options: Box::new(options()), fields };
    run.input(Input::UpdateActivity(Box::new(UpdateActivity { target: ActivityTarget::All, change })))
}

#[test]
fn activities_are_paused_and_unpaused() {
    let mut transcript = Transcript::of("an activity that failed once", failed_once());
    transcript.step("paused", |run| pause(run, ActivityTarget::Id("pay".to_owned())));
    transcript.step("paused again", |run| pause(run, ActivityTarget::All));
    transcript.step("unpaused", |run| unpause(run.later(SECOND), false));
    transcript.step("its moment comes", |run| run.fire_next_timer());
    transcript.step("started", |run| run.start_activity(5));
    transcript.step("paused at its worker", |run| pause(run, ActivityTarget::All));
    transcript.step("its worker sees that", beat);
    transcript.step("fails", |run| run.fail_activity(5, failure("second")));
    transcript.step("unpaused with another first attempt", |run| unpause(run.later(SECOND), true));
    transcript.step("unpaused though it is not paused", |run| unpause(run, true));
    transcript.step("no such activity", |run| pause(run, ActivityTarget::Type("Nothing".to_owned())));
    transcript.check("paused_activities");
}

#[test]
fn activities_are_reset() {
    let mut transcript = Transcript::of("an activity that failed once", failed_once());
    transcript.step("reset while it waits", |run| reset(run, false));
    transcript.step("its moment comes", |run| run.fire_next_timer());
    transcript.step("started", |run| run.start_activity(5));
    transcript.step("alive", beat);
    transcript.step("reset at its worker", |run| reset(run, false));
    transcript.step("its worker sees that", beat);
    transcript.step("fails", |run| run.fail_activity(5, failure("second")));
    transcript.step("paused", |run| pause(run, ActivityTarget::All));
    transcript.step("reset, still paused", |run| reset(run, true));
    transcript.step("reset and unpaused", |run| reset(run, false));
    transcript.check("reset_activities");
}

#[test]
fn activities_get_other_options() {
    let mut transcript = Transcript::of("an activity that failed once", failed_once());
    for field in [
        "taskQueue.name",
        "scheduleToCloseTimeout",
        "scheduleToStartTimeout",
        "startToCloseTimeout",
        "heartbeatTimeout",
        "retryPolicy.initialInterval",
        "retryPolicy.backoffCoefficient",
        "retryPolicy.maximumInterval",
        "retryPolicy.maximumAttempts",
        "priority.priorityKey",
        "priority.fairnessKey",
        "priority.fairnessWeight",
    ] {
        transcript.step(field, |run| update(run, &[field]));
    }
    transcript.step("started", |run| {
        let activity = run.activity(5).unrecorded.clone();
        run.facts.now = activity.attempt_scheduled_at;
        run.start_activity(5)
    });
    transcript.step("all of the policy and of the priority", |run| update(run, &["retryPolicy", "priority"]));
    transcript.step("back to what it was scheduled with", |run| {
        let (target, change) = (ActivityTarget::All, OptionsChange::Restore);
        run.input(Input::UpdateActivity(Box::new(UpdateActivity { target, change })))
    });
    transcript.check("options_of_activities");
}

#[test]
fn a_run_is_paused_and_unpaused() {
    let request = |request_id: &str| PauseRequest {
        identity: "operator".to_owned(),
        reason: "deploy".to_owned(),
        request_id: request_id.to_owned(),
    };
    let mut run = Run::after(vec![schedule_activity("waits"), schedule_activity("runs"), start_timer("t", SECOND)]);
    run.start_activity(6).unwrap();
    run.signal("s").unwrap();
    let mut transcript = Transcript::of("a run with a scheduled workflow task", run);
    transcript.step("paused", |run| run.input(Input::Pause(request("p"))));
    transcript.step("paused again", |run| run.input(Input::Pause(request("p"))));
    transcript.step("paused by another request", |run| run.input(Input::Pause(request("q"))));
    transcript.step("an activity fails", |run| run.fail_activity(6, failure("first")));
    transcript.step("the timer fires", |run| run.fire_next_timer());
    transcript.step("unpaused", |run| run.input(Input::Unpause(request("u"))));
    transcript.step("unpaused again", |run| run.input(Input::Unpause(request("u"))));
    transcript.step("paused while a workflow task is at a worker", |run| {
        run.start_task();
        run.input(Input::Pause(request("r")))
    });
    transcript.step("the workflow task completes", |run| run.try_complete_task(vec![schedule_activity("late")]));
    transcript.step("unpaused", |run| run.input(Input::Unpause(request("v"))));
    transcript.check("paused_runs");
}

#[test]
fn starts_join_a_run_and_its_priority_changes() {
    let join = |request_id: &str| {
        let callbacks = vec![full::callback("http://joined")];
        Input::Join(Join { request_id: request_id.to_owned(), callbacks, links: full::links("joiner") })
    };
    let priority = |fields: &[&str]| {
        let fields = fields.iter().map(|field| (*field).to_owned()).collect();
        let (identity, priority) = ("operator".to_owned(), full::priority(5));
        Input::UpdateOptions(UpdateOptions { identity, priority, fields })
    };
    let mut transcript = Transcript::of("an idle run", Run::idle());
    transcript.step("a start joins", |run| run.input(join("j")));
    transcript.step("the same start again", |run| run.input(join("j")));
    transcript.step("another one joins, without a request id", |run| run.input(join("")));
    transcript.step("another priority key", |run| run.input(priority(&["priority.priorityKey"])));
    transcript.step("the same again", |run| run.input(priority(&["priority.priorityKey"])));
    transcript.step("another fairness key", |run| run.input(priority(&["priority.fairnessKey"])));
    transcript.step("another fairness weight", |run| run.input(priority(&["priority.fairnessWeight"])));
    transcript.step("joined while a workflow task is at a worker", |run| {
        run.signal("s").unwrap();
        run.start_task();
        run.input(join("k"))
    });
    transcript.step("the same start again", |run| run.input(join("k")));
    transcript.step("its sticky queue is left", |run| {
        run.state.unrecorded.sticky = crate::run::sticky();
        run.input(Input::ResetSticky)
    });
    transcript.step("its sticky queue is left again", |run| run.input(Input::ResetSticky));
    transcript.check("joined_runs");
}
