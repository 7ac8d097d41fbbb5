//! The service on the model engine. History is played by the tests: they settle what the polls bring.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cluster::env::{Env, SimulatedWall};
use cluster::errors::ServiceError;
use persistence::engine::Engine;
use persistence::stores::Stores;
use proto::everrow::matching::AddTaskRequest;
use proto::temporal::api::common::v1::{Priority, WorkflowExecution};
use proto::temporal::api::enums::v1::{TaskQueueKind, TaskQueueType};
use uuid::Uuid;
use workflow::NamespaceId;

use super::config::MatchingConfig;
use super::dispatch::Dispatched;
use super::pollers::Poller;
use super::service::Service;
use super::task::{Kind, QueueKey, TaskType};
use crate::peers::Peers;

mod delivery;
mod durability;
mod hints;
mod polling;
mod queries;
mod sticky;

const NAMESPACE: Uuid = Uuid::from_u128(0x6d61_7463_6869_4e67_8123_0000_0000_0001);

fn service(engine: &Arc<dyn Engine>) -> Arc<Service> {
    service_with(engine, MatchingConfig::default())
}

fn service_with(engine: &Arc<dyn Engine>, config: MatchingConfig) -> Arc<Service> {
    Service::new(Env::simulated(7), Peers::default(), Stores::new(Arc::clone(engine)).task_queues, config)
}

fn service_on(engine: &Arc<dyn Engine>, wall: &SimulatedWall) -> Arc<Service> {
    let stores = Stores::new(Arc::clone(engine));
    Service::new(Env::simulated_by(wall, 7), Peers::default(), stores.task_queues, MatchingConfig::default())
}

fn queue(kind: Kind) -> QueueKey {
    QueueKey { namespace_id: NamespaceId(NAMESPACE), name: "orders".into(), task_type: TaskType::Activity, kind }
}

fn request(workflow_id: &str) -> AddTaskRequest {
    AddTaskRequest {
        namespace_id: NAMESPACE.to_string(),
        task_queue_type: TaskQueueType::Activity.into(),
        task_queue: "orders".into(),
        task_queue_kind: TaskQueueKind::Normal.into(),
        execution: Some(WorkflowExecution { workflow_id: workflow_id.into(), run_id: Uuid::nil().to_string() }),
        scheduled_event_id: 5,
        attempt: 1,
        stamp: 0,
        ..AddTaskRequest::default()
    }
}

fn expiring(workflow_id: &str, timeout: Duration) -> AddTaskRequest {
    AddTaskRequest { schedule_to_start_timeout: timeout.try_into().ok(), ..request(workflow_id) }
}

fn sticky(workflow_id: &str) -> AddTaskRequest {
    let timeout = Duration::from_secs(5);
    AddTaskRequest { task_queue_kind: TaskQueueKind::Sticky.into(), ..expiring(workflow_id, timeout) }
}

fn urgent(workflow_id: &str, priority_key: i32) -> AddTaskRequest {
    AddTaskRequest { priority: Some(Priority { priority_key, ..Priority::default() }), ..request(workflow_id) }
}

fn poller() -> Poller {
    Poller { identity: "worker".into(), ..Poller::default() }
}

/// Waits as long as a poll may.
async fn poll(service: &Service, kind: Kind) -> Option<Dispatched> {
    let mut poll = service.begin_poll(queue(kind), poller(), String::new(), None).unwrap();
    service.next_task(&mut poll).await.unwrap()
}

/// Waits for a task for a moment only, and has its start recorded.
async fn take(service: &Service) -> Option<String> {
    let timeout = prost_types::Duration { seconds: 11, nanos: 0 };
    let mut poll = service.begin_poll(queue(Kind::Normal), poller(), String::new(), Some(timeout)).unwrap();
    let dispatched = service.next_task(&mut poll).await.unwrap()?;
    let workflow_id = dispatched.task().workflow_id.clone();
    dispatched.settle(Ok(())).unwrap();
    Some(workflow_id)
}

async fn take_all(service: &Service) -> Vec<String> {
    let mut taken = Vec::new();
    while let Some(workflow_id) = take(service).await {
        taken.push(workflow_id);
    }
    taken
}

fn names(range: std::ops::Range<usize>) -> BTreeSet<String> {
    range.map(|n| format!("wf-{n:04}")).collect()
}

fn not_found() -> Result<(), ServiceError> {
    Err(ServiceError::NotFound("over".into()))
}

fn unavailable() -> Result<(), ServiceError> {
    Err(ServiceError::Unavailable("not now".into()))
}
