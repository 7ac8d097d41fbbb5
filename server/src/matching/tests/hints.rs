//! The backlog hint of an answer, and how a hint that has become wrong is taken back.

use persistence::model::Model;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::Instant;

use super::*;

/// State of a sticky queue's tasks before its hint is read.
struct Case {
    name: &'static str,
    added: usize,
    /// Handed to a poll, whose start is not recorded yet.
    in_flight: usize,
    /// Their start could not be recorded: they come again later.
    delayed: usize,
    /// History does not want them any more.
    dropped: usize,
    wait: Duration,
    hint: i64,
}

const CASE: Case = Case { name: "", added: 0, in_flight: 0, delayed: 0, dropped: 0, wait: Duration::ZERO, hint: 0 };

/// A sticky queue counts as polled for a while after its last poll.
async fn polled_service() -> Arc<Service> {
    let engine: Arc<dyn Engine> = Model::new();
    let service = service(&engine);
    let moment = Some(prost_types::Duration { seconds: 1, nanos: 1_000_000 });
    let mut poll = service.begin_poll(queue(Kind::Sticky), poller(), String::new(), moment).unwrap();
    assert!(service.next_task(&mut poll).await.unwrap().is_none());
    service
}

async fn add(service: &Service, workflow_id: &str) {
    assert!(!service.add_task(sticky(workflow_id)).await.unwrap().sync_match);
}

/// A poll that was answered: after how long, and whether it got a task.
fn polling(service: &Arc<Service>) -> JoinHandle<(Duration, Option<Dispatched>)> {
    let service = Arc::clone(service);
    tokio::spawn(async move {
        let begun = Instant::now();
        let dispatched = poll(&service, Kind::Sticky).await;
        (begun.elapsed(), dispatched)
    })
}

#[tokio::test(start_paused = true)]
async fn a_hint_counts_what_another_poll_would_get_at_once() {
    let cases = [
        Case { name: "nothing was added", ..CASE },
        Case { name: "all wait", added: 3, hint: 3, ..CASE },
        Case { name: "all were handed out", added: 3, in_flight: 3, ..CASE },
        Case { name: "some were handed out", added: 3, in_flight: 2, hint: 1, ..CASE },
        Case { name: "some come again later", added: 3, delayed: 2, hint: 1, ..CASE },
        Case { name: "some were dropped", added: 3, dropped: 2, hint: 1, ..CASE },
        Case { name: "all have expired", added: 3, wait: Duration::from_secs(6), ..CASE },
    ];
    for Case { name, added, in_flight, delayed, dropped, wait, hint } in cases {
        let service = polled_service().await;
        for n in 0..added {
            add(&service, &format!("wf-{n}")).await;
        }
        let mut held = Vec::new();
        for _ in 0..in_flight {
            held.push(poll(&service, Kind::Sticky).await.unwrap());
        }
        for started in [unavailable(), not_found()].into_iter().zip([delayed, dropped]) {
            for _ in 0..started.1 {
                let dispatched = poll(&service, Kind::Sticky).await.unwrap();
                assert_eq!(dispatched.settle(started.0.clone()).unwrap(), None);
            }
        }
        tokio::time::advance(wait).await;
        assert_eq!(service.backlog_count_hint(&queue(Kind::Sticky)), hint, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn tasks_that_a_rate_limit_withholds_are_promised_to_the_polls_that_wait() {
    let service = service(&(Model::new() as Arc<dyn Engine>));
    let limited = || Poller { tasks_per_second: Some(0.001), ..poller() };
    let mut first = service.begin_poll(queue(Kind::Normal), limited(), String::new(), None).unwrap();
    service.add_task(request("first")).await.unwrap();
    service.next_task(&mut first).await.unwrap().unwrap().settle(Ok(())).unwrap();
    let mut waiting = service.begin_poll(queue(Kind::Normal), limited(), String::new(), None).unwrap();
    let waiting = tokio::spawn({
        let service = Arc::clone(&service);
        async move { service.next_task(&mut waiting).await.unwrap().is_some() }
    });
    yield_now().await;
    for name in ["second", "third"] {
        service.add_task(request(name)).await.unwrap();
    }
    assert_eq!(service.backlog_count_hint(&queue(Kind::Normal)), 1);
    waiting.abort();
}

#[tokio::test(start_paused = true)]
async fn a_positive_hint_is_taken_back_once_polls_wait_for_nothing() {
    let service = polled_service().await;
    for name in ["taken", "over"] {
        add(&service, name).await;
    }
    poll(&service, Kind::Sticky).await.unwrap().settle(Ok(())).unwrap();
    assert_eq!(service.backlog_count_hint(&queue(Kind::Sticky)), 1);
    // Without an answer to the worker, which still believes in a backlog.
    assert_eq!(poll(&service, Kind::Sticky).await.unwrap().settle(not_found()).unwrap(), None);
    let waiting = [polling(&service), polling(&service)];
    for waiting in waiting {
        let (waited, dispatched) = waiting.await.unwrap();
        assert!(dispatched.is_none());
        assert_eq!(waited.as_secs(), 1, "freed by an empty answer");
    }
    let (waited, _) = polling(&service).await.unwrap();
    assert_eq!(waited.as_secs(), 60, "once is enough");
}

#[tokio::test(start_paused = true)]
async fn a_hint_is_not_taken_back_while_there_is_a_backlog() {
    let service = polled_service().await;
    for name in ["a", "b", "c"] {
        add(&service, name).await;
    }
    for hint in [2, 1, 0] {
        let (_, dispatched) = polling(&service).await.unwrap();
        dispatched.unwrap().settle(Ok(())).unwrap();
        assert_eq!(service.backlog_count_hint(&queue(Kind::Sticky)), hint);
        tokio::time::advance(Duration::from_millis(1_100)).await;
    }
    // The answers may have been processed in any order, so the last one does not settle it.
    let (waited, dispatched) = polling(&service).await.unwrap();
    assert!(dispatched.is_none());
    assert_eq!(waited.as_secs(), 0);
}
