//! The lock on the schema: an owner and when its hold ends, in the static columns of `schema_version`.

use std::time::Duration;

use persistence::engine::{Batch, Condition, Consistency, Engine as _, Outcome, Statics};
use persistence::error::StoreError;
use persistence::table::Value;
use tokio::time::Instant;
use uuid::Uuid;

use super::{SchemaError, bookkeeping};
use crate::engine::CqlEngine;

/// Places of the static columns.
const OWNER: usize = 0;
const EXPIRES_AT: usize = 1;
/// A time in the past: the lock is free. Static columns can be set, not unset.
const RELEASED: i64 = 0;

const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// A holder that works renews its hold; one that died is waited for once. Three holds are more than either needs.
const WAIT_IN_HOLDS: u32 = 3;

/// Who takes the lock, when that is, and for how long it is held unless renewed. The caller has the clock.
#[derive(Debug, Clone)]
pub struct LockTerms {
    pub owner: Uuid,
    /// Milliseconds since 1970. Nodes compare these, so clocks that are off by less than `holds_for` do no harm.
    pub now_ms: i64,
    pub holds_for: Duration,
}

#[derive(Debug)]
pub(super) struct Lock {
    owner: Uuid,
    holds_for: Duration,
    clock: Clock,
}

/// The caller's time, carried on by the monotonic clock.
#[derive(Debug)]
struct Clock {
    began_at_ms: i64,
    began: Instant,
}

impl Clock {
    fn now_ms(&self) -> i64 {
        self.began_at_ms.saturating_add(millis(self.began.elapsed()))
    }
}

impl Lock {
    /// Waits while another holds it, within bounds.
    pub(super) async fn take(engine: &CqlEngine, terms: &LockTerms) -> Result<Self, SchemaError> {
        let clock = Clock { began_at_ms: terms.now_ms, began: Instant::now() };
        let lock = Self { owner: terms.owner, holds_for: terms.holds_for, clock };
        let mut polls = tokio::time::interval(POLL_INTERVAL);
        while lock.clock.began.elapsed() <= terms.holds_for * WAIT_IN_HOLDS {
            polls.tick().await;
            let current = engine.statics(bookkeeping(), Consistency::Serial).await?;
            let expires_at = match current[EXPIRES_AT] {
                Some(Value::Bigint(expires_at)) => expires_at,
                _ => RELEASED,
            };
            if expires_at <= lock.clock.now_ms() && lock.set(engine, &current, lock.expires_at()).await? {
                return Ok(lock);
            }
        }
        Err(SchemaError::Locked)
    }

    /// Whether it is still held; if so, for another full time.
    pub(super) async fn renew(&self, engine: &CqlEngine) -> Result<bool, SchemaError> {
        self.set_if_held(engine, self.expires_at()).await
    }

    /// What must hold for whoever acts as the owner.
    pub(super) fn conditions(&self) -> Vec<Condition> {
        vec![Condition::Static { column: OWNER, equals: Some(self.owner.into()) }]
    }

    pub(super) async fn release(self, engine: &CqlEngine) -> Result<(), SchemaError> {
        // If another has it by now, there is nothing of ours to release.
        self.set_if_held(engine, RELEASED).await.map(drop)
    }

    async fn set_if_held(&self, engine: &CqlEngine, expires_at: i64) -> Result<bool, SchemaError> {
        let mut batch = Batch::new(bookkeeping());
        batch.conditions = self.conditions();
        batch.statics = vec![(EXPIRES_AT, expires_at.into())];
        Ok(engine.write(batch).await? == Outcome::Applied)
    }

    /// Takes it from the state that was read. Two who read the same cannot both succeed.
    async fn set(&self, engine: &CqlEngine, read: &Statics, expires_at: i64) -> Result<bool, SchemaError> {
        let unchanged = |column: usize| Condition::Static { column, equals: read[column].clone() };
        let mut batch = Batch::new(bookkeeping());
        batch.conditions = vec![unchanged(OWNER), unchanged(EXPIRES_AT)];
        batch.statics = vec![(OWNER, self.owner.into()), (EXPIRES_AT, expires_at.into())];
        match engine.write(batch).await {
            Ok(outcome) => Ok(outcome == Outcome::Applied),
            // The next look tells: the owner is us or it is not.
            Err(StoreError::OutcomeUnknown(_)) => Ok(self.is_held(engine).await?),
            Err(error) => Err(error.into()),
        }
    }

    async fn is_held(&self, engine: &CqlEngine) -> Result<bool, StoreError> {
        let current = engine.statics(bookkeeping(), Consistency::Serial).await?;
        Ok(current[OWNER] == Some(self.owner.into()))
    }

    fn expires_at(&self) -> i64 {
        self.clock.now_ms().saturating_add(millis(self.holds_for))
    }
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}
