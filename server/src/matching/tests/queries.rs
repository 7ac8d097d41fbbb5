//! Queries meet pollers, and nothing of them is kept.

use persistence::model::Model;
use proto::everrow::matching as request;
use proto::temporal::api::enums::v1::QueryResultType;
use proto::temporal::api::workflowservice::v1 as public;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::Instant;

use super::*;
use crate::matching::dispatch::Delivery;
use crate::matching::queries::AWAITED_BYTES_MAX;
use crate::matching::service::Poll;

type Answer = Result<public::QueryWorkflowResponse, ServiceError>;

fn engine() -> Arc<dyn Engine> {
    Model::new()
}

fn ask(service: &Arc<Service>, kind: TaskQueueKind, timeout: Duration) -> JoinHandle<Answer> {
    ask_with(service, kind, timeout, public::QueryWorkflowRequest::default())
}

fn ask_with(
    service: &Arc<Service>,
    kind: TaskQueueKind,
    timeout: Duration,
    query: public::QueryWorkflowRequest,
) -> JoinHandle<Answer> {
    let request = request::QueryWorkflowRequest {
        namespace_id: NAMESPACE.to_string(),
        task_queue: "orders".into(),
        task_queue_kind: kind.into(),
        request: Some(query),
        timeout: timeout.try_into().ok(),
    };
    let service = Arc::clone(service);
    tokio::spawn(async move { service.query_workflow(request).await })
}

fn begin(service: &Service, kind: Kind) -> Poll {
    let key = QueueKey { task_type: TaskType::Workflow, ..queue(kind) };
    service.begin_poll(key, poller(), String::new(), None).unwrap()
}

/// The id of the query that a poll brings.
async fn poll_query(service: &Service) -> String {
    match service.next(&mut begin(service, Kind::Normal)).await.unwrap() {
        Some(Delivery::Query(task)) => task.reclaim().id,
        Some(Delivery::Task(_)) | None => unreachable!("a query waits"),
    }
}

async fn respond(service: &Service, namespace_id: Uuid, task_id: String) -> Result<(), ServiceError> {
    let token = request::QueryTaskToken { task_id, ..Default::default() };
    let answer = public::RespondQueryTaskCompletedRequest {
        completed_type: QueryResultType::Answered.into(),
        ..Default::default()
    };
    let request = request::RespondQueryTaskCompletedRequest {
        namespace_id: namespace_id.to_string(),
        token: Some(token),
        request: Some(answer),
    };
    service.respond_query_task_completed(request).await.map(|_| ())
}

const LONG: Duration = Duration::from_secs(30);

#[tokio::test(start_paused = true)]
async fn a_query_goes_to_the_next_poller_before_the_backlog() {
    let service = service(&engine());
    let task = AddTaskRequest { task_queue_type: TaskQueueType::Workflow.into(), ..request("wf") };
    service.add_task(task).await.unwrap();
    let query = ask(&service, TaskQueueKind::Normal, LONG);
    yield_now().await;
    let id = poll_query(&service).await;
    respond(&service, NAMESPACE, id).await.unwrap();
    query.await.unwrap().unwrap();
    let Some(Delivery::Task(task)) = service.next(&mut begin(&service, Kind::Normal)).await.unwrap() else {
        unreachable!("the task is still there")
    };
    task.settle(Ok(())).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_poll_that_ends_with_a_query_in_hand_gives_it_back() {
    let service = service(&engine());
    let mut poll = begin(&service, Kind::Normal);
    let mut query = ask(&service, TaskQueueKind::Normal, LONG);
    let delivery = service.next(&mut poll).await.unwrap();
    assert!(matches!(delivery, Some(Delivery::Query(_))));
    drop(delivery);
    let id = poll_query(&service).await;
    assert!(tokio::time::timeout(Duration::from_secs(1), &mut query).await.is_err(), "still waiting");
    respond(&service, NAMESPACE, id).await.unwrap();
    query.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_query_whose_caller_has_left_is_nowhere() {
    let service = service(&engine());
    let query = ask(&service, TaskQueueKind::Normal, LONG);
    yield_now().await;
    query.abort();
    assert!(query.await.unwrap_err().is_cancelled());
    let delivery = service.next(&mut begin(&service, Kind::Normal)).await.unwrap();
    assert!(delivery.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_query_without_a_worker_fails_a_second_early_and_one_with_a_worker_in_time() {
    let service = service(&engine());
    let begun = Instant::now();
    let answer = ask(&service, TaskQueueKind::Normal, LONG).await.unwrap();
    assert!(matches!(answer, Err(ServiceError::FailedPrecondition(_))), "{answer:?}");
    assert_eq!(begun.elapsed().as_secs(), 29);
    assert!(service.next(&mut begin(&service, Kind::Normal)).await.unwrap().is_none());
    let begun = Instant::now();
    let answer = ask(&service, TaskQueueKind::Normal, Duration::from_secs(10)).await.unwrap();
    assert_eq!(answer, Err(ServiceError::query_timed_out()));
    assert_eq!(begun.elapsed().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_sticky_queue_without_its_worker_takes_no_query() {
    let service = service(&engine());
    let unavailable = Err(ServiceError::StickyWorkerUnavailable);
    assert_eq!(ask(&service, TaskQueueKind::Sticky, LONG).await.unwrap(), unavailable);
    assert!(service.next(&mut begin(&service, Kind::Sticky)).await.unwrap().is_none());
    let answer = ask(&service, TaskQueueKind::Sticky, Duration::from_secs(5)).await.unwrap();
    assert_eq!(answer, Err(ServiceError::query_timed_out()), "it was seen a moment ago");
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(ask(&service, TaskQueueKind::Sticky, LONG).await.unwrap(), unavailable);
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_taken_once_and_from_its_own_namespace_only() {
    let service = service(&engine());
    let query = ask(&service, TaskQueueKind::Normal, LONG);
    yield_now().await;
    let id = poll_query(&service).await;
    let not_found = Err(ServiceError::NotFound("query task not found, or already expired".into()));
    assert_eq!(respond(&service, Uuid::from_u128(5), id.clone()).await, not_found);
    respond(&service, NAMESPACE, id.clone()).await.unwrap();
    assert_eq!(respond(&service, NAMESPACE, id).await, not_found);
    query.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn shutdown_lets_queries_ask_elsewhere() {
    let service = service(&engine());
    let (waiting, mut poll) = (ask(&service, TaskQueueKind::Normal, LONG), begin(&service, Kind::Normal));
    let in_hand = service.next(&mut poll).await.unwrap();
    let second = ask(&service, TaskQueueKind::Normal, LONG);
    yield_now().await;
    service.shutdown().await;
    drop(in_hand);
    for query in [waiting, second] {
        assert!(matches!(query.await.unwrap(), Err(ServiceError::Unavailable(_))));
    }
}

#[tokio::test(start_paused = true)]
async fn queries_that_wait_have_a_bound_in_bytes_and_give_them_back() {
    let service = service(&engine());
    let large = || public::QueryWorkflowRequest { namespace: "q".repeat(1 << 20), ..Default::default() };
    let asked: Vec<_> = (0..40).map(|_| ask_with(&service, TaskQueueKind::Normal, LONG, large())).collect();
    yield_now().await;
    let n_bytes = service.queries.n_bytes();
    assert!(n_bytes > AWAITED_BYTES_MAX / 2 && n_bytes <= AWAITED_BYTES_MAX, "{n_bytes}");
    let mut n_refused = 0;
    for answer in asked {
        if matches!(answer.await.unwrap(), Err(ServiceError::ResourceExhausted { .. })) {
            n_refused += 1;
        }
    }
    assert_eq!(n_refused, 9, "31 of a little more than 1 MiB fit");
    assert_eq!(service.queries.n_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_query_that_is_given_back_keeps_its_place() {
    let service = service(&engine());
    let _asked = [ask(&service, TaskQueueKind::Normal, LONG), ask(&service, TaskQueueKind::Normal, LONG)];
    yield_now().await;
    let Some(Delivery::Query(first)) = service.next(&mut begin(&service, Kind::Normal)).await.unwrap() else {
        unreachable!("a query waits")
    };
    drop(first);
    let Some(Delivery::Query(again)) = service.next(&mut begin(&service, Kind::Normal)).await.unwrap() else {
        unreachable!("a query waits")
    };
    assert_eq!(again.reclaim().number, 0);
}
