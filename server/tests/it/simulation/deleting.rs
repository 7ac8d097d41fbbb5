//! Runs that are deleted: by a client, or because their time is over.

use std::sync::Arc;
use std::time::Duration;

use cluster::errors::ServiceError;
use persistence::engine::Partition;
use persistence::model::{Faults, Model};
use persistence::table::Value;
use persistence::tables::{EXECUTIONS, HISTORY_NODE};
use proto::everrow::history as to_history;
use proto::temporal::api::common::v1::WorkflowType;
use proto::temporal::api::taskqueue::v1::TaskQueue;
use proto::temporal::api::workflowservice::v1 as public;
use server::history::config::HistoryConfig;
use uuid::Uuid;

use super::world::{N_SHARDS, NAMESPACE_ID, Services, World, execution};
use super::{for_seeds, simulate, unknown_outcomes};

const ID: &str = "short-lived";
const HOUR: Duration = Duration::from_secs(60 * 60);

/// Starts a run that nobody works on.
pub(super) async fn start(services: &Services) -> Uuid {
    let request = public::StartWorkflowExecutionRequest {
        workflow_id: ID.into(),
        workflow_type: Some(WorkflowType { name: "short-lived".into() }),
        task_queue: Some(TaskQueue { name: "quiet".into(), ..Default::default() }),
        request_id: "one".into(),
        ..Default::default()
    };
    let request = to_history::StartWorkflowExecutionRequest {
        namespace_id: NAMESPACE_ID.into(),
        request: Some(request),
        ..Default::default()
    };
    persistently(|| services.history.start_workflow_execution(request.clone())).await.run_id.parse().unwrap()
}

pub(super) async fn terminate(services: &Services) {
    let request =
        public::TerminateWorkflowExecutionRequest { workflow_execution: Some(execution(ID)), ..Default::default() };
    let request = to_history::TerminateWorkflowExecutionRequest {
        namespace_id: NAMESPACE_ID.into(),
        request: Some(request),
        ..Default::default()
    };
    services.history.terminate_workflow_execution(request).await.unwrap();
}

pub(super) async fn delete(services: &Services) -> Result<public::DeleteWorkflowExecutionResponse, ServiceError> {
    let request =
        public::DeleteWorkflowExecutionRequest { workflow_execution: Some(execution(ID)), ..Default::default() };
    let namespace_id = NAMESPACE_ID.into();
    let request = to_history::DeleteWorkflowExecutionRequest { namespace_id, request: Some(request) };
    services.history.delete_workflow_execution(request).await
}

/// Until the store lets it.
async fn persistently<T, F: Future<Output = Result<T, ServiceError>>>(ask: impl Fn() -> F) -> T {
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

fn is_gone<T>(answer: &Result<T, ServiceError>) -> bool {
    matches!(answer, Err(ServiceError::NotFound(_)))
}

pub(super) async fn until_gone(world: &World) {
    while !is_gone(&world.try_describe(ID).await) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Rows of executions, whatever shard they are in, and of the run's history. Queue rows are not the run's.
fn n_rows(model: &Arc<Model>, run_id: Uuid) -> (usize, usize) {
    let is_of_a_workflow = |key: &[Value]| key[2] != Value::Text("".into());
    let shards = (1..=N_SHARDS).map(|shard| Partition::new(&EXECUTIONS, vec![Value::Int(shard)]));
    let rows = shards.flat_map(|shard| model.dump(&shard).1).filter(|row| is_of_a_workflow(&row.key)).count();
    (rows, model.dump(&Partition::new(&HISTORY_NODE, vec![Value::Uuid(run_id)])).1.len())
}

#[test]
fn a_closed_run_is_kept_for_as_long_as_its_namespace_says_and_then_leaves_nothing() {
    simulate(async {
        let model = Model::with_faults(Faults::none(1));
        let world = World::start(&model, 1).await;
        let run_id = start(&world.handle().services()).await;
        tokio::time::sleep(48 * HOUR).await;
        terminate(&world.handle().services()).await;
        tokio::time::sleep(24 * HOUR - Duration::from_secs(1)).await;
        assert!(world.try_describe(ID).await.is_ok(), "its time is not over");
        // The look-ahead of the timers is shorter than this: the timer is read from the store.
        let world = world.crash_and_restart(&model, 2).await;
        tokio::time::sleep(HOUR).await;
        let Err(ServiceError::NotFound(message)) = world.try_describe(ID).await else { panic!("it is still there") };
        assert_eq!(message, format!("workflow not found for ID: {ID}"));
        assert_eq!(n_rows(&model, run_id), (0, 0));
        world.stop().await;
    });
}

#[test]
fn a_run_that_is_deleted_leaves_nothing_whatever_the_store_and_the_node_do() {
    for_seeds(0..20, |seed| {
        simulate(async {
            let model = Model::with_faults(unknown_outcomes(seed));
            let mut world = World::start(&model, seed).await;
            let run_id = start(&world.handle().services()).await;
            let services = world.handle().services();
            // An answer may get lost, and what was asked for may be done.
            while !matches!(delete(&services).await, Ok(_) | Err(ServiceError::NotFound(_))) {}
            tokio::time::sleep(Duration::from_millis(seed)).await;
            world = world.crash_and_restart(&model, seed + 100).await;
            until_gone(&world).await;
            model.stop_faults();
            // History goes after the rows.
            while n_rows(&model, run_id) != (0, 0) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            world.stop().await;
            0
        })
    });
}

#[test]
fn a_workflow_whose_run_is_deleted_can_be_started_again_at_once() {
    for_seeds(0..20, |seed| {
        simulate(async {
            let latency = Duration::from_micros(500)..Duration::from_millis(8);
            let model = Model::with_faults(Faults { latency, ..Faults::none(seed) });
            let config = HistoryConfig { cache_bytes: if seed % 2 == 0 { 0 } else { 1 << 20 }, ..Default::default() };
            let world = World::start_as(&model, seed, config).await;
            let services = world.handle().services();
            let first = start(&services).await;
            terminate(&services).await;
            tokio::time::sleep(Duration::from_secs(2)).await;
            delete(&services).await.unwrap();
            // While the first is being deleted the request is a repetition of its start; then it makes another run.
            let mut second = start(&services).await;
            while second == first {
                second = start(&services).await;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert_eq!(world.describe(ID).await.execution.unwrap().run_id, second.to_string());
            assert_eq!(n_rows(&model, first).1, 0);
            assert_ne!(n_rows(&model, second), (0, 0));
            world.stop().await;
            0
        })
    });
}
