//! Sends small writes, several in a request, as `lanes` groups them.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard};

use futures_util::FutureExt as _;
use persistence::engine::{Batch, TableRef};
use persistence::error::StoreError;
use tokio::sync::oneshot;

use crate::classify::Write;
use crate::lanes::{Group, Lanes, NodeId, SmallWrite};
use crate::plan::{self, Step};
use crate::requests::Requests;

pub(crate) struct Shared {
    requests: Arc<Requests>,
    lanes: Arc<Mutex<Lanes>>,
}

impl Shared {
    pub(crate) fn new(requests: Arc<Requests>) -> Self {
        Self { requests, lanes: Arc::default() }
    }

    /// `batch` must satisfy `lanes::may_share`.
    pub(crate) async fn write(&self, batch: Batch) -> Result<(), StoreError> {
        let Some(node) = self.requests.node_of(&batch.partition) else {
            return self.requests.write(steps([&batch]), Write::Plain).await.map(drop);
        };
        let (told, outcome) = oneshot::channel();
        let group = lock(&self.lanes).add(node, SmallWrite { batch, told });
        if let Some(group) = group {
            // Spawned: other writes wait for this request and those after it, even if the caller is cancelled.
            tokio::spawn(send(Arc::clone(&self.requests), Arc::clone(&self.lanes), node, group));
        }
        let lost = |_| Err(StoreError::OutcomeUnknown("the request of this write was given up".to_owned()));
        outcome.await.unwrap_or_else(lost)
    }
}

/// Sends a group, then the next ones that gathered while it was in flight.
async fn send(requests: Arc<Requests>, lanes: Arc<Mutex<Lanes>>, node: NodeId, group: Group) {
    let mut next = Some(group);
    while let Some(group) = next {
        let write = async {
            let steps = steps(group.writes.iter().map(|write| &write.batch));
            requests.write_to(node, steps).await
        };
        let written = AssertUnwindSafe(write).catch_unwind().await;
        // A panic ends the request too: otherwise the lane would block all later writes.
        let written = written.unwrap_or_else(|_| Err(StoreError::OutcomeUnknown("sending it panicked".to_owned())));
        next = lock(&lanes).finished(node);
        for write in group.writes {
            // The caller may have been cancelled.
            let _ = write.told.send(written.clone());
        }
    }
}

fn lock(lanes: &Mutex<Lanes>) -> MutexGuard<'_, Lanes> {
    lanes.lock().expect("no holder of this lock can panic")
}

fn steps<'a>(batches: impl IntoIterator<Item = &'a Batch>) -> Vec<(TableRef, Step)> {
    let of_batch = |batch: &'a Batch| {
        let steps = plan::steps(batch).expect("a batch without conditions has none that no partition meets");
        steps.into_iter().map(|step| (batch.partition.table, step))
    };
    batches.into_iter().flat_map(of_batch).collect()
}
