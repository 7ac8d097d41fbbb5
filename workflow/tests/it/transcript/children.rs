//! Transcripts of children, and of what a run sends to other workflows.

use proto::temporal::api::command::v1::{
    RequestCancelExternalWorkflowExecutionCommandAttributes, SignalExternalWorkflowExecutionCommandAttributes,
    StartChildWorkflowExecutionCommandAttributes,
};
use proto::temporal::api::common::v1::WorkflowExecution;
use proto::temporal::api::enums::v1::{
    CancelExternalWorkflowExecutionFailedCause, ParentClosePolicy, SignalExternalWorkflowExecutionFailedCause,
    StartChildWorkflowExecutionFailedCause, WorkflowIdReusePolicy,
};
use proto::temporal::api::taskqueue::v1::TaskQueue;
use uuid::Uuid;
use workflow::{ChildStartFailed, ChildStarted, EventId, ExternalAnswer, Input};

use crate::others::{
    CHILD_RUN, cancel, cancel_attributes, child_attributes, closed, ends, signal, signal_attributes, start,
    start_child, started,
};
use crate::run::{Run, SECOND, complete_workflow, span};
use crate::transcript::{Transcript, full};

#[expect(deprecated, reason = "workers still name a namespace, and old ones a build id")]
fn full_child(workflow_id: &str) -> StartChildWorkflowExecutionCommandAttributes {
    StartChildWorkflowExecutionCommandAttributes {
        namespace: "elsewhere".to_owned(),
        task_queue: Some(TaskQueue { name: "parcels".to_owned(), ..Default::default() }),
        workflow_execution_timeout: span(300 * SECOND),
        workflow_run_timeout: span(100 * SECOND),
        workflow_task_timeout: span(5 * SECOND),
        parent_close_policy: ParentClosePolicy::RequestCancel.into(),
        control: "control".to_owned(),
        workflow_id_reuse_policy: WorkflowIdReusePolicy::RejectDuplicate.into(),
        retry_policy: full::policy(2),
        cron_schedule: "* * * * *".to_owned(),
        header: full::header("of the child"),
        memo: full::memo("of the child"),
        search_attributes: full::search_attributes("\"of the child\""),
        inherit_build_id: true,
        priority: full::priority(3),
        ..child_attributes(workflow_id)
    }
}

fn starts() -> Input {
    let header = full::header("of the child");
    Input::ChildStarted(ChildStarted { initiated_event_id: EventId(5), run_id: CHILD_RUN, header })
}

#[test]
fn a_child_is_initiated_started_and_ends_in_every_way() {
    let run = Run::after(vec![full::annotated(start(full_child("parcel")))]);
    let mut transcript = Transcript::of("a child with everything", run);
    transcript.step("started", |run| run.input(starts()));
    transcript.step("started again", |run| run.input(starts()));
    for (end, name) in ends() {
        let mut run = Run::after(vec![start_child("parcel")]);
        run.input(started(5)).unwrap();
        transcript.follow(&format!("a child before {name}"), run);
        transcript.step("closed", |run| run.input(Input::ChildClosed(Box::new(closed("parcel", 5, end)))));
    }
    transcript.check("children");
}

#[test]
fn a_child_ends_while_a_workflow_task_is_at_a_worker_or_never_starts() {
    let mut transcript = Transcript::of("a child", Run::after(vec![start_child("parcel"), start_child("other")]));
    transcript.step("a workflow task goes to its worker", |run| {
        run.signal("s").unwrap();
        run.try_start_task("poll").map(|_| workflow::Reply::Done)
    });
    transcript.step("closed before its start was recorded", |run| {
        let mut closed = closed("parcel", 5, crate::others::completed());
        closed.header = full::header("of the child");
        run.input(Input::ChildClosed(Box::new(closed)))
    });
    transcript.step("closed again", |run| {
        run.input(Input::ChildClosed(Box::new(closed("parcel", 5, crate::others::completed()))))
    });
    let failed = || {
        Input::ChildStartFailed(ChildStartFailed {
            initiated_event_id: EventId(6),
            cause: StartChildWorkflowExecutionFailedCause::NamespaceNotFound,
            control: "control".to_owned(),
        })
    };
    transcript.step("the other one cannot be started", |run| run.input(failed()));
    transcript.step("it cannot be started, again", |run| run.input(failed()));
    transcript.step("the workflow task completes", |run| run.try_complete_task(Vec::new()));
    transcript.follow("a parent that closes before its child", Run::after(vec![start_child("parcel")]));
    transcript.step("signaled", |run| run.signal("s"));
    transcript.step("closes", |run| {
        run.start_task();
        run.try_complete_task(vec![complete_workflow()])
    });
    transcript.check("buffered_children");
}

#[expect(deprecated, reason = "workers still name a namespace")]
fn full_signal(workflow_id: &str) -> SignalExternalWorkflowExecutionCommandAttributes {
    SignalExternalWorkflowExecutionCommandAttributes {
        namespace: "elsewhere".to_owned(),
        execution: Some(full::other_execution(workflow_id)),
        control: "control".to_owned(),
        child_workflow_only: true,
        header: full::header("of the signal"),
        ..signal_attributes(workflow_id)
    }
}

#[expect(deprecated, reason = "workers still name a namespace")]
fn full_cancel(workflow_id: &str) -> RequestCancelExternalWorkflowExecutionCommandAttributes {
    RequestCancelExternalWorkflowExecutionCommandAttributes {
        namespace: "elsewhere".to_owned(),
        run_id: Uuid::from_u128(60).to_string(),
        control: "control".to_owned(),
        child_workflow_only: true,
        ..cancel_attributes(workflow_id)
    }
}

fn answer(initiated_event_id: i64) -> ExternalAnswer {
    ExternalAnswer {
        initiated_event_id: EventId(initiated_event_id),
        namespace: "elsewhere".to_owned(),
        execution: WorkflowExecution { workflow_id: "other".to_owned(), run_id: Uuid::from_u128(60).to_string() },
        control: "control".to_owned(),
    }
}

#[test]
fn what_is_sent_to_one_workflow_arrives_in_order() {
    let commands = vec![
        full::annotated(signal(full_signal("other"))),
        full::annotated(cancel(full_cancel("other"))),
        signal(full_signal("other")),
        cancel(full_cancel("other")),
        signal(signal_attributes("third")),
    ];
    let mut transcript = Transcript::of("signals and cancel requests", Run::after(commands));
    transcript.step("signaled", |run| run.input(Input::ExternalSignaled(answer(5))));
    transcript.step("signaled again", |run| run.input(Input::ExternalSignaled(answer(5))));
    transcript.step("asked to cancel", |run| run.input(Input::ExternalCancelRequested(answer(6))));
    transcript
        .step("a workflow task goes to its worker", |run| run.try_start_task("poll").map(|_| workflow::Reply::Done));
    let cause = SignalExternalWorkflowExecutionFailedCause::NamespaceNotFound;
    transcript.step("cannot be signaled", |run| run.input(Input::ExternalSignalFailed(answer(7), cause)));
    transcript.step("cannot be signaled, again", |run| run.input(Input::ExternalSignalFailed(answer(7), cause)));
    let cause = CancelExternalWorkflowExecutionFailedCause::ExternalWorkflowExecutionNotFound;
    transcript.step("cannot be asked to cancel", |run| run.input(Input::ExternalCancelFailed(answer(8), cause)));
    transcript.step("cannot be asked to cancel, again", |run| run.input(Input::ExternalCancelFailed(answer(8), cause)));
    transcript.step("the workflow task completes", |run| run.try_complete_task(Vec::new()));
    transcript.step("the third workflow is signaled", |run| run.input(Input::ExternalSignaled(answer(9))));
    transcript.check("external_requests");
}
