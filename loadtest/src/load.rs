//! Load generators: operations begin when one ends (closed loop) or when they are due (open loop).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::bench::SharedBench;
use crate::pace::{self, Pace, Stairs};
use crate::plan::{Extent, Load};
use crate::record::Recorder;
use crate::scenarios::Scenario;

/// Shared state of the operations of a load.
#[derive(Clone)]
pub(crate) struct Operations {
    pub(crate) bench: SharedBench,
    pub(crate) scenario: Arc<dyn Scenario>,
    pub(crate) recorder: Arc<Recorder>,
    /// The number of the next operation. Never used twice, so that each has a value of its own.
    pub(crate) next: Arc<AtomicU64>,
}

/// One phase of load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stretch {
    pub(crate) extent: Extent,
    pub(crate) ramp: std::time::Duration,
    pub(crate) began_at: Instant,
}

/// Returns when the last operation has ended.
pub(crate) async fn run(operations: &Operations, load: &Load, stretch: Stretch) {
    match load {
        Load::Closed { concurrency } => closed(operations, stretch, Stairs::level(*concurrency)).await,
        Load::Stepped { steps, each } => closed(operations, stretch, Stairs::new(steps, *each)).await,
        Load::Open { rate, in_flight_max } => {
            open(operations, stretch, Pace { rate: *rate, ramp: stretch.ramp }, *in_flight_max).await;
        }
    }
}

async fn closed(operations: &Operations, stretch: Stretch, stairs: Stairs) {
    let begun = Arc::new(AtomicU64::new(0));
    let mut loops = JoinSet::new();
    let highest = stairs.highest();
    for n in 0..highest {
        let (operations, begun, stairs) = (operations.clone(), Arc::clone(&begun), stairs.clone());
        loops.spawn(async move {
            tokio::time::sleep_until(stretch.began_at + pace::joins_at(n, highest, stretch.ramp)).await;
            while let Some(turn) = stairs.turn(n, stretch.began_at.elapsed()) {
                let turn = stretch.began_at + turn;
                if !stretch.has_room_for(begun.fetch_add(1, Ordering::Relaxed), turn) {
                    break;
                }
                if turn > Instant::now() {
                    tokio::time::sleep_until(turn).await;
                }
                operations.one(Instant::now()).await;
            }
        });
    }
    while loops.join_next().await.is_some() {}
}

async fn open(operations: &Operations, stretch: Stretch, pace: Pace, in_flight_max: usize) {
    let places = Arc::new(Semaphore::new(in_flight_max));
    let mut under_way = JoinSet::new();
    for n in 0.. {
        let due_at = stretch.began_at + pace.due(n);
        if !stretch.has_room_for(n, due_at) {
            break;
        }
        tokio::time::sleep_until(due_at).await;
        // Waiting for a permit counts as latency: the operation was due all the same.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { break };
        let operations = operations.clone();
        under_way.spawn(async move {
            operations.one(due_at).await;
            drop(place);
        });
        while under_way.try_join_next().is_some() {}
    }
    while under_way.join_next().await.is_some() {}
}

impl Stretch {
    fn has_room_for(&self, n: u64, at: Instant) -> bool {
        match self.extent {
            Extent::Count(count) => n < count,
            Extent::Duration(duration) => at < self.began_at + duration,
        }
    }
}

impl Operations {
    async fn one(&self, due_at: Instant) {
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        match self.scenario.operate(&self.bench, n, due_at).await {
            Ok(latency) => self.recorder.done(latency),
            Err(error) => self.recorder.failed(format!("{error:#}")),
        }
    }
}
