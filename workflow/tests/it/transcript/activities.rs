//! Transcripts of activities: scheduled, started, alive, and each of their ends.

use proto::temporal::api::command::v1::ScheduleActivityTaskCommandAttributes;
use proto::temporal::api::failure::v1::ApplicationFailureInfo;
use proto::temporal::api::failure::v1::Failure;
use proto::temporal::api::failure::v1::failure::FailureInfo;
use workflow::{ActivityRef, CancelActivity, CompleteActivity, FailActivity, Heartbeat, Input, Rejection, Reply};

use crate::run::{Run, SECOND, activity_attributes, cancel_activity, failure, never_retried, payloads, schedule, span};
use crate::transcript::{Transcript, full};

fn full_attributes(activity_id: &str) -> ScheduleActivityTaskCommandAttributes {
    ScheduleActivityTaskCommandAttributes {
        activity_id: activity_id.to_owned(),
        header: full::header("of the activity"),
        schedule_to_close_timeout: span(60 * SECOND),
        schedule_to_start_timeout: span(20 * SECOND),
        start_to_close_timeout: span(10 * SECOND),
        heartbeat_timeout: span(3 * SECOND),
        retry_policy: full::policy(3),
        use_workflow_build_id: true,
        priority: full::priority(4),
        ..activity_attributes()
    }
}

fn scheduled() -> Transcript {
    let run = Run::after(vec![full::annotated(schedule(full_attributes("pay")))]);
    Transcript::of("an activity with everything", run)
}

fn heartbeat(run: &mut Run, text: &'static str) -> Result<Reply, Rejection> {
    let activity = run.activity_ref(5);
    run.input(Input::Heartbeat(Heartbeat { activity, details: Some(payloads(text)), identity: "w2".to_owned() }))
}

fn fail(run: &mut Run, failure: Failure, details: Option<&'static str>) -> Result<Reply, Rejection> {
    let activity = run.activity_ref(5);
    run.input(Input::FailActivity(FailActivity {
        activity,
        failure: Some(failure),
        last_heartbeat_details: details.map(payloads),
        identity: "w3".to_owned(),
    }))
}

#[test]
fn an_activity_is_retried_until_it_completes() {
    let mut transcript = scheduled();
    transcript.step("started", |run| run.later(SECOND).start_activity(5));
    transcript.step("started again by the same poll", |run| run.later(SECOND).start_activity(5));
    transcript.step("alive", |run| heartbeat(run, "one"));
    transcript.step("fails", |run| fail(run.later(SECOND), failure("first"), Some("two")));
    transcript.step("its backoff is over", |run| run.fire_next_timer());
    transcript.step("a stale timer", |run| run.fire_next_timer());
    transcript.step("started", |run| run.start_activity(5));
    transcript.step("completed", |run| {
        let activity = run.activity_ref(5);
        let (result, identity) = (Some(payloads("out")), "w4".to_owned());
        run.later(SECOND).input(Input::CompleteActivity(CompleteActivity { activity, result, identity }))
    });
    transcript.check("retried_activity");
}

#[test]
fn an_activity_fails_for_good() {
    let mut transcript = scheduled();
    transcript.step("started", |run| run.start_activity(5));
    let delayed =
        ApplicationFailureInfo { r#type: "Slow".to_owned(), next_retry_delay: span(4 * SECOND), ..Default::default() };
    let delayed =
        Failure { failure_info: Some(FailureInfo::ApplicationFailureInfo(delayed)), ..failure("asks for a delay") };
    transcript.step("asks for a delay", |run| fail(run, delayed, None));
    transcript.step("its backoff is over", |run| run.fire_next_timer());
    transcript.step("started", |run| run.start_activity(5));
    let fatal = ApplicationFailureInfo { r#type: "Fatal".to_owned(), ..Default::default() };
    let fatal = Failure { failure_info: Some(FailureInfo::ApplicationFailureInfo(fatal)), ..failure("fatal") };
    transcript.step("is not retryable", |run| fail(run, fatal, Some("three")));
    transcript.check("failed_activity");
}

#[test]
fn every_deadline_of_an_activity_ends_it() {
    let mut transcript = scheduled();
    transcript.step("no worker takes it", |run| run.fire_next_timer());
    transcript.follow("an activity whose worker is silent", {
        let mut run = scheduled().run;
        run.start_activity(5).unwrap();
        run
    });
    transcript.step("alive", |run| heartbeat(run.later(2 * SECOND), "one"));
    for _ in 0..12 {
        if transcript.run.state.activities.is_empty() {
            break;
        }
        transcript.step("the next timer", |run| run.fire_next_timer());
        if transcript.run.state.activities.get(5).is_some_and(|activity| activity.unrecorded.started.is_none()) {
            transcript.step("started", |run| run.start_activity(5));
        }
    }
    transcript.follow("a slow activity", {
        let attributes =
            ScheduleActivityTaskCommandAttributes { retry_policy: never_retried(), ..activity_attributes() };
        let mut run = Run::after(vec![schedule(attributes)]);
        run.start_activity(5).unwrap();
        run
    });
    transcript.step("its worker takes too long", |run| run.fire_next_timer());
    transcript.check("timed_out_activities");
}

#[test]
fn an_activity_is_canceled() {
    let mut transcript = scheduled();
    transcript.step("started", |run| run.start_activity(5));
    transcript.step("signaled", |run| run.signal("s"));
    transcript.step("its worker gives up unasked", |run| {
        let (activity, details) = (run.activity_ref(5), Some(payloads("stopped")));
        run.input(Input::CancelActivity(CancelActivity { activity, details, identity: "w5".to_owned() }))
    });
    transcript.step("the workflow asks for its end", |run| {
        run.start_task();
        run.try_complete_task(vec![full::annotated(cancel_activity(5))])
    });
    transcript.step("its worker sees that", |run| heartbeat(run, "two"));
    transcript.step("its worker stops", |run| {
        let (activity, details) = (run.activity_ref(5), Some(payloads("stopped")));
        run.input(Input::CancelActivity(CancelActivity { activity, details, identity: "w5".to_owned() }))
    });
    transcript.follow("an activity that no worker has", scheduled().run);
    transcript.step("signaled", |run| run.signal("s"));
    transcript.step("the workflow asks for its end", |run| {
        run.start_task();
        run.try_complete_task(vec![cancel_activity(5)])
    });
    transcript.check("canceled_activities");
}

#[test]
fn an_activity_is_completed_by_its_id_and_one_is_started_at_once() {
    let mut transcript = scheduled();
    transcript.step("completed by its id, though no worker had it", |run| {
        let (activity, identity) = (ActivityRef::Id("pay".to_owned()), "operator".to_owned());
        run.input(Input::CompleteActivity(CompleteActivity { activity, result: Some(payloads("out")), identity }))
    });
    transcript.follow("a workflow task", Run::working());
    transcript.step("two activities are started at once", |run| {
        let eager = |id: &str| {
            schedule(ScheduleActivityTaskCommandAttributes { request_eager_execution: true, ..full_attributes(id) })
        };
        run.try_complete_task(vec![eager("a"), eager("b")])
    });
    transcript.step("one completes while a workflow task is at a worker", |run| {
        run.signal("s").unwrap();
        run.start_task();
        run.complete_activity(6)
    });
    transcript.step("it is over, though that is not recorded", |run| run.start_activity(6));
    transcript.step("the workflow task completes", |run| run.try_complete_task(Vec::new()));
    transcript.check("eager_activities");
}
