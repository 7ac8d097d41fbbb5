//! Run ids encode the start time, however the run was started; and visibility finds runs by them.

use proto::temporal::api::command::v1::{Command, StartChildWorkflowExecutionCommandAttributes};
use proto::temporal::api::common::v1::{RetryPolicy, WorkflowExecution, WorkflowType};
use proto::temporal::api::workflowservice::v1 as public;
use uuid::Uuid;
use workflow::{RunId, Timestamp};

use crate::by_hand::ByHand;
use crate::commands::{continue_as_new, fail, finish, queue, start_child};
use crate::given::{Given, NAMESPACE, a_node};
use crate::paging::until_listed;

async fn newest(by_hand: &ByHand) -> WorkflowExecution {
    by_hand.describe().await.workflow_execution_info.and_then(|info| info.execution).expect("it says which run")
}

/// The run that follows one whose first workflow task was answered so.
async fn follower(
    given: &Given,
    request: public::StartWorkflowExecutionRequest,
    command: Command,
) -> WorkflowExecution {
    let by_hand = ByHand::new(given, &request.workflow_id);
    let first = given.client().start_workflow_execution(request).await.expect("it starts").into_inner().run_id;
    by_hand.work(vec![command]).await;
    let next = newest(&by_hand).await;
    assert_ne!(next.run_id, first, "{} goes on in another run", next.workflow_id);
    next
}

async fn a_reset_run(given: &Given) -> WorkflowExecution {
    let by_hand = ByHand::new(given, "redone");
    by_hand.start().await;
    by_hand.work(Vec::new()).await;
    let request = public::ResetWorkflowExecutionRequest {
        namespace: NAMESPACE.into(),
        workflow_execution: Some(by_hand.execution()),
        workflow_task_finish_event_id: 4,
        request_id: "reset".into(),
        ..Default::default()
    };
    let run_id = given.client().reset_workflow_execution(request).await.expect("it is reset").into_inner().run_id;
    WorkflowExecution { run_id, ..by_hand.execution() }
}

async fn a_child(given: &Given) -> WorkflowExecution {
    let parent = ByHand::new(given, "parent");
    parent.start().await;
    let child = StartChildWorkflowExecutionCommandAttributes {
        workflow_id: "child".into(),
        workflow_type: Some(WorkflowType { name: "child".into() }),
        task_queue: queue("child"),
        ..Default::default()
    };
    parent.work(vec![start_child(child)]).await;
    ByHand::new(given, "child").poll().await.workflow_execution.expect("it says which run")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_id_of_a_run_encodes_its_start_however_it_began_and_lists_find_it_by_that() {
    let given = a_node().await;
    let start = |name: &str| ByHand::new(&given, name).start_request();
    let plain = ByHand::new(&given, "plain");
    plain.start().await;
    let retried = public::StartWorkflowExecutionRequest {
        retry_policy: Some(RetryPolicy { maximum_attempts: 2, ..Default::default() }),
        ..start("retried")
    };
    let periodic = public::StartWorkflowExecutionRequest { cron_schedule: "@every 1s".into(), ..start("periodic") };
    let runs = [
        newest(&plain).await,
        follower(&given, start("continued"), continue_as_new()).await,
        follower(&given, retried, fail("again")).await,
        follower(&given, periodic, finish("done")).await,
        a_reset_run(&given).await,
        a_child(&given).await,
    ];
    for WorkflowExecution { workflow_id, run_id } in runs {
        let found = until_listed(&given, &format!("RunId = '{run_id}'"), &[&workflow_id]).await;
        let started_at = Timestamp::from(found[0].start_time.expect("it has started"));
        let within = RunId(Uuid::parse_str(&run_id).expect("a UUID")).started_within().expect("it tells");
        assert!(within.contains(&started_at), "{workflow_id} started at {started_at:?}, not within {within:?}");
    }
    given.stop().await;
}
