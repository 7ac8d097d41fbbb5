//! From the adder to the poller: sync match, backlog, order, and polls that go away.

use std::sync::Mutex;

use persistence::engine::Partition;
use persistence::model::Model;
use persistence::table::Value;
use persistence::tables::TASK_QUEUES;
use proto::everrow::matching::CancelOutstandingPollRequest;
use tokio::task::{JoinSet, yield_now};
use tokio::time::Instant;

use super::*;

fn engine() -> Arc<dyn Engine> {
    Model::new()
}

#[tokio::test(start_paused = true)]
async fn a_waiting_poller_gets_the_task_and_the_adder_waits_for_its_start() {
    let service = service(&engine());
    let polling = tokio::spawn({
        let service = Arc::clone(&service);
        async move { poll(&service, Kind::Normal).await.unwrap() }
    });
    yield_now().await;
    let adding = tokio::spawn({
        let service = Arc::clone(&service);
        async move { service.add_task(request("wf")).await }
    });
    let dispatched = polling.await.unwrap();
    assert_eq!(dispatched.task().workflow_id, "wf");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!adding.is_finished(), "history has not recorded the start yet");
    assert_eq!(dispatched.settle(Ok("started")).unwrap(), Some("started"));
    assert!(adding.await.unwrap().unwrap().sync_match);
}

#[tokio::test(start_paused = true)]
async fn a_task_without_poller_is_spooled_and_polled_later() {
    let service = service(&engine());
    assert!(!service.add_task(request("wf")).await.unwrap().sync_match);
    assert_eq!(take_all(&service).await, ["wf"]);
}

#[tokio::test(start_paused = true)]
async fn a_poll_that_ends_between_match_and_start_gives_the_task_back() {
    let service = service(&engine());
    service.add_task(request("spooled")).await.unwrap();
    drop(poll(&service, Kind::Normal).await.unwrap());
    assert_eq!(take_all(&service).await, ["spooled"]);

    let polling = tokio::spawn({
        let service = Arc::clone(&service);
        async move { drop(poll(&service, Kind::Normal).await.unwrap()) }
    });
    yield_now().await;
    assert!(!service.add_task(request("handed over")).await.unwrap().sync_match, "no worker has it");
    polling.await.unwrap();
    assert_eq!(take_all(&service).await, ["handed over"]);
}

#[tokio::test(start_paused = true)]
async fn a_poll_that_goes_away_while_it_waits_swallows_nothing() {
    let service = service(&engine());
    for n in 0..20 {
        let polling = tokio::spawn({
            let service = Arc::clone(&service);
            async move { poll(&service, Kind::Normal).await }
        });
        yield_now().await;
        // On even turns it is gone before the task comes, on odd ones right after the task was handed to it.
        if n % 2 == 0 {
            polling.abort();
            yield_now().await;
        }
        let adding = tokio::spawn({
            let service = Arc::clone(&service);
            async move { service.add_task(request(&format!("wf-{n}"))).await.unwrap() }
        });
        yield_now().await;
        polling.abort();
        // With what it may have got.
        drop(polling);
        assert!(!adding.await.unwrap().sync_match);
        assert_eq!(take_all(&service).await, [format!("wf-{n}")]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_that_cannot_be_recorded_is_the_adders_matter_after_a_sync_match() {
    let service = service(&engine());
    let polling = tokio::spawn({
        let service = Arc::clone(&service);
        async move { poll(&service, Kind::Normal).await.unwrap().settle(unavailable()).unwrap() }
    });
    yield_now().await;
    let refused = service.add_task(request("wf")).await.unwrap_err();
    assert_eq!(refused, ServiceError::Unavailable("not now".into()));
    assert_eq!(polling.await.unwrap(), None, "the poll goes on");
    assert_eq!(take_all(&service).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_backlog_task_whose_start_cannot_be_recorded_comes_again() {
    let service = service(&engine());
    service.add_task(request("wf")).await.unwrap();
    // Often enough that it is moved to the end of the backlog on the way.
    for _ in 0..20 {
        let dispatched = poll(&service, Kind::Normal).await.unwrap();
        assert_eq!(dispatched.settle(unavailable()).unwrap(), None);
    }
    assert_eq!(take_all(&service).await, ["wf"]);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_history_does_not_want_is_dropped() {
    let service = service(&engine());
    for started in [not_found(), Err(ServiceError::TaskAlreadyStarted("by another".into()))] {
        service.add_task(request("over")).await.unwrap();
        assert_eq!(poll(&service, Kind::Normal).await.unwrap().settle(started).unwrap(), None);
        assert_eq!(take_all(&service).await, [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_is_not_given_out_after_its_time_to_start() {
    let service = service(&engine());
    service.add_task(expiring("late", Duration::from_secs(5))).await.unwrap();
    service.add_task(expiring("in time", Duration::from_secs(50))).await.unwrap();
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(take_all(&service).await, ["in time"]);
}

#[tokio::test(start_paused = true)]
async fn a_mixed_backlog_drains_by_priority_then_by_age() {
    let service = service(&engine());
    for (name, priority) in [("c", 0), ("e", 5), ("a", 1), ("d", 3), ("b", 1)] {
        service.add_task(urgent(name, priority)).await.unwrap();
    }
    assert_eq!(take_all(&service).await, ["a", "b", "c", "d", "e"]);
}

#[tokio::test(start_paused = true)]
async fn a_backlog_larger_than_memory_drains_in_order() {
    let config = MatchingConfig { backlog_page: 3, backlog_in_memory: 6, ..MatchingConfig::default() };
    let service = service_with(&engine(), config);
    let expected = names(0..40);
    for name in &expected {
        service.add_task(request(name)).await.unwrap();
    }
    assert!(take_all(&service).await.iter().eq(&expected));
}

#[tokio::test(start_paused = true)]
async fn the_rate_that_workers_ask_for_is_kept() {
    let service = service(&engine());
    for name in names(0..40) {
        service.add_task(request(&name)).await.unwrap();
    }
    let begun = Instant::now();
    for _ in 0..40 {
        let poller = Poller { tasks_per_second: Some(10.0), ..poller() };
        let mut poll = service.begin_poll(queue(Kind::Normal), poller, String::new(), None).unwrap();
        service.next_task(&mut poll).await.unwrap().unwrap().settle(Ok(())).unwrap();
    }
    let millis = begun.elapsed().as_millis();
    assert!((2_900..=3_300).contains(&millis), "30 tasks beyond the first second's took {millis} ms");
}

#[tokio::test(start_paused = true)]
async fn the_rate_is_kept_whatever_happens_to_the_wall_clock() {
    let steps: [fn(&SimulatedWall); 2] =
        [|wall| wall.step_back(Duration::from_secs(30)), |wall| wall.step_forward(Duration::from_secs(3600))];
    for step in steps {
        let wall = SimulatedWall::new();
        let service = service_on(&engine(), &wall);
        for name in names(0..4) {
            service.add_task(request(&name)).await.unwrap();
        }
        let begun = Instant::now();
        for n in 0..4 {
            let poller = Poller { tasks_per_second: Some(1.0), ..poller() };
            let mut poll = service.begin_poll(queue(Kind::Normal), poller, String::new(), None).unwrap();
            service.next_task(&mut poll).await.unwrap().unwrap().settle(Ok(())).unwrap();
            if n == 0 {
                step(&wall);
            }
        }
        let millis = begun.elapsed().as_millis();
        assert!((2_900..=3_300).contains(&millis), "3 tasks beyond the first took {millis} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn a_sticky_task_is_refused_unless_its_worker_polled_lately() {
    let (engine, counts) = persistence::counted::Counted::new(engine());
    let service = service(&engine);
    assert_eq!(service.add_task(sticky("wf")).await, Err(ServiceError::StickyWorkerUnavailable));

    let waiting = tokio::spawn({
        let service = Arc::clone(&service);
        async move { poll(&service, Kind::Sticky).await.unwrap().settle(Ok(())).unwrap() }
    });
    yield_now().await;
    assert!(service.add_task(sticky("wf")).await.unwrap().sync_match);
    waiting.await.unwrap();

    assert!(!service.add_task(sticky("while it works")).await.unwrap().sync_match);
    let dispatched = poll(&service, Kind::Sticky).await.unwrap();
    assert_eq!(dispatched.task().workflow_id, "while it works");
    dispatched.settle(Ok(())).unwrap();

    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(service.add_task(sticky("too late")).await, Err(ServiceError::StickyWorkerUnavailable));
    assert_eq!(counts.statements(), 0, "sticky queues are in memory only");
}

#[tokio::test(start_paused = true)]
async fn a_sticky_worker_that_leaves_is_gone_at_once() {
    let service = service(&engine());
    let polling = tokio::spawn({
        let service = Arc::clone(&service);
        async move {
            let mut poll = service.begin_poll(queue(Kind::Sticky), poller(), "leaving".into(), None).unwrap();
            service.next_task(&mut poll).await.unwrap().is_none()
        }
    });
    yield_now().await;
    let cancel = CancelOutstandingPollRequest { poller_id: "leaving".into(), ..Default::default() };
    service.cancel_outstanding_poll(cancel).await.unwrap();
    assert!(polling.await.unwrap());
    assert_eq!(service.add_task(sticky("wf")).await, Err(ServiceError::StickyWorkerUnavailable));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn under_contention_every_task_reaches_a_worker() {
    const TASKS: usize = 2000;
    let model = Model::new();
    let engine: Arc<dyn Engine> = model.clone();
    let service = service(&engine);
    let left = Arc::new(Mutex::new(names(0..TASKS)));
    let mut pollers = JoinSet::new();
    for seed in 0..8_u64 {
        let (service, left) = (Arc::clone(&service), Arc::clone(&left));
        pollers.spawn(async move {
            let mut turn = seed;
            while !left.lock().unwrap().is_empty() {
                turn += 1;
                // Some polls are broken off while they wait, some with the task in hand, some starts fail.
                let patience = Duration::from_micros(50 * (turn % 40));
                let Ok(Some(dispatched)) = tokio::time::timeout(patience, poll(&service, Kind::Normal)).await else {
                    continue;
                };
                match turn % 16 {
                    0..4 => drop(dispatched),
                    4 => assert_eq!(dispatched.settle(unavailable()).unwrap(), None),
                    _ => {
                        left.lock().unwrap().remove(&dispatched.task().workflow_id);
                        dispatched.settle(Ok(())).unwrap();
                    }
                }
            }
        });
    }
    let mut adders = JoinSet::new();
    for name in names(0..TASKS) {
        let service = Arc::clone(&service);
        adders.spawn(async move { while service.add_task(request(&name)).await.is_err() {} });
    }
    adders.join_all().await;
    pollers.join_all().await;
    service.shutdown().await;
    let name = Value::from("orders");
    let key = vec![Value::from(NAMESPACE), name, Value::from(i32::from(TaskQueueType::Activity))];
    let (_, rows) = model.dump(&Partition::new(&TASK_QUEUES, key));
    assert_eq!(rows.len(), 0, "the store has forgotten what was started");
}

#[tokio::test(start_paused = true)]
async fn a_sticky_queue_is_not_the_normal_queue_of_the_same_name() {
    let service = service(&engine());
    service.add_task(request("normal")).await.unwrap();
    let mut polling = std::pin::pin!(poll(&service, Kind::Sticky));
    let early = tokio::time::timeout(Duration::from_secs(30), &mut polling).await;
    assert!(early.is_err(), "a sticky poll got a normal task");
    assert_eq!(take_all(&service).await, ["normal"]);
}
