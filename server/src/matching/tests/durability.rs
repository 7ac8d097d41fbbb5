//! Statements to the store, their number, and that nothing acknowledged is lost whatever the store does.

use std::sync::atomic::Ordering::Relaxed;

use persistence::counted::{Counted, Counts};
use persistence::model::{Fault, Faults, Model};
use tokio::task::{JoinSet, yield_now};

use super::*;

fn counted() -> (Arc<dyn Engine>, Arc<Counts>) {
    Counted::new(Model::new())
}

fn writes(counts: &Counts) -> u64 {
    counts.plain_writes.load(Relaxed) + counts.conditional_writes.load(Relaxed)
}

/// As history does: until it is taken.
async fn add_until_taken(service: &Service, workflow_id: &str) {
    while service.add_task(request(workflow_id)).await.is_err() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn polling_and_then_adding_writes_nothing() {
    let (engine, counts) = counted();
    let service = service(&engine);
    for n in 0..50 {
        let polling = tokio::spawn({
            let service = Arc::clone(&service);
            async move { take(&service).await }
        });
        yield_now().await;
        assert!(service.add_task(request(&n.to_string())).await.unwrap().sync_match);
        assert_eq!(polling.await.unwrap(), Some(n.to_string()));
    }
    assert_eq!(writes(&counts), 0);
    assert_eq!(counts.reads.load(Relaxed), 1, "one read when the queue is loaded");
}

#[tokio::test(start_paused = true)]
async fn a_thousand_tasks_are_spooled_in_few_appends_and_read_back_from_memory() {
    let (engine, counts) = counted();
    let service = service(&engine);
    let mut adding = JoinSet::new();
    for name in names(0..1000) {
        let service = Arc::clone(&service);
        adding.spawn(async move { service.add_task(request(&name)).await.unwrap() });
    }
    while let Some(added) = adding.join_next().await {
        assert!(!added.unwrap().sync_match);
    }
    assert!(writes(&counts) <= 20, "{} writes", writes(&counts));
    let n_reads = counts.reads.load(Relaxed);
    let taken: BTreeSet<String> = take_all(&service).await.into_iter().collect();
    assert_eq!(taken, names(0..1000));
    assert_eq!(counts.reads.load(Relaxed), n_reads, "what was just written is in memory");
}

#[tokio::test(start_paused = true)]
async fn a_task_added_before_any_poller_is_found_after_a_restart() {
    let engine: Arc<dyn Engine> = Model::new();
    let before = service(&engine);
    before.add_task(request("before a shutdown")).await.unwrap();
    before.shutdown().await;
    let crashing = service(&engine);
    crashing.add_task(request("before a crash")).await.unwrap();
    drop(crashing);
    assert_eq!(take_all(&service(&engine)).await, ["before a shutdown", "before a crash"]);
}

#[tokio::test(start_paused = true)]
async fn what_was_started_does_not_come_back_after_a_shutdown() {
    let model = Model::new();
    model.remember_dead_rows();
    let engine: Arc<dyn Engine> = model.clone();
    let before = service(&engine);
    for name in names(0..10) {
        before.add_task(request(&name)).await.unwrap();
    }
    for _ in 0..7 {
        take(&before).await.unwrap();
    }
    before.shutdown().await;
    let n_dead = model.scanned().dead_rows;
    let taken: BTreeSet<String> = take_all(&service(&engine)).await.into_iter().collect();
    assert_eq!(taken, names(7..10));
    assert_eq!(model.scanned().dead_rows, n_dead, "what was deleted is not read again");
}

#[tokio::test(start_paused = true)]
async fn an_idle_queue_asks_nothing_of_the_store_and_is_unloaded() {
    let (engine, counts) = counted();
    let service = service(&engine);
    for name in names(0..5) {
        service.add_task(request(&name)).await.unwrap();
    }
    assert_eq!(take_all(&service).await.len(), 5);
    tokio::time::sleep(Duration::from_secs(20)).await;
    let n_quiet = counts.statements();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(counts.statements(), n_quiet, "one checkpoint after the last task, then silence");
    assert_eq!(service.n_loaded_queues(), 0);
    assert_eq!(take_all(&service).await, [""; 0], "the checkpoint deleted what was done");
}

#[tokio::test(start_paused = true)]
async fn a_deposed_owner_writes_nothing_and_loses_nothing() {
    let engine: Arc<dyn Engine> = Model::new();
    let (first, second) = (service(&engine), service(&engine));
    first.add_task(request("by the first")).await.unwrap();
    second.add_task(request("by the second")).await.unwrap();
    let refused = first.add_task(request("by the deposed")).await.unwrap_err();
    assert!(refused.is_transient(), "{refused}");
    second.add_task(request("by the second again")).await.unwrap();
    let taken: BTreeSet<String> = take_all(&second).await.into_iter().collect();
    assert_eq!(taken, ["by the first", "by the second", "by the second again"].map(String::from).into());

    // The deposed owner loads the queue again at its next call, and takes the lease back.
    add_until_taken(&first, "by the first again").await;
    assert!(take_all(&first).await.contains(&"by the first again".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn an_append_with_any_outcome_is_acknowledged_only_if_it_lasts() {
    for fault in [Fault::Unavailable, Fault::TimeoutNotApplied, Fault::TimeoutApplied, Fault::AppliedLater] {
        let model = Model::new();
        let engine: Arc<dyn Engine> = model.clone();
        let service = service(&engine);
        service.add_task(request("first")).await.unwrap();
        model.inject_when(fault, |batch| !batch.puts.is_empty());
        let added = service.add_task(request("second")).await;
        assert_eq!(added.is_ok(), fault != Fault::Unavailable, "{fault:?}: an unknown outcome is found out");
        add_until_taken(&service, "third").await;
        drop(service);

        let expected: &[&str] = if added.is_ok() { &["first", "second", "third"] } else { &["first", "third"] };
        assert_eq!(take_all(&super::service(&engine)).await, expected, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_acknowledged_task_is_lost_in_a_storm_of_faults_and_restarts() {
    for seed in 0..20 {
        let model = Model::with_faults(Faults {
            unavailable: 0.1,
            timeout_not_applied: 0.1,
            timeout_applied: 0.1,
            applied_later: 0.1,
            read_unavailable: 0.1,
            latency: Duration::from_millis(1)..Duration::from_millis(20),
            ..Faults::none(seed)
        });
        let engine: Arc<dyn Engine> = model.clone();
        let mut taken = BTreeSet::new();
        for restart in 0..4 {
            let config = MatchingConfig { backlog_page: 8, backlog_in_memory: 16, ..MatchingConfig::default() };
            let service = service_with(&engine, config);
            let mut adding = JoinSet::new();
            for name in names(restart * 50..restart * 50 + 50) {
                let service = Arc::clone(&service);
                adding.spawn(async move { add_until_taken(&service, &name).await });
            }
            for _ in 0..20 {
                taken.extend(take(&service).await);
            }
            adding.join_all().await;
            // By turns a crash and a shutdown.
            if restart % 2 == 0 {
                service.shutdown().await;
            }
        }
        model.stop_faults();
        taken.extend(take_all(&service(&engine)).await);
        assert_eq!(taken, names(0..200), "seed {seed}");
    }
}
