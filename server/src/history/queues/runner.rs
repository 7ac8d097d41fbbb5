//! The loops that feed a shard's queue tasks to the pool, and retry failed ones.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use cluster::errors::ServiceError;
use persistence::stores::executions::{DeadLetter, QueuedTimer, TimerKey};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinSet;
use tracing::warn;
use workflow::{Input, TimerTask, Timestamp};

use super::dead_letters::{dead_letter_task, read_page};
use super::timers::Wanted;
use super::{Pool, Timer, Transfer, backoff, lock, schedule, transfer};
use crate::history::shard::Shard;
use crate::peers::Peers;

/// Rows read at once. A row of the transfer queue holds the tasks of a whole commit.
pub(super) const PAGE_ROWS: usize = 256;
/// Timer rows per read. A row holds 1 to 256 timers, so a read may return 1.6 times the default in-memory limit.
const TIMER_ROWS: usize = 128;
/// Failed tries before the first warning, which is repeated at each doubling.
const TRIES_WARN: u32 = 8;

/// Non-transient failures after which a task becomes a dead letter.
const HOPELESS_MAX: u32 = 10;

/// Runs the shard's transfer tasks until the shard is closed.
pub(crate) async fn run_transfer(shard: Arc<Shard>, peers: Peers, pool: Pool) {
    let mut running = JoinSet::new();
    loop {
        while running.try_join_next().is_some() {}
        let tasks: Vec<Transfer> = lock(&shard.queues.transfer).ready.drain(..).collect();
        for task in tasks {
            let (shard, peers, pool) = (Arc::clone(&shard), peers.clone(), pool.clone());
            let place = pool.place().await;
            running.spawn(async move {
                let execute = || transfer::execute(&shard, &peers, &task);
                let dead_letter = || DeadLetter::Transfer(task.clone());
                if until_settled(&shard, &pool, place, execute, dead_letter).await {
                    shard.queues.transfer_done(task.task_id);
                    // Freed memory may admit the next page.
                    shard.queues.transfer_wake.notify_one();
                }
            });
        }
        if shard.committer.is_open() && read_transfer_page(&shard).await {
            continue;
        }
        tokio::select! {
            () = shard.queues.transfer_wake.notified() => {}
            _ = shard.committer.ended() => break,
        }
    }
    running.shutdown().await;
}

/// Reads tasks that are only in the store. False: none to read now.
async fn read_transfer_page(shard: &Shard) -> bool {
    if !lock(&shard.queues.transfer).ready.is_empty() {
        return true;
    }
    let Some(after) = lock(&shard.queues.transfer).cursor.begin_page(shard.queues.in_memory_max) else { return false };
    match read_page(shard, || shard.stores.executions.read_transfer(shard.id, after, PAGE_ROWS)).await {
        Ok(page) => {
            let mut transfer = lock(&shard.queues.transfer);
            let ids: Vec<i64> = page.tasks.iter().map(|task| task.task_id).collect();
            transfer.cursor.end_page(&ids, !page.has_more);
            transfer.ready.extend(page.tasks);
        }
        Err(error) => pause_after(shard, &error).await,
    }
    true
}

/// Fires the shard's timers until the shard is closed.
pub(crate) async fn run_timers(shard: Arc<Shard>, peers: Peers, pool: Pool) {
    let mut running = JoinSet::new();
    loop {
        while running.try_join_next().is_some() {}
        let wanted = lock(&shard.queues.timers).begin_read(shard.env.now());
        if let Some(wanted) = wanted {
            read_timers(&shard, wanted).await;
        }
        for (key, timer) in shard.queues.due_timers(shard.env.now()) {
            let (shard, peers, pool) = (Arc::clone(&shard), peers.clone(), pool.clone());
            let place = pool.place().await;
            running.spawn(async move {
                let dead_letter = || DeadLetter::Timer { key: timer.key.clone(), task: timer.task.clone() };
                if until_settled(&shard, &pool, place, || fire(&shard, &peers, &timer), dead_letter).await {
                    shard.queues.timer_done(key);
                }
            });
        }
        let next_look = lock(&shard.queues.timers).next_look();
        tokio::select! {
            () = shard.queues.timers_wake.notified() => {}
            () = sleep_until(&shard, next_look) => {}
            _ = shard.committer.ended() => break,
        }
    }
    running.shutdown().await;
}

async fn sleep_until(shard: &Shard, moment: Option<Timestamp>) {
    match moment {
        Some(moment) => shard.env.sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

async fn read_timers(shard: &Shard, wanted: Wanted) {
    match near_timers(shard, wanted).await {
        Ok((timers, read_before, next)) => lock(&shard.queues.timers).end_read(timers, read_before, next),
        Err(error) => {
            lock(&shard.queues.timers).abandon_read();
            pause_after(shard, &error).await;
        }
    }
}

/// Timers of the wanted range up to a bound that splits no fire time, that bound, and the next fire time.
async fn near_timers(
    shard: &Shard,
    wanted: Wanted,
) -> Result<(Vec<(TimerKey, Timer)>, Timestamp, Option<Timestamp>), ServiceError> {
    let executions = &shard.stores.executions;
    let mut timers: Vec<QueuedTimer> = Vec::new();
    let mut after = wanted.from;
    loop {
        let page = read_page(shard, || executions.read_timers(shard.id, after, wanted.before, TIMER_ROWS)).await?;
        timers.extend(page.tasks);
        let (Some(first), Some(last), true) = (timers.first(), timers.last(), page.has_more) else { break };
        let (first, last) = (first.fires_at, last.timer_key());
        if last.fires_at > first {
            // The page may split the last fire time: it is left to the next read.
            timers.retain(|timer| timer.fires_at < last.fires_at);
            return Ok((keyed(timers), last.fires_at, Some(last.fires_at)));
        }
        after = last;
    }
    let end = TimerKey { fires_at: wanted.before, task_id: i64::MIN };
    let beyond = read_page(shard, || executions.read_timers(shard.id, end, Timestamp(i64::MAX), 1)).await?;
    Ok((keyed(timers), wanted.before, beyond.tasks.first().map(|timer| timer.fires_at)))
}

fn keyed(timers: Vec<QueuedTimer>) -> Vec<(TimerKey, Timer)> {
    timers.into_iter().map(|timer| (timer.timer_key(), timer.queued)).collect()
}

async fn pause_after(shard: &Shard, error: &ServiceError) {
    warn!(shard = shard.id.0, %error, "queue read failed; retrying");
    tokio::time::sleep(shard.env.jittered(Duration::from_secs(1))).await;
}

async fn fire(shard: &Shard, peers: &Peers, timer: &Timer) -> Result<(), ServiceError> {
    if let TimerTask::Retention { .. } = timer.task {
        return shard.delete(&timer.key).await;
    }
    if timer.task == TimerTask::Schedule {
        return schedule::run_actions(shard, peers, &timer.key).await;
    }
    shard.transact(&timer.key, Input::Due(timer.task.clone())).await?;
    Ok(())
}

/// Retries until the task succeeds, is obsolete, or becomes a dead letter. False: the shard was closed first, and the
/// task is left to its next owner.
async fn until_settled<F: Future<Output = Result<(), ServiceError>>>(
    shard: &Shard,
    pool: &Pool,
    place: OwnedSemaphorePermit,
    execute: impl Fn() -> F,
    dead_letter: impl Fn() -> DeadLetter,
) -> bool {
    let mut place = Some(place);
    let mut tries = 0;
    let mut n_hopeless = 0;
    loop {
        let attempted =
            if n_hopeless < HOPELESS_MAX { execute().await } else { dead_letter_task(shard, &dead_letter()).await };
        match attempted {
            Ok(()) => return true,
            // The run, or the target of the task, no longer exists.
            Err(ServiceError::NotFound(_)) => return true,
            Err(_) if !shard.committer.is_open() => return false,
            Err(error) => {
                tries += 1;
                n_hopeless += u32::from(!error.is_transient());
                if tries >= TRIES_WARN && tries.is_power_of_two() {
                    warn!(shard = shard.id.0, tries, %error, "queue task keeps failing; retrying");
                }
            }
        }
        drop(place.take());
        tokio::time::sleep(shard.env.jittered(backoff(tries))).await;
        place = Some(pool.place().await);
    }
}
