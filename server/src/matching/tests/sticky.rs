//! A sticky queue after its worker leaves, announced or not.

use persistence::model::Model;
use proto::temporal::api::workflowservice::v1 as public;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::Instant;

use super::*;

const STICKY: &str = "worker-1";

fn a_service() -> Arc<Service> {
    let engine: Arc<dyn Engine> = Model::new();
    service(&engine)
}

fn key(kind: Kind) -> QueueKey {
    let name = if kind == Kind::Sticky { STICKY } else { "orders" };
    QueueKey { task_type: TaskType::Workflow, name: name.into(), ..queue(kind) }
}

fn task(workflow_id: &str) -> AddTaskRequest {
    let (task_queue, task_queue_type) = (STICKY.into(), TaskQueueType::Workflow.into());
    AddTaskRequest { task_queue, task_queue_type, ..sticky(workflow_id) }
}

/// A worker that polls both of its queues.
fn the_worker() -> Poller {
    Poller { normal_queue: "orders".into(), ..poller() }
}

fn polling(service: &Arc<Service>, kind: Kind) -> JoinHandle<Option<Dispatched>> {
    let service = Arc::clone(service);
    tokio::spawn(async move {
        let mut poll = service.begin_poll(key(kind), the_worker(), String::new(), None).unwrap();
        service.next_task(&mut poll).await.unwrap()
    })
}

/// A sticky queue counts as polled for a while after an answered poll.
async fn was_polled(service: &Service) {
    let moment = Some(prost_types::Duration { seconds: 1, nanos: 1_000_000 });
    let mut poll = service.begin_poll(key(Kind::Sticky), the_worker(), String::new(), moment).unwrap();
    assert!(service.next_task(&mut poll).await.unwrap().is_none());
}

async fn drain(service: &Arc<Service>) -> BTreeSet<String> {
    let mut taken = BTreeSet::new();
    let timeout = prost_types::Duration { seconds: 2, nanos: 0 };
    loop {
        let mut poll = service.begin_poll(key(Kind::Normal), the_worker(), String::new(), Some(timeout)).unwrap();
        let Some(dispatched) = service.next_task(&mut poll).await.unwrap() else { return taken };
        taken.insert(dispatched.task().workflow_id.clone());
        assert_eq!(dispatched.task().expires_at, None, "a normal queue has no such timeout");
        dispatched.settle(Ok(())).unwrap();
    }
}

fn release(service: &Service) {
    service.release_sticky_queue(NamespaceId(NAMESPACE), STICKY.into());
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_leaves_has_its_polls_answered_and_its_tasks_moved() {
    let service = a_service();
    was_polled(&service).await;
    for name in ["taken", "second", "third"] {
        assert!(!service.add_task(task(name)).await.unwrap().sync_match);
    }
    let taken = polling(&service, Kind::Sticky).await.unwrap().unwrap();
    assert_eq!(taken.task().workflow_id, "taken");
    let begun = Instant::now();
    release(&service);
    assert_eq!(service.add_task(task("late")).await, Err(ServiceError::StickyWorkerUnavailable));
    assert_eq!(drain(&service).await, ["second", "third"].map(String::from).into());
    // The poll that has it is broken off.
    drop(taken);
    assert_eq!(drain(&service).await, ["taken".to_owned()].into());
    assert!(begun.elapsed() < Duration::from_secs(5), "before the tasks time out");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_timed_out_is_not_moved_when_its_worker_leaves() {
    let service = a_service();
    was_polled(&service).await;
    let long = Some(prost_types::Duration { seconds: 3600, nanos: 0 });
    service.add_task(task("timed-out")).await.unwrap();
    service.add_task(AddTaskRequest { schedule_to_start_timeout: long, ..task("in-time") }).await.unwrap();
    tokio::time::advance(Duration::from_secs(11)).await;
    release(&service);
    assert_eq!(drain(&service).await, ["in-time".to_owned()].into());
}

#[tokio::test(start_paused = true)]
async fn a_waiting_poll_of_a_worker_that_leaves_is_answered_empty_at_once() {
    let service = a_service();
    let begun = Instant::now();
    let polls = [polling(&service, Kind::Sticky), polling(&service, Kind::Sticky)];
    yield_now().await;
    release(&service);
    for poll in polls {
        assert!(poll.await.unwrap().is_none());
    }
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert_eq!(service.add_task(task("late")).await, Err(ServiceError::StickyWorkerUnavailable));
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_polls_after_it_said_so_drains_its_queue() {
    let service = a_service();
    release(&service);
    let first = polling(&service, Kind::Sticky);
    yield_now().await;
    release(&service);
    assert!(first.await.unwrap().is_none());
    let draining = polling(&service, Kind::Sticky);
    yield_now().await;
    let adding = tokio::spawn({
        let service = Arc::clone(&service);
        async move { service.add_task(task("drained")).await.unwrap() }
    });
    draining.await.unwrap().unwrap().settle(Ok(())).unwrap();
    assert!(adding.await.unwrap().sync_match);
}

#[tokio::test(start_paused = true)]
async fn a_poll_whose_caller_broke_it_off_does_not_count_as_seen() {
    let service = a_service();
    let polling = polling(&service, Kind::Sticky);
    tokio::time::sleep(Duration::from_secs(30)).await;
    polling.abort();
    assert!(polling.await.is_err_and(|error| error.is_cancelled()));
    assert_eq!(service.add_task(task("late")).await, Err(ServiceError::StickyWorkerUnavailable));
}

#[tokio::test(start_paused = true)]
async fn a_query_of_a_worker_that_leaves_is_asked_elsewhere() {
    let service = a_service();
    was_polled(&service).await;
    let asking = tokio::spawn({
        let service = Arc::clone(&service);
        async move {
            let request = proto::everrow::matching::QueryWorkflowRequest {
                namespace_id: NAMESPACE.to_string(),
                task_queue: STICKY.into(),
                task_queue_kind: TaskQueueKind::Sticky.into(),
                request: Some(public::QueryWorkflowRequest::default()),
                timeout: Some(prost_types::Duration { seconds: 10, nanos: 0 }),
            };
            service.query_workflow(request).await
        }
    });
    yield_now().await;
    release(&service);
    assert_eq!(asking.await.unwrap(), Err(ServiceError::StickyWorkerUnavailable));
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_is_dropped_and_polled_again_takes_one_place() {
    let engine: Arc<dyn Engine> = Model::new();
    let service = service_with(&engine, MatchingConfig { loaded_queues: 2, ..MatchingConfig::default() });
    for _ in 0..100 {
        let polling = polling(&service, Kind::Sticky);
        yield_now().await;
        release(&service);
        assert!(polling.await.unwrap().is_none());
    }
}
