//! Queries over gRPC: which way each one goes, what it must see, and how it fails.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use proto::temporal::api::command::v1::command::Attributes;
use proto::temporal::api::command::v1::{CancelTimerCommandAttributes, Command};
use proto::temporal::api::enums::v1::{
    CommandType, QueryRejectCondition, QueryResultType, WorkflowExecutionStatus, WorkflowTaskFailedCause,
};
use proto::temporal::api::errordetails::v1::{QueryFailedFailure, ResourceExhaustedFailure, WorkflowNotReadyFailure};
use proto::temporal::api::failure::v1::Failure;
use proto::temporal::api::query::v1::WorkflowQueryResult;
use proto::temporal::api::workflowservice::v1 as public;
use tokio::task::JoinHandle;
use tonic::{Code, Status};

use crate::by_hand::{ByHand, answers};
use crate::commands::{finish, text};
use crate::given::{NAMESPACE, a_node, a_node_in, detail, refused, register};

type Answer = Result<public::QueryWorkflowResponse, Status>;

/// More than one event of 2 MiB.
const TOO_LARGE: usize = (2 << 20) + 1;

fn asked(run: &ByHand) -> JoinHandle<Answer> {
    let run = run.clone();
    tokio::spawn(async move { run.query("state").await })
}

/// A query that is in the buffer: of two that are asked at once the other one finds no place there.
async fn buffered(run: &ByHand) -> JoinHandle<Answer> {
    let full = "consistent query buffer is full, this may be caused by too many queries and workflow not able to \
                process query fast enough";
    let (mut one, mut other) = (asked(run), asked(run));
    let (refusal, waiting) = tokio::select! {
        refusal = &mut one => (refusal, other),
        refusal = &mut other => (refusal, one),
    };
    let status = refusal.expect("a query does not panic").expect_err("a task is under way");
    assert_eq!((status.code(), status.message()), (Code::ResourceExhausted, full));
    assert!(detail::<ResourceExhaustedFailure>(&status).is_some());
    waiting
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_on_an_idle_run_goes_to_a_poller_with_the_whole_history() {
    let given = a_node().await;
    let run = ByHand::new(&given, "idle");
    run.begin().await;
    let query = asked(&run);
    let task = run.poll().await;
    assert_eq!(task.query.as_ref().map(|query| query.query_type.as_str()), Some("state"));
    assert_eq!(task.history.unwrap().events, run.events().await);
    assert_eq!((task.previous_started_event_id, task.started_event_id, task.attempt), (3, 0, 1));
    assert!(task.queries.is_empty() && task.next_page_token.is_empty());
    assert_eq!(task.workflow_type.unwrap().name, "by hand");
    assert_eq!(task.workflow_execution.unwrap().workflow_id, "idle");
    assert_eq!(task.workflow_execution_task_queue.unwrap().name, "idle");
    run.answer(task.task_token.clone(), text("fine")).await.unwrap();
    let answer = query.await.unwrap().unwrap();
    assert_eq!((answer.query_result, answer.query_rejected), (Some(text("fine")), None));
    let again = run.answer(task.task_token, text("twice")).await;
    refused(again, Code::NotFound, "query task not found, or already expired");
    assert_eq!(run.events().await.len(), 4, "nothing of it is recorded");
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_rides_with_the_workflow_task_that_has_the_events_before_it() {
    let given = a_node().await;
    let run = ByHand::new(&given, "rides");
    run.begin().await;
    run.signal("before").await;
    let query = buffered(&run).await;
    let task = run.poll().await;
    assert!(task.query.is_none(), "a workflow task");
    assert_eq!(task.queries.values().map(|query| query.query_type.as_str()).collect::<Vec<_>>(), ["state"]);
    run.complete_with(task.task_token, answers(task.queries, "seen")).await;
    assert_eq!(query.await.unwrap().unwrap().query_result, Some(text("seen")));
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_does_not_ride_with_a_task_that_lacks_a_signal_before_it() {
    let given = a_node().await;
    let run = ByHand::new(&given, "lacks");
    run.begin().await;
    run.signal("first").await;
    let started = run.poll().await;
    run.signal("second").await;
    let query = buffered(&run).await;
    run.complete(started.task_token, Vec::new()).await;
    let next = run.poll().await;
    assert_eq!(next.queries.len(), 1, "it rides with the task that has the second signal");
    run.complete_with(next.task_token, answers(next.queries, "both")).await;
    assert_eq!(query.await.unwrap().unwrap().query_result, Some(text("both")));
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_is_not_answered_by_a_workflow_task_that_is_refused() {
    let given = a_node().await;
    let run = ByHand::new(&given, "refused");
    run.begin().await;
    run.signal("wake").await;
    let query = buffered(&run).await;
    let task = run.poll().await;
    let unknown_timer = CancelTimerCommandAttributes { timer_id: "nope".into() };
    let command = Command {
        command_type: CommandType::CancelTimer.into(),
        attributes: Some(Attributes::CancelTimerCommandAttributes(unknown_timer)),
        ..Default::default()
    };
    let refusal = public::RespondWorkflowTaskCompletedRequest {
        commands: vec![command],
        query_results: answers(task.queries, "never was"),
        ..run.completion(task.task_token)
    };
    assert_eq!(run.respond(refusal).await.expect_err("there is no such timer").code(), Code::InvalidArgument);
    let next = run.poll().await;
    assert_eq!(next.queries.len(), 1, "it still waits");
    run.complete_with(next.task_token, answers(next.queries, "is")).await;
    assert_eq!(query.await.unwrap().unwrap().query_result, Some(text("is")));
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_goes_directly_once_no_task_is_under_way_any_more() {
    let given = a_node().await;
    let run = ByHand::new(&given, "afterwards");
    run.begin().await;
    run.signal("wake").await;
    let started = run.poll().await;
    let query = buffered(&run).await;
    run.complete(started.task_token, Vec::new()).await;
    let task = run.poll().await;
    assert_eq!(task.query.map(|query| query.query_type), Some("state".into()));
    run.answer(task.task_token, text("directly")).await.unwrap();
    assert_eq!(query.await.unwrap().unwrap().query_result, Some(text("directly")));
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_survives_the_end_of_its_run() {
    let given = a_node().await;
    let (closing, dying) = (ByHand::new(&given, "closing"), ByHand::new(&given, "dying"));
    for run in [&closing, &dying] {
        run.begin().await;
        run.signal("wake").await;
    }
    // Answered by the very task that closes the run.
    let query = buffered(&closing).await;
    let task = closing.poll().await;
    let request = public::RespondWorkflowTaskCompletedRequest {
        commands: vec![finish("done")],
        query_results: answers(task.queries, "last words"),
        ..closing.completion(task.task_token)
    };
    closing.respond(request).await.unwrap();
    assert_eq!(query.await.unwrap().unwrap().query_result, Some(text("last words")));
    // Or by another worker, if the task it waited for will never be.
    let query = buffered(&dying).await;
    dying.terminate().await;
    let task = dying.poll().await;
    assert!(task.query.is_some());
    dying.answer(task.task_token, text("post mortem")).await.unwrap();
    assert_eq!(query.await.unwrap().unwrap().query_result, Some(text("post mortem")));
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sticky_worker_is_asked_first_and_without_history() {
    let given = a_node().await;
    let run = ByHand::new(&given, "sticky");
    run.start().await;
    let task = run.poll().await;
    let worker = tokio::spawn({
        let run = run.clone();
        async move { run.poll_queue(run.sticky_queue()).await }
    });
    run.complete_stickily(task.task_token, Duration::from_secs(2)).await;
    run.until_polled(run.sticky_queue()).await;
    let query = asked(&run);
    let task = worker.await.unwrap();
    assert!(task.query.is_some() && task.history.unwrap().events.is_empty());
    run.answer(task.task_token, text("cached")).await.unwrap();
    assert_eq!(query.await.unwrap().unwrap().query_result, Some(text("cached")));
    // It was seen a moment ago, but it does not come back: after its time the next one goes to all.
    let query = asked(&run);
    let task = run.poll().await;
    assert_eq!(task.history.unwrap().events.len(), 4);
    run.answer(task.task_token, text("rebuilt")).await.unwrap();
    assert_eq!(query.await.unwrap().unwrap().query_result, Some(text("rebuilt")));
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_query_brings_the_failure_of_the_workflow() {
    let given = a_node().await;
    let run = ByHand::new(&given, "fails");
    run.begin().await;
    let failure = Failure { message: "why".into(), ..Default::default() };
    let query = asked(&run);
    let request = public::RespondQueryTaskCompletedRequest {
        namespace: NAMESPACE.into(),
        task_token: run.poll().await.task_token,
        completed_type: QueryResultType::Failed.into(),
        error_message: "no such query".into(),
        failure: Some(failure.clone()),
        ..Default::default()
    };
    run.client().respond_query_task_completed(request).await.unwrap();
    let status = refused(query.await.unwrap(), Code::InvalidArgument, "no such query");
    assert_eq!(detail::<QueryFailedFailure>(&status).unwrap().failure.as_ref(), Some(&failure));

    run.signal("wake").await;
    let query = buffered(&run).await;
    let task = run.poll().await;
    let result = WorkflowQueryResult {
        result_type: QueryResultType::Failed.into(),
        error_message: "not that either".into(),
        failure: Some(failure.clone()),
        ..Default::default()
    };
    let results: HashMap<_, _> = task.queries.into_keys().map(|id| (id, result.clone())).collect();
    run.complete_with(task.task_token, results).await;
    let status = refused(query.await.unwrap(), Code::InvalidArgument, "not that either");
    assert_eq!(detail::<QueryFailedFailure>(&status).unwrap().failure, Some(failure));
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_too_large_fails_its_query() {
    let given = a_node().await;
    let run = ByHand::new(&given, "large");
    run.begin().await;
    let large = "x".repeat(TOO_LARGE);
    let query = asked(&run);
    run.answer(run.poll().await.task_token, text(&large)).await.unwrap();
    refused(query.await.unwrap(), Code::InvalidArgument, "Blob data size exceeds limit.");
    run.signal("wake").await;
    let query = buffered(&run).await;
    let task = run.poll().await;
    run.complete_with(task.task_token, answers(task.queries, &large)).await;
    refused(query.await.unwrap(), Code::InvalidArgument, "Blob data size exceeds limit.");
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unwanted_state_is_named_in_the_rejection() {
    let given = a_node().await;
    let run = ByHand::new(&given, "unwanted");
    run.begin().await;
    run.terminate().await;
    for condition in [QueryRejectCondition::NotOpen, QueryRejectCondition::NotCompletedCleanly] {
        let request =
            public::QueryWorkflowRequest { query_reject_condition: condition.into(), ..run.query_request("state") };
        let answer = run.client().query_workflow(request).await.unwrap().into_inner();
        assert_eq!(answer.query_rejected.unwrap().status(), WorkflowExecutionStatus::Terminated);
        assert_eq!(answer.query_result, None);
    }
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_tasks_keep_failing_cannot_be_queried() {
    let given = a_node().await;
    let run = ByHand::new(&given, "failing");
    run.begin().await;
    run.signal("wake").await;
    for _ in 0..2 {
        let request = public::RespondWorkflowTaskFailedRequest {
            namespace: NAMESPACE.into(),
            task_token: run.poll().await.task_token,
            cause: WorkflowTaskFailedCause::WorkflowWorkerUnhandledFailure.into(),
            ..Default::default()
        };
        run.client().respond_workflow_task_failed(request).await.unwrap();
    }
    let message = "Unable to query workflow due to Workflow Task in failed state.";
    let status = refused(run.query("state").await, Code::FailedPrecondition, message);
    assert!(detail::<WorkflowNotReadyFailure>(&status).is_some());
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_nobody_takes_says_whether_there_is_a_worker() {
    let given = a_node().await;
    let run = ByHand::new(&given, "nobody");
    run.begin().await;
    let patience = Duration::from_millis(1500);
    let timed_out = "query timed out before a worker could process it";
    let mut answer = run.query_within(patience, "state").await;
    // On a busy machine the client's own deadline may pass before the answer arrives. Few tries: a worker that was here
    // 20 s ago is gone.
    for _ in 0..4 {
        if answer.as_ref().is_err_and(|status| status.message() == timed_out) {
            break;
        }
        answer = run.query_within(patience, "state").await;
    }
    refused(answer, Code::DeadlineExceeded, timed_out);
    // A new node has never seen the worker.
    let given = a_node_in(given.stop().await).await;
    let run = ByHand::new(&given, "nobody");
    let message = "no poller seen for task queue recently, worker may be down";
    refused(run.query_within(patience, "state").await, Code::FailedPrecondition, message);
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_waits_for_the_first_task_and_not_for_one_that_comes_too_late() {
    let given = a_node().await;
    let run = ByHand::new(&given, "first");
    run.start().await;
    let query = buffered(&run).await;
    let task = run.poll().await;
    run.complete_with(task.task_token, answers(task.queries, "born")).await;
    assert_eq!(query.await.unwrap().unwrap().query_result, Some(text("born")));

    let late = ByHand::new(&given, "late");
    let delay = prost_types::Duration { seconds: 3600, nanos: 0 };
    let start = public::StartWorkflowExecutionRequest { workflow_start_delay: Some(delay), ..late.start_request() };
    late.client().start_workflow_execution(start).await.unwrap();
    let status = refused(late.query("state").await, Code::FailedPrecondition, "Workflow task is not scheduled yet.");
    assert!(detail::<WorkflowNotReadyFailure>(&status).is_some());
    late.terminate().await;
    let message = "Workflow execution closed before WorkflowTaskStarted event";
    refused(late.query("state").await, Code::FailedPrecondition, message);
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_queries_are_refused() {
    let given = a_node().await;
    let run = ByHand::new(&given, "wrong");
    run.begin().await;
    let correct = run.query_request("state");
    let mut oversized = correct.clone();
    if let Some(query) = &mut oversized.query {
        query.query_args = Some(text(&"x".repeat(TOO_LARGE)));
    }
    let cases = [
        (public::QueryWorkflowRequest { query: None, ..correct.clone() }, "WorkflowQuery is not set on request."),
        (run.query_request(""), "QueryType is not set on request."),
        (public::QueryWorkflowRequest { execution: None, ..correct.clone() }, "Execution is not set on request."),
        (oversized, "Blob data size exceeds limit."),
    ];
    for (request, message) in cases {
        refused(run.client().query_workflow(request).await, Code::InvalidArgument, message);
    }
    let unknown = ByHand::new(&given, "unknown");
    assert_eq!(unknown.query("state").await.unwrap_err().code(), Code::NotFound);
    let answer = run.answer(Bytes::from_static(b"\xff"), text("x")).await;
    refused(answer, Code::InvalidArgument, "Error deserializing task token.");
    refused(run.answer(Bytes::new(), text("x")).await, Code::InvalidArgument, "Task token not set on request.");
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_cannot_be_answered_from_another_namespace() {
    let given = a_node().await;
    given.client().register_namespace(register("elsewhere")).await.unwrap();
    let run = ByHand::new(&given, "guarded");
    run.begin().await;
    let query = asked(&run);
    let task = run.poll().await;
    let stolen = public::RespondQueryTaskCompletedRequest {
        namespace: "elsewhere".into(),
        task_token: task.task_token.clone(),
        completed_type: QueryResultType::Answered.into(),
        query_result: Some(text("forged")),
        ..Default::default()
    };
    let answer = run.client().respond_query_task_completed(stolen).await;
    refused(answer, Code::InvalidArgument, "Operation requested with a token from a different namespace.");
    run.answer(task.task_token, text("genuine")).await.unwrap();
    assert_eq!(query.await.unwrap().unwrap().query_result, Some(text("genuine")));
    given.stop().await;
}
