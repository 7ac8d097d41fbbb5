//! Writes changes to visibility. Changes of all shards of a node are collected for a moment and written together: a run
//! that closes by then is written once, and many runs cost one batch.
//!
//! A round reads the runs' current state, so it never writes an older state than an earlier round; rounds of a shard
//! are sequential.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cluster::errors::ServiceError;
use futures_util::StreamExt as _;
use persistence::stores::executions::DeadLetter;
use persistence::stores::visibility::record::Record;
use persistence::stores::visibility::{self, Change, Known};
use proto::temporal::api::common::v1::Payload;
use tokio::sync::oneshot;
use tracing::warn;
use workflow::ExecutionKey;

use super::dead_letters::{self, dead_letter_task};
use super::runner::PAGE_ROWS;
use super::{Visibility, backoff, lock};
use crate::history::listing::{changed, record_of, remove_replaced};
use crate::history::shard::Shard;
use crate::peers::Peers;

/// Runs per round; the rest waits for the next.
const ROUND_RUNS: usize = 1000;
/// Runs read at once. Most are in memory; one that is not costs a read of the store.
const READS: usize = 32;
/// Failed attempts after which a run with a permanent error is skipped and its tasks become dead letters. Few, because
/// the others wait.
const HOPELESS_MAX: u32 = 2;

/// A run or schedule that is being deleted; `done` is notified once visibility has deleted it.
pub(crate) struct Removal {
    pub(crate) key: ExecutionKey,
    pub(crate) forgotten: Box<visibility::Removal>,
    pub(crate) done: oneshot::Sender<()>,
}

/// Tasks of one run, coalesced for a round.
#[derive(Default)]
struct Pending {
    tasks: Vec<Visibility>,
    is_first: bool,
    is_schedule: bool,
    /// Search attributes as visibility has them.
    replaced: BTreeMap<String, Payload>,
}

/// Runs the shard's visibility tasks until the shard is closed.
pub(crate) async fn run_visibility(shard: Arc<Shard>, peers: Peers) {
    loop {
        tokio::select! {
            biased;
            _ = shard.committer.ended() => return,
            () = next_round(&shard, &peers) => {}
        }
        if !read_page(&shard).await {
            continue;
        }
        let removals: Vec<Removal> = std::mem::take(&mut *lock(&shard.queues.removals));
        let tasks: Vec<Visibility> = take_ready(&shard);
        let fresh_above = lock(&shard.queues.visibility).stored_up_to;
        if !(Round { shard: &shard, peers: &peers }).write(tasks, removals, fresh_above).await {
            return;
        }
    }
}

/// Waits for work, then for the node's next round.
async fn next_round(shard: &Shard, peers: &Peers) {
    loop {
        let has_work = {
            let queue = lock(&shard.queues.visibility);
            !queue.ready.is_empty() || queue.cursor.is_behind()
        };
        if has_work || !lock(&shard.queues.removals).is_empty() {
            break;
        }
        shard.queues.visibility_wake.notified().await;
    }
    if let Ok(visibility) = peers.visibility() {
        visibility.next_round().await;
    }
}

fn take_ready(shard: &Shard) -> Vec<Visibility> {
    let mut queue = lock(&shard.queues.visibility);
    let mut runs = BTreeSet::new();
    let mut n_tasks = 0;
    for task in &queue.ready {
        runs.insert(task.key.run_id);
        if runs.len() > ROUND_RUNS {
            break;
        }
        n_tasks += 1;
    }
    queue.ready.drain(..n_tasks).collect()
}

/// Reads tasks that are only in the store, if there is room. False: the read failed.
async fn read_page(shard: &Shard) -> bool {
    let after = lock(&shard.queues.visibility).cursor.begin_page(shard.queues.in_memory_max);
    let Some(after) = after.filter(|_| shard.committer.is_open()) else { return true };
    let read = || shard.stores.executions.read_visibility(shard.id, after, PAGE_ROWS);
    match dead_letters::read_page(shard, read).await {
        Ok(page) => {
            let mut queue = lock(&shard.queues.visibility);
            let ids: Vec<i64> = page.tasks.iter().map(|task| task.task_id).collect();
            queue.stored_up_to = ids.last().copied().unwrap_or(queue.stored_up_to);
            queue.cursor.end_page(&ids, !page.has_more);
            queue.ready.extend(page.tasks);
            true
        }
        Err(error) => {
            warn!(shard = shard.id.0, %error, "visibility queue read failed; retrying");
            tokio::time::sleep(shard.env.jittered(backoff(4))).await;
            false
        }
    }
}

struct Round<'a> {
    shard: &'a Shard,
    peers: &'a Peers,
}

impl Round<'_> {
    /// Retries until everything is written. False: the shard was closed first. Tasks above `fresh_above` come from
    /// memory and were never tried.
    async fn write(&self, tasks: Vec<Visibility>, mut removals: Vec<Removal>, mut fresh_above: i64) -> bool {
        let ids: Vec<i64> = tasks.iter().map(|task| task.task_id).collect();
        let mut pending = group(tasks);
        for removal in &mut removals {
            if let Some(pending_put) = pending.remove(&removal.key) {
                remove_replaced(&mut removal.forgotten, &pending_put.replaced);
            }
        }
        let mut tries = 0;
        loop {
            match self.attempt(&mut pending, &removals, fresh_above, tries).await {
                Ok(()) => break,
                Err(_) if !self.shard.committer.is_open() => return false,
                Err(error) => {
                    // It is unknown what the failed attempt has written.
                    fresh_above = i64::MAX;
                    tries += 1;
                    if tries >= 4 && tries.is_power_of_two() {
                        warn!(shard = self.shard.id.0, tries, %error, "visibility write failed; retrying");
                    }
                    tokio::time::sleep(self.shard.env.jittered(backoff(tries))).await;
                }
            }
        }
        for removal in removals {
            // The caller may be gone.
            let _ = removal.done.send(());
        }
        ids.into_iter().for_each(|id| self.shard.queues.visibility_done(id));
        true
    }

    async fn attempt(
        &self,
        pending: &mut BTreeMap<ExecutionKey, Pending>,
        removals: &[Removal],
        fresh_above: i64,
        tries: u32,
    ) -> Result<(), ServiceError> {
        let forgotten = removals.iter().map(|removal| Change::Remove(removal.forgotten.clone()));
        let mut changes: Vec<Change> = forgotten.collect();
        let keys: Vec<(ExecutionKey, bool)> =
            pending.iter().map(|(key, pending)| (key.clone(), pending.is_schedule)).collect();
        let mut reads = futures_util::stream::iter(keys)
            .map(|(key, is_schedule)| async move { (self.record(&key, is_schedule).await, key) })
            .buffer_unordered(READS);
        let mut hopeless = Vec::new();
        while let Some((record, key)) = reads.next().await {
            match record {
                Ok(record) => changes.push(pending[&key].change(record, fresh_above)),
                // Deleted: its removal deletes the record, or has done so.
                Err(ServiceError::NotFound(_)) => {}
                Err(error) if tries >= HOPELESS_MAX && !error.is_transient() => hopeless.push(key),
                Err(error) => return Err(error),
            }
        }
        drop(reads);
        for key in hopeless {
            for task in pending.remove(&key).unwrap_or_default().tasks {
                dead_letter_task(self.shard, &DeadLetter::Visibility(task)).await?;
            }
        }
        if changes.is_empty() { Ok(()) } else { self.peers.visibility()?.write(changes).await }
    }
}

impl Round<'_> {
    /// The visibility record of the current state.
    async fn record(&self, key: &ExecutionKey, is_schedule: bool) -> Result<Record, ServiceError> {
        if is_schedule {
            return self.shard.visible_schedule(key).await;
        }
        Ok(record_of(self.shard.read(key).await?.as_ref()))
    }
}

fn group(tasks: Vec<Visibility>) -> BTreeMap<ExecutionKey, Pending> {
    let mut pending: BTreeMap<ExecutionKey, Pending> = BTreeMap::new();
    for task in tasks {
        let run = pending.entry(task.key.clone()).or_default();
        run.is_first |= task.task.is_first;
        run.is_schedule |= task.task.is_schedule;
        for (name, value) in &task.task.replaced {
            // The first of several is what visibility has.
            run.replaced.entry(name.clone()).or_insert_with(|| value.clone());
        }
        run.tasks.push(task);
    }
    pending
}

impl Pending {
    fn change(&self, record: Record, fresh_above: i64) -> Change {
        let is_fresh = self.tasks.iter().all(|task| task.task_id > fresh_above);
        let known = match (self.is_first, is_fresh) {
            (true, true) => Known::Never,
            (true, false) => Known::Perhaps,
            (false, _) => Known::Surely,
        };
        changed(record, known, &self.replaced)
    }
}

impl Shard {
    /// Deletes a run or a schedule from visibility, and returns when that is done.
    pub(crate) async fn delete_visibility(
        &self,
        key: &ExecutionKey,
        forgotten: Box<visibility::Removal>,
    ) -> Result<(), ServiceError> {
        let (done, written) = oneshot::channel();
        lock(&self.queues.removals).push(Removal { key: key.clone(), forgotten, done });
        self.queues.visibility_wake.notify_one();
        tokio::select! {
            written = written => written.map_err(|_| closing()),
            _ = self.committer.ended() => Err(closing()),
        }
    }
}

fn closing() -> ServiceError {
    ServiceError::Unavailable("the shard is closing".into())
}
