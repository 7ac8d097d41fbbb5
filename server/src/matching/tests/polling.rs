//! How polls end, and how a queue describes them.

use persistence::model::Model;
use proto::everrow::matching as request;
use proto::temporal::api::taskqueue::v1::TaskQueue;
use proto::temporal::api::workflowservice::v1 as public;
use tokio::task::yield_now;
use tokio::time::Instant;

use super::*;

fn engine() -> Arc<dyn Engine> {
    Model::new()
}

fn poll_request(timeout: Option<Duration>) -> request::PollWorkflowTaskQueueRequest {
    let task_queue = Some(TaskQueue { name: "orders".into(), ..TaskQueue::default() });
    request::PollWorkflowTaskQueueRequest {
        namespace_id: NAMESPACE.to_string(),
        poller_id: "poll-1".into(),
        request: Some(public::PollWorkflowTaskQueueRequest {
            task_queue,
            identity: "worker".into(),
            ..public::PollWorkflowTaskQueueRequest::default()
        }),
        timeout: timeout.and_then(|timeout| timeout.try_into().ok()),
    }
}

async fn describe(service: &Service) -> public::DescribeTaskQueueResponse {
    describe_type(service, TaskQueueType::Activity).await
}

async fn describe_type(service: &Service, task_queue_type: TaskQueueType) -> public::DescribeTaskQueueResponse {
    #[expect(deprecated, reason = "the status is still asked for")]
    let describe = public::DescribeTaskQueueRequest {
        task_queue: Some(TaskQueue { name: "orders".into(), ..TaskQueue::default() }),
        task_queue_type: task_queue_type.into(),
        report_stats: true,
        include_task_queue_status: true,
        ..public::DescribeTaskQueueRequest::default()
    };
    let request = request::DescribeTaskQueueRequest { namespace_id: NAMESPACE.to_string(), request: Some(describe) };
    service.describe_task_queue(request).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_empty_poll_ends_after_a_minute_or_before_its_caller_gives_up() {
    let service = service(&engine());
    for (timeout, seconds) in [(None, 60), (Some(Duration::from_secs(10)), 9), (Some(Duration::from_secs(70)), 60)] {
        let begun = Instant::now();
        let response = service.poll_workflow_task_queue(poll_request(timeout)).await.unwrap();
        assert!(response.task_token.is_empty());
        assert_eq!(begun.elapsed().as_secs(), seconds, "caller's timeout {timeout:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_poll_ends_empty_and_a_second_cancel_is_nothing() {
    let service = service(&engine());
    let begun = Instant::now();
    let polling = tokio::spawn({
        let service = Arc::clone(&service);
        async move { service.poll_workflow_task_queue(poll_request(None)).await.unwrap() }
    });
    yield_now().await;
    for _ in 0..2 {
        let cancel = request::CancelOutstandingPollRequest { poller_id: "poll-1".into(), ..Default::default() };
        service.cancel_outstanding_poll(cancel).await.unwrap();
    }
    assert!(polling.await.unwrap().task_token.is_empty());
    assert_eq!(begun.elapsed().as_secs(), 0);
}

#[tokio::test(start_paused = true)]
async fn shutdown_answers_polls_empty_and_takes_nothing_more() {
    let service = service(&engine());
    let polling = tokio::spawn({
        let service = Arc::clone(&service);
        async move { service.poll_workflow_task_queue(poll_request(None)).await.unwrap() }
    });
    yield_now().await;
    service.shutdown().await;
    assert!(polling.await.unwrap().task_token.is_empty());
    assert!(service.poll_workflow_task_queue(poll_request(None)).await.unwrap_err().is_transient());
    assert!(service.add_task(super::request("wf")).await.unwrap_err().is_transient());
}

#[tokio::test(start_paused = true)]
async fn there_is_a_bound_on_polls_and_on_queues() {
    let config = MatchingConfig { outstanding_polls: 1, loaded_queues: 1, ..MatchingConfig::default() };
    let service = service_with(&engine(), config);
    let _first = service.begin_poll(queue(Kind::Normal), poller(), String::new(), None).unwrap();
    let second = service.begin_poll(queue(Kind::Normal), poller(), String::new(), None);
    assert!(matches!(second, Err(ServiceError::ResourceExhausted { .. })));
    service.add_task(super::request("wf")).await.unwrap();
    let other = AddTaskRequest { task_queue: "other".into(), ..super::request("wf") };
    assert!(matches!(service.add_task(other).await, Err(ServiceError::ResourceExhausted { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_queue_tells_its_pollers_backlog_and_rates() {
    let engine = engine();
    let service = service(&engine);
    for name in names(0..30) {
        service.add_task(super::request(&name)).await.unwrap();
    }
    take(&service).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let described = describe(&service).await;
    assert_eq!(described.pollers.iter().map(|poller| &poller.identity).collect::<Vec<_>>(), ["worker"]);
    let stats = described.stats.unwrap();
    assert_eq!(stats.approximate_backlog_count, 29);
    assert!(stats.approximate_backlog_age.unwrap().seconds >= 5);
    assert_eq!(stats.tasks_add_rate, 1.0);
    assert_eq!(stats.tasks_dispatch_rate, 1.0 / 30.0);
    assert_eq!(described.stats_by_priority_key[&3].approximate_backlog_count, 29);

    service.shutdown().await;
    let described = describe(&super::service(&engine)).await;
    assert_eq!(described.stats.unwrap().approximate_backlog_count, 29, "known from the store after a restart");
    assert!(described.pollers.is_empty());
}

#[tokio::test(start_paused = true)]
async fn pollers_are_served_in_the_order_of_their_arrival() {
    let service = service(&engine());
    let mut polling = Vec::new();
    for _ in 0..5 {
        let service = Arc::clone(&service);
        polling.push(tokio::spawn(async move { take(&service).await }));
        yield_now().await;
    }
    for n in 0..5 {
        assert!(service.add_task(super::request(&n.to_string())).await.unwrap().sync_match);
    }
    for (n, polling) in polling.into_iter().enumerate() {
        assert_eq!(polling.await.unwrap(), Some(n.to_string()));
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_polls_for_nexus_tasks_and_none_wait() {
    let described = describe_type(&service(&engine()), TaskQueueType::Nexus).await;
    assert!(described.pollers.is_empty());
    assert_eq!(described.stats.unwrap().approximate_backlog_count, 0);
}

#[tokio::test(start_paused = true)]
async fn polls_that_are_broken_off_leave_nothing_behind() {
    const POLLS: usize = 10_000;
    let service = service(&engine());
    let mut polling = Vec::new();
    for n in 0..POLLS {
        let service = Arc::clone(&service);
        let poller = Poller { identity: format!("worker-{n}"), ..poller() };
        polling.push(tokio::spawn(async move {
            let mut poll = service.begin_poll(queue(Kind::Normal), poller, String::new(), None).unwrap();
            service.next_task(&mut poll).await.unwrap().is_some()
        }));
    }
    while service.n_waiting_polls(&queue(Kind::Normal)) != (POLLS, POLLS) {
        yield_now().await;
    }
    // From the middle outwards, so that neither end of a list is the cheap one.
    for n in (0..POLLS / 2).rev() {
        polling[n].abort();
        polling[POLLS - 1 - n].abort();
    }
    for polling in polling {
        assert!(polling.await.is_err_and(|error| error.is_cancelled()));
    }
    assert_eq!(service.n_waiting_polls(&queue(Kind::Normal)), (0, 0));
    assert!(describe(&service).await.pollers.len() <= 1_000);
    assert!(!service.add_task(super::request("wf")).await.unwrap().sync_match, "no poll is left to take it");
}

#[tokio::test(start_paused = true)]
async fn long_names_leave_room_for_fewer_queues() {
    let config = MatchingConfig { loaded_queues: 10, ..MatchingConfig::default() };
    let service = service_with(&engine(), config);
    let named = |n: usize| AddTaskRequest { task_queue: format!("{n:0>400}"), ..super::request("wf") };
    for n in 0..3 {
        service.add_task(named(n)).await.unwrap();
    }
    assert!(matches!(service.add_task(named(3)).await, Err(ServiceError::ResourceExhausted { .. })));
    assert!(!service.add_task(named(0)).await.unwrap().sync_match, "those that are loaded go on");
}

#[tokio::test(start_paused = true)]
async fn queues_that_nothing_waits_in_make_room_for_others() {
    let config = MatchingConfig { loaded_queues: 3, ..MatchingConfig::default() };
    let service = service_with(&engine(), config);
    let moment = Some(prost_types::Duration { seconds: 1, nanos: 1_000_000 });
    let poll_once = async |name: &str| {
        let key = QueueKey { name: name.into(), ..queue(Kind::Normal) };
        let mut poll = service.begin_poll(key, poller(), String::new(), moment).unwrap();
        service.next_task(&mut poll).await.map(|found| found.map(|found| found.task().workflow_id.clone()))
    };
    service.add_task(super::request("waits")).await.unwrap();
    for name in ["made up", "made up, too"] {
        assert_eq!(poll_once(name).await.unwrap(), None);
    }
    assert!(matches!(poll_once("fresh").await, Err(ServiceError::ResourceExhausted { .. })), "all were used just now");
    tokio::time::sleep(Duration::from_secs(11)).await;
    for name in ["fresh", "fresh, too"] {
        assert_eq!(poll_once(name).await.unwrap(), None);
    }
    assert_eq!(service.n_loaded_queues(), 3, "the one with a task among them");
    assert_eq!(take_all(&service).await, ["waits"]);
}
