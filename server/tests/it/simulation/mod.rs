//! Seeded simulation: history, matching, workers and clients in one thread, on simulated time and on the model engine
//! with injected faults. A failure prints its seed, and the seed replays it.

#![expect(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "what a test does not expect fails it there")]

mod world;
mod worker;
mod client;
mod checker;
mod races;
mod poison;
mod deleting;
mod families;
mod updates;
mod interventions;
mod lists;
mod schedules;
mod clock;

use std::sync::Arc;
use std::time::Duration;

use persistence::model::{Faults, Model, Writes};
use server::history::config::HistoryConfig;

use self::client::{Clients, Sent};
use self::world::World;

/// Unknown outcomes on a fifth of all conditional writes, in all three ways they can come about.
fn unknown_outcomes(seed: u64) -> Faults {
    Faults {
        timeout_not_applied: 0.07,
        timeout_applied: 0.07,
        applied_later: 0.06,
        latency: Duration::from_micros(500)..Duration::from_millis(8),
        writes: Writes::OnlyConditional,
        ..Faults::none(seed)
    }
}

/// Everything at once: also writes and reads that fail outright.
fn all_faults(seed: u64) -> Faults {
    Faults { unavailable: 0.05, read_unavailable: 0.02, writes: Writes::All, ..unknown_outcomes(seed) }
}

struct Plan {
    n_workflows: usize,
    n_activities: usize,
    n_signals: usize,
}

/// Runs a load under faults, lets the faults stop, and checks that all of it came to a good end.
async fn load_under_faults(seed: u64, faults: Faults, plan: &Plan, config: HistoryConfig) -> usize {
    let model = Model::with_faults(faults);
    let world = World::start_as(&model, seed, config).await;
    let clients = Clients::start(&world, plan.n_workflows, plan.n_activities, plan.n_signals);
    let sent = clients.all_acknowledged().await;
    model.stop_faults();
    world.all_closed(&sent).await;
    world.stop().await;
    check_end(&model, seed + 1, &sent).await
}

/// What counts is what the store has: a new owner reads it. Returns how many transitions there were.
async fn check_end(model: &Arc<Model>, seed: u64, sent: &Sent) -> usize {
    let successor = World::start(model, seed).await;
    let n_transitions = checker::check(&successor, sent).await;
    // By then all visibility writes of the successor are done; those of others may be in flight for longer.
    tokio::time::sleep(Duration::from_secs(60)).await;
    model.deliver_late();
    checker::check_lists(&successor, sent).await;
    successor.stop().await;
    n_transitions
}

/// Runs each seed in a world of its own, on as many threads as there are cores.
fn for_seeds(seeds: std::ops::Range<u64>, run: impl Fn(u64) -> usize + Send + Sync) -> Vec<usize> {
    let next = std::sync::atomic::AtomicU64::new(seeds.start);
    let results = std::sync::Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if seed >= seeds.end {
                        break;
                    }
                    let name_the_seed = SeedPrinter(seed);
                    let result = run(seed);
                    std::mem::forget(name_the_seed);
                    results.lock().unwrap().push(result);
                }
            });
        }
    });
    results.into_inner().unwrap()
}

struct SeedPrinter(u64);

impl Drop for SeedPrinter {
    fn drop(&mut self) {
        eprintln!("simulation failed with seed {}", self.0);
    }
}

fn simulate<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(future)
}

#[test]
fn unknown_outcomes_lose_and_double_nothing_and_every_reply_is_true() {
    let plan = Plan { n_workflows: 100, n_activities: 8, n_signals: 60 };
    let counts = for_seeds(0..100, |seed| {
        simulate(load_under_faults(seed, unknown_outcomes(seed), &plan, HistoryConfig::default()))
    });
    assert_eq!(counts.len(), 100);
    assert!(counts.iter().all(|n_transitions| *n_transitions >= 10_000), "too few transitions: {counts:?}");
}

#[test]
fn any_store_fault_is_survived() {
    let plan = Plan { n_workflows: 20, n_activities: 4, n_signals: 20 };
    for_seeds(1000..1030, |seed| simulate(load_under_faults(seed, all_faults(seed), &plan, HistoryConfig::default())));
}

#[test]
fn two_owners_fighting_for_a_shard_never_both_write() {
    let plan = Plan { n_workflows: 6, n_activities: 3, n_signals: 30 };
    let fight = |seed| async move {
        let faults = Faults { latency: Duration::from_micros(500)..Duration::from_millis(8), ..Faults::none(seed) };
        let model = Model::with_faults(faults);
        let one = World::start(&model, seed).await;
        let other = one.start_rival(&model, seed + 7).await;
        // Each client talks to both nodes in turn, as if the ring were in dispute.
        let clients = Clients::start_on(&[&one, &other], plan.n_workflows, plan.n_activities, plan.n_signals);
        let sent = clients.all_acknowledged().await;
        other.stop_history().await;
        one.all_closed(&sent).await;
        one.stop().await;
        check_end(&model, seed + 1, &sent).await
    };
    for_seeds(2000..2020, |seed| simulate(fight(seed)));
}

#[test]
fn a_node_that_dies_again_and_again_loses_nothing() {
    let plan = Plan { n_workflows: 10, n_activities: 4, n_signals: 20 };
    let crashes = |seed| async move {
        let model = Model::with_faults(unknown_outcomes(seed));
        let mut world = World::start(&model, seed).await;
        let clients = Clients::start(&world, plan.n_workflows, plan.n_activities, plan.n_signals);
        for crash in 1..=8 {
            tokio::time::sleep(Duration::from_millis(37 * crash)).await;
            world = world.crash_and_restart(&model, seed + crash).await;
        }
        let sent = clients.all_acknowledged().await;
        model.stop_faults();
        world.all_closed(&sent).await;
        world.stop().await;
        check_end(&model, seed + 100, &sent).await
    };
    for_seeds(3000..3020, |seed| simulate(crashes(seed)));
}
