//! The lock on the schema: an owner and a beat, in the static columns of `schema_version`.
//!
//! No node compares its wall clock with another's. A holder writes a new beat with every renewal. A waiter takes the
//! lock once the row has not changed for `holds_for` on its own monotonic clock, by a write that is conditional on the
//! row it saw.

use std::time::Duration;

use persistence::engine::{Batch, Condition, Consistency, Engine as _, Outcome, Statics};
use persistence::error::StoreError;
use persistence::table::Value;
use tokio::time::Instant;
use uuid::Uuid;

use super::{SchemaError, bookkeeping};
use crate::engine::CqlEngine;

/// Indexes of the static columns.
const OWNER: usize = 0;
/// `lock_expires_at`. Older binaries compare it with their wall clock, so it stays a time: see `Lock::beat`.
const BEAT: usize = 1;
/// Beat of a free lock. Static columns can be set, not unset.
const RELEASED: i64 = 0;

const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Renewals per hold: two may be late or fail before a waiter takes the lock.
const RENEWALS_PER_HOLD: u32 = 3;
/// Waiter's timeout: a live holder renews its hold, a dead one is waited for once; three holds exceed both.
const WAIT_IN_HOLDS: u32 = 3;

/// Owner, wall time and hold of a lock attempt. The caller has the clock.
#[derive(Debug, Clone)]
pub struct LockTerms {
    pub owner: Uuid,
    /// Milliseconds since 1970. Written for operators and older binaries; no decision depends on it.
    pub now_ms: i64,
    /// The same on all nodes: a holder renews more often than this, a waiter watches the row for this long.
    pub holds_for: Duration,
}

#[derive(Debug)]
pub(super) struct Lock {
    owner: Uuid,
    holds_for: Duration,
    clock: Clock,
}

/// The caller's wall time, advanced by the monotonic clock.
#[derive(Debug)]
struct Clock {
    began_at_ms: i64,
    began: Instant,
}

/// A row of another holder, and since when this node has seen it unchanged.
struct Watched {
    row: Statics,
    since: Instant,
}

impl Clock {
    fn now_ms(&self) -> i64 {
        self.began_at_ms.saturating_add(millis(self.began.elapsed()))
    }
}

impl Watched {
    /// Keeps the start of the watch if the row is unchanged.
    fn look(watched: Option<Self>, row: Statics) -> Self {
        // Counted from after the read: the holder's write came before it, so the watch is never too short.
        let since = Instant::now();
        match watched {
            Some(watched) if watched.row == row => watched,
            Some(_) | None => Self { row, since },
        }
    }

    fn is_free(&self, holds_for: Duration) -> bool {
        let is_released = !matches!(self.row[BEAT], Some(Value::Bigint(beat)) if beat != RELEASED);
        is_released || self.since.elapsed() >= holds_for
    }
}

impl Lock {
    /// Waits while another node holds it, at most `WAIT_IN_HOLDS` holds.
    pub(super) async fn take(engine: &CqlEngine, terms: &LockTerms) -> Result<Self, SchemaError> {
        let clock = Clock { began_at_ms: terms.now_ms, began: Instant::now() };
        let lock = Self { owner: terms.owner, holds_for: terms.holds_for, clock };
        let mut polls = tokio::time::interval(POLL_INTERVAL);
        let mut watched = None;
        while lock.clock.began.elapsed() <= terms.holds_for * WAIT_IN_HOLDS {
            polls.tick().await;
            let row = engine.statics(bookkeeping(), Consistency::Serial).await?;
            let seen = Watched::look(watched, row);
            if seen.is_free(terms.holds_for) && lock.set(engine, &seen.row).await? {
                return Ok(lock);
            }
            watched = Some(seen);
        }
        Err(SchemaError::Locked)
    }

    /// Runs the work, renewing the hold before and during it. `None`: another node has the lock.
    pub(super) async fn while_held<T>(
        &self,
        engine: &CqlEngine,
        work: impl Future<Output = T>,
    ) -> Result<Option<T>, SchemaError> {
        if !self.set_if_held(engine, self.beat()).await? {
            return Ok(None);
        }
        tokio::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return Ok(Some(done)),
                () = tokio::time::sleep(self.holds_for / RENEWALS_PER_HOLD) => {}
            }
            match self.set_if_held(engine, self.beat()).await {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(error) => tracing::warn!(%error, "cannot renew the lock on the schema; trying again"),
            }
        }
    }

    /// Conditions of a write by the owner.
    pub(super) fn conditions(&self) -> Vec<Condition> {
        vec![Condition::Static { column: OWNER, equals: Some(self.owner.into()) }]
    }

    pub(super) async fn release(self, engine: &CqlEngine) -> Result<(), SchemaError> {
        // If another node has taken it, there is nothing to release.
        self.set_if_held(engine, RELEASED).await.map(drop)
    }

    async fn set_if_held(&self, engine: &CqlEngine, beat: i64) -> Result<bool, SchemaError> {
        let mut batch = Batch::new(bookkeeping());
        batch.conditions = self.conditions();
        batch.statics = vec![(BEAT, beat.into())];
        Ok(engine.write(batch).await? == Outcome::Applied)
    }

    /// Takes the lock conditionally on the row that was read: of two nodes that read the same, one succeeds.
    async fn set(&self, engine: &CqlEngine, read: &Statics) -> Result<bool, SchemaError> {
        let unchanged = |column: usize| Condition::Static { column, equals: read[column].clone() };
        let mut batch = Batch::new(bookkeeping());
        batch.conditions = vec![unchanged(OWNER), unchanged(BEAT)];
        batch.statics = vec![(OWNER, self.owner.into()), (BEAT, self.beat().into())];
        match engine.write(batch).await {
            Ok(outcome) => Ok(outcome == Outcome::Applied),
            // A serial read settles it: the owner is us or it is not.
            Err(StoreError::OutcomeUnknown(_)) => Ok(self.is_held(engine).await?),
            Err(error) => Err(error.into()),
        }
    }

    async fn is_held(&self, engine: &CqlEngine) -> Result<bool, StoreError> {
        let current = engine.statics(bookkeeping(), Consistency::Serial).await?;
        Ok(current[OWNER] == Some(self.owner.into()))
    }

    /// Grows with the monotonic clock, so that each renewal changes the row. Never `RELEASED`, whatever the wall clock
    /// is set to.
    fn beat(&self) -> i64 {
        self.clock
            .now_ms()
            .saturating_add(millis(self.holds_for))
            .max(RELEASED + 1 + millis(self.clock.began.elapsed()))
    }
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}
