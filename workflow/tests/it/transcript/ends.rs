//! Transcripts of the ends of runs, and of what a workflow records about itself.

use std::collections::HashMap;

use proto::temporal::api::command::v1::command::Attributes;
use proto::temporal::api::command::v1::{
    CancelWorkflowExecutionCommandAttributes, Command, ModifyWorkflowPropertiesCommandAttributes,
    RecordMarkerCommandAttributes, UpsertWorkflowSearchAttributesCommandAttributes,
};
use proto::temporal::api::enums::v1::CommandType;
use workflow::{Input, RequestCancel, RunId, Start, Terminate};

use crate::others::parent;
use crate::run::{
    Run, SECOND, cancel_timer, command, complete_workflow, fail_workflow, failure, payloads, plain_start,
    schedule_activity, start_timer,
};
use crate::transcript::{Transcript, full};

fn request_cancel(first_run_id: Option<RunId>) -> Input {
    Input::RequestCancel(RequestCancel {
        reason: "never mind".to_owned(),
        identity: "client".to_owned(),
        request_id: "cancel-1".to_owned(),
        first_run_id,
        links: full::links("canceler"),
        sender: full::sender(false),
    })
}

fn terminate() -> Input {
    Input::Terminate(Terminate {
        reason: "enough".to_owned(),
        details: Some(payloads("details")),
        identity: "client".to_owned(),
        first_run_id: None,
        links: full::links("terminator"),
        sender: full::sender(false),
    })
}

fn properties() -> Vec<Command> {
    let marker = RecordMarkerCommandAttributes {
        marker_name: "m".to_owned(),
        details: HashMap::from([("k".to_owned(), payloads("details"))]),
        header: full::header("of the marker"),
        failure: Some(failure("local")),
    };
    let upsert =
        UpsertWorkflowSearchAttributesCommandAttributes { search_attributes: full::search_attributes("\"new\"") };
    let modify = ModifyWorkflowPropertiesCommandAttributes { upserted_memo: full::memo("new") };
    vec![
        full::annotated(command(CommandType::RecordMarker, Attributes::RecordMarkerCommandAttributes(marker))),
        full::annotated(command(
            CommandType::UpsertWorkflowSearchAttributes,
            Attributes::UpsertWorkflowSearchAttributesCommandAttributes(upsert),
        )),
        full::annotated(command(
            CommandType::ModifyWorkflowProperties,
            Attributes::ModifyWorkflowPropertiesCommandAttributes(modify),
        )),
    ]
}

#[test]
fn a_workflow_records_timers_and_properties_and_completes() {
    let run = Run::started_as(Start { memo: full::memo("old"), parent: Some(parent()), ..plain_start() });
    let mut transcript = Transcript::of("a child", run);
    transcript.step("begins", |run| run.input(Input::ScheduleFirstTask));
    transcript.step("timers and properties", |run| {
        run.start_task();
        let timers = [full::annotated(start_timer("t", 3 * SECOND)), start_timer("u", 2 * SECOND)];
        run.try_complete_task(timers.into_iter().chain(properties()).collect())
    });
    transcript.step("the second timer fires", |run| run.fire_next_timer());
    transcript.step("the first timer fires at a worker and is canceled", |run| {
        run.start_task();
        run.later(5 * SECOND)
            .input(Input::Due(workflow::TimerTask::UserTimer { started_event_id: workflow::EventId(5), version: 7 }))
    });
    transcript.step("it is canceled, and the workflow completes", |run| {
        run.try_complete_task(vec![full::annotated(cancel_timer("t")), full::annotated(complete_workflow())])
    });
    transcript.step("a signal to a closed run", |run| run.signal("s"));
    transcript.step("a cancel request to a closed run", |run| run.input(request_cancel(None)));
    transcript.step("it is deleted", |run| run.input(Input::Delete));
    transcript.check("completed_run");
}

#[test]
fn a_run_is_canceled_terminated_or_deleted() {
    let mut transcript = Transcript::of("an idle run", Run::idle());
    transcript.step("a cancel request for another chain", |run| {
        run.input(request_cancel(Some(RunId(uuid::Uuid::from_u128(99)))))
    });
    transcript.step("a cancel request", |run| run.input(request_cancel(None)));
    transcript.step("the same cancel request", |run| run.input(request_cancel(None)));
    transcript.step("canceled", |run| {
        run.start_task();
        let details = CancelWorkflowExecutionCommandAttributes { details: Some(payloads("details")) };
        let cancel = Attributes::CancelWorkflowExecutionCommandAttributes(details);
        run.try_complete_task(vec![full::annotated(command(CommandType::CancelWorkflowExecution, cancel))])
    });
    transcript.follow("a run at a worker", Run::working());
    transcript.step("signaled", |run| run.input(Input::Signal(full::signal("s"))));
    transcript.step("terminated", |run| run.input(terminate()));
    transcript.step("terminated again", |run| run.input(terminate()));
    transcript.follow("an update at a worker", Run::updating("u"));
    transcript.step("terminated", |run| run.input(terminate()));
    transcript.follow("a scheduled update", {
        let mut run = Run::idle();
        run.admit("u").unwrap();
        run
    });
    transcript.step("deleted", |run| run.input(Input::Delete));
    transcript.step("another run takes over", |run| run.input(Input::LeaveTo(run.facts.new_run_id)));
    transcript.check("canceled_and_terminated_runs");
}

#[test]
fn a_run_fails_or_outgrows_its_limits() {
    let failing = |run: &mut Run| {
        run.start_task();
        run.try_complete_task(vec![full::annotated(fail_workflow(failure("boom")))])
    };
    let mut transcript = Transcript::started("start", plain_start());
    transcript.step("fails", failing);
    transcript.follow("a run with news", Run::working());
    transcript.step("signaled", |run| run.input(Input::Signal(full::signal("s"))));
    transcript.step("cannot close", |run| run.try_complete_task(vec![complete_workflow()]));
    transcript
        .step("the next workflow task is started", |run| run.try_start_task("poll").map(|_| workflow::Reply::Done));
    transcript.step("a signal must wait for it", |run| run.input(Input::Signal(full::signal("t"))));
    transcript.follow("a run with a small limit", Run::idle());
    transcript.step("a transaction is too large", |run| {
        run.facts.limits.transaction_size = 40;
        run.signal("s")
    });
    transcript.follow("a run with a long history", Run::idle());
    transcript.step("its history is too large", |run| {
        run.facts.limits.history_size = 10;
        run.signal("s")
    });
    transcript.follow("a run whose payload is too large", Run::working());
    transcript.step("terminated for it", |run| {
        run.facts.limits.blob_size = 3;
        run.try_complete_task(vec![schedule_activity("a")])
    });
    transcript.check("failed_runs");
}
