//! Eager dispatch over gRPC: what a start and a completion bring back for the worker that made them.

use proto::temporal::api::command::v1::command::Attributes;
use proto::temporal::api::command::v1::{Command, ScheduleActivityTaskCommandAttributes};
use proto::temporal::api::common::v1::ActivityType;
use proto::temporal::api::enums::v1::{CommandType, EventType, WorkflowIdConflictPolicy};
use proto::temporal::api::workflowservice::v1 as public;

use crate::by_hand::{ByHand, PATIENCE};
use crate::commands::{finish, text};
use crate::given::{NAMESPACE, a_node, within};

fn eager_start(run: &ByHand) -> public::StartWorkflowExecutionRequest {
    public::StartWorkflowExecutionRequest {
        request_eager_execution: true,
        request_id: "the start".into(),
        ..run.start_request()
    }
}

async fn start(run: &ByHand, request: public::StartWorkflowExecutionRequest) -> public::StartWorkflowExecutionResponse {
    run.client().start_workflow_execution(request).await.expect("a start").into_inner()
}

fn eager_activity(run: &ByHand) -> Command {
    let what = ScheduleActivityTaskCommandAttributes {
        activity_id: "pay".into(),
        activity_type: Some(ActivityType { name: "Pay".into() }),
        task_queue: Some(run.queue()),
        input: Some(text("card")),
        start_to_close_timeout: Some(prost_types::Duration { seconds: 30, nanos: 0 }),
        request_eager_execution: true,
        ..Default::default()
    };
    Command {
        command_type: CommandType::ScheduleActivityTask.into(),
        attributes: Some(Attributes::ScheduleActivityTaskCommandAttributes(what)),
        ..Default::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_brings_the_first_task_back_and_a_repeated_one_the_same() {
    let given = a_node().await;
    let run = ByHand::new(&given, "eager");
    let started = start(&run, eager_start(&run)).await;
    let task = started.eager_workflow_task.unwrap();
    let events = task.history.clone().unwrap().events;
    let kinds: Vec<EventType> = events.iter().map(|event| event.event_type()).collect();
    let expected =
        [EventType::WorkflowExecutionStarted, EventType::WorkflowTaskScheduled, EventType::WorkflowTaskStarted];
    assert_eq!(kinds, expected);
    assert_eq!(events, run.events().await, "all of it is recorded");
    assert_eq!((task.previous_started_event_id, task.started_event_id, task.attempt), (0, 3, 1));
    let again = start(&run, eager_start(&run)).await;
    assert_eq!((again.run_id, again.eager_workflow_task.as_ref()), (started.run_id, Some(&task)));

    run.complete(task.task_token, vec![finish("done")]).await;
    let late = start(&run, eager_start(&run)).await;
    assert_eq!(late.eager_workflow_task, None, "its task is done");
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_cannot_be_eager_is_a_plain_one() {
    let given = a_node().await;
    let later = ByHand::new(&given, "later");
    let delay = Some(prost_types::Duration { seconds: 3600, nanos: 0 });
    let delayed = public::StartWorkflowExecutionRequest { workflow_start_delay: delay, ..eager_start(&later) };
    assert_eq!(start(&later, delayed).await.eager_workflow_task, None);

    let existing = ByHand::new(&given, "existing");
    existing.start().await;
    let joining = public::StartWorkflowExecutionRequest {
        workflow_id_conflict_policy: WorkflowIdConflictPolicy::UseExisting.into(),
        ..eager_start(&existing)
    };
    let joined = start(&existing, joining).await;
    assert_eq!((joined.started, joined.eager_workflow_task), (false, None));
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_completion_brings_back_the_activities_that_its_worker_wants() {
    let given = a_node().await;
    let run = ByHand::new(&given, "activities");
    run.start().await;
    let request = public::RespondWorkflowTaskCompletedRequest {
        commands: vec![eager_activity(&run)],
        ..run.completion(run.poll().await.task_token)
    };
    let mut response = run.respond(request).await.unwrap();
    let activity = response.activity_tasks.pop().unwrap();
    assert!(response.activity_tasks.is_empty());
    assert_eq!((activity.activity_id.as_str(), activity.attempt), ("pay", 1));
    assert_eq!(activity.input, Some(text("card")));
    let done = public::RespondActivityTaskCompletedRequest {
        namespace: NAMESPACE.into(),
        task_token: activity.task_token,
        result: Some(text("paid")),
        ..Default::default()
    };
    run.client().respond_activity_task_completed(done).await.unwrap();
    let next = run.poll().await;
    let kinds: Vec<EventType> = next.history.unwrap().events.iter().skip(4).map(|event| event.event_type()).collect();
    let expected = [
        EventType::ActivityTaskScheduled,
        EventType::ActivityTaskStarted,
        EventType::ActivityTaskCompleted,
        EventType::WorkflowTaskScheduled,
        EventType::WorkflowTaskStarted,
    ];
    assert_eq!(kinds, expected);
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_leaves_is_given_no_eager_activity() {
    let given = a_node().await;
    let run = ByHand::new(&given, "eager");
    run.start().await;
    let task = run.poll().await;
    let leaving = public::ShutdownWorkerRequest {
        namespace: NAMESPACE.into(),
        worker_instance_key: "leaving".into(),
        ..Default::default()
    };
    run.client().shutdown_worker(leaving).await.unwrap();
    let mut completion = run.completion(task.task_token);
    completion.worker_instance_key = "leaving".into();
    completion.commands = vec![eager_activity(&run)];
    let answer = run.respond(completion).await.expect("a completion");
    assert!(answer.activity_tasks.is_empty());
    let poll = public::PollActivityTaskQueueRequest {
        namespace: NAMESPACE.into(),
        task_queue: Some(run.queue()),
        ..Default::default()
    };
    let task = run.client().poll_activity_task_queue(within(PATIENCE, poll)).await.unwrap().into_inner();
    assert!(!task.task_token.is_empty(), "it is for a worker that stays");
    given.stop().await;
}
