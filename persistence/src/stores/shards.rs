//! Shards: their leases, and the ack levels of their queues.
//!
//! The lease is the static column `range_id` of the shard's partition: the node that raised it last holds it, and every
//! commit is conditional on it. Taking a lease leaves `commit_id` alone, so that it names the last commit.

use std::fmt;
use std::sync::Arc;

use proto::everrow::record;
use uuid::Uuid;
use workflow::Timestamp;

use crate::engine::{Batch, Condition, Consistency, Engine, Outcome, Partition};
use crate::error::StoreError;
use crate::stores::executions::TimerKey;
use crate::stores::rows::{self, Decoded};
use crate::table::Value;
use crate::tables::EXECUTIONS;

/// Indexes of the static columns of `executions`.
pub(crate) const RANGE_ID: usize = 0;
pub(crate) const COMMIT_ID: usize = 1;
pub(crate) const SHARD: usize = 2;

/// Attempts to take a lease before an error is returned: two nodes that want the same shard disagree about the ring,
/// which is not settled here.
const TRIES: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(pub i32);

/// Counts the leases of a shard or of a task queue, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RangeId(pub i64);

/// A claim to a lease. The nonce identifies this claim's write after an unknown outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub owner: String,
    pub nonce: Uuid,
}

/// A lease that was taken. Writes that an earlier holder had in flight are applied by now, or never will be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acquired {
    pub range_id: RangeId,
    /// Of the last commit that was applied; zero if there was none.
    pub commit_id: i64,
    pub shard: ShardRecord,
    /// The lease was free: new, or released by its last holder. Otherwise that holder may not have noticed yet.
    pub was_free: bool,
}

/// Stored with the lease. `owner` and `nonce` are those of the claim that took it: a checkpoint keeps them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardRecord {
    /// Empty: released.
    pub owner: String,
    pub nonce: Uuid,
    /// Transfer tasks up to here are done.
    pub transfer_acked: i64,
    /// Visibility tasks up to here are done.
    pub visibility_acked: i64,
    /// Timer tasks up to here are done.
    pub timer_acked: TimerKey,
    /// Of the last checkpoint.
    pub updated_at: Timestamp,
}

#[derive(Clone)]
pub struct ShardStore {
    engine: Arc<dyn Engine>,
}

/// The static columns of a shard as they were read.
struct Stored {
    range_id: Option<RangeId>,
    commit_id: i64,
    shard: Option<ShardRecord>,
}

impl ShardStore {
    pub(super) fn new(engine: Arc<dyn Engine>) -> Self {
        Self { engine }
    }

    /// Takes the lease from any holder.
    ///
    /// # Errors
    /// `Refused` if others kept taking it first. After any error the lease may have been taken, but is not used.
    pub async fn acquire(&self, shard: ShardId, claim: Claim) -> Result<Acquired, StoreError> {
        let mut tried = None;
        let mut failure = None;
        let mut was_free = false;
        for _ in 0..TRIES {
            let stored = self.stored(shard).await?;
            if let Some(range_id) = tried.filter(|range_id| stored.is_held(*range_id, &claim)) {
                return Ok(stored.acquired(range_id, was_free));
            }
            let range_id = stored.range_id.map_or(RangeId(1), RangeId::next);
            was_free = stored.is_free();
            failure = self.take(shard, &stored, range_id, &claim).await?;
            tried = Some(range_id);
        }
        let stored = self.stored(shard).await?;
        match tried.filter(|range_id| stored.is_held(*range_id, &claim)) {
            Some(range_id) => Ok(stored.acquired(range_id, was_free)),
            None => Err(failure.unwrap_or_else(|| StoreError::LeaseLost(shard.to_string()))),
        }
    }

    /// Raises the lease that the caller holds, to settle its writes in flight.
    ///
    /// Called again with the same claim after an error, it finds what the failed call did.
    ///
    /// # Errors
    /// `LeaseLost` if another owner took it since.
    pub async fn reacquire(&self, shard: ShardId, held: RangeId, claim: Claim) -> Result<Acquired, StoreError> {
        let range_id = held.next();
        let mut failure = None;
        for _ in 0..TRIES {
            let stored = self.stored(shard).await?;
            if stored.is_held(range_id, &claim) {
                return Ok(stored.acquired(range_id, false));
            }
            if stored.range_id != Some(held) {
                return Err(StoreError::LeaseLost(shard.to_string()));
            }
            failure = self.take(shard, &stored, range_id, &claim).await?;
        }
        let stored = self.stored(shard).await?;
        if stored.is_held(range_id, &claim) {
            return Ok(stored.acquired(range_id, false));
        }
        Err(failure.unwrap_or_else(|| StoreError::LeaseLost(shard.to_string())))
    }

    /// The newest lease: a holder that must be sure reads it before it answers a strong read.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn newest(&self, shard: ShardId) -> Result<Option<RangeId>, StoreError> {
        Ok(self.stored(shard).await?.range_id)
    }

    /// Tries once to raise the lease from what was read. `None`: written; `Some`: refused or of unknown outcome, which
    /// the next read settles.
    async fn take(
        &self,
        shard: ShardId,
        stored: &Stored,
        range_id: RangeId,
        claim: &Claim,
    ) -> Result<Option<StoreError>, StoreError> {
        let record = stored.shard.clone().map_or_else(
            || ShardRecord::new(claim),
            |shard| ShardRecord { owner: claim.owner.clone(), nonce: claim.nonce, ..shard },
        );
        let mut batch = Batch::new(partition(shard));
        let equals = stored.range_id.map(|RangeId(id)| Value::Bigint(id));
        batch.conditions.push(Condition::Static { column: RANGE_ID, equals });
        batch.statics.push((RANGE_ID, Value::Bigint(range_id.0)));
        batch.statics.push((SHARD, record.to_value()));
        match self.engine.write(batch).await {
            Ok(Outcome::Applied) => Ok(None),
            Ok(Outcome::Refused(_)) => Ok(Some(StoreError::Refused(format!("{shard} was taken by another node")))),
            Err(error @ StoreError::OutcomeUnknown(_)) => Ok(Some(error)),
            Err(error) => Err(error),
        }
    }

    async fn stored(&self, shard: ShardId) -> Result<Stored, StoreError> {
        let statics = self.engine.statics(partition(shard), Consistency::Serial).await?;
        let [range_id, commit_id, record] = <[_; 3]>::try_from(statics)
            .map_err(|statics| StoreError::Corrupt(format!("{shard}: static columns {statics:?}")))?;
        let range_id = rows::optional_bigint(range_id, "range_id").map_err(|bad| bad.at(shard))?;
        let commit_id = rows::optional_bigint(commit_id, "commit_id").map_err(|bad| bad.at(shard))?;
        let shard = match record {
            None => None,
            Some(value) => Some(ShardRecord::from_value(value).map_err(|bad| bad.at(shard))?),
        };
        Ok(Stored { range_id: range_id.map(RangeId), commit_id: commit_id.unwrap_or(0), shard })
    }
}

impl Stored {
    /// Whether this claim took this lease, and no other has since.
    fn is_held(&self, range_id: RangeId, claim: &Claim) -> bool {
        let nonce = self.shard.as_ref().map(|shard| shard.nonce);
        self.range_id == Some(range_id) && nonce == Some(claim.nonce)
    }

    fn is_free(&self) -> bool {
        self.shard.as_ref().is_none_or(|shard| shard.owner.is_empty())
    }

    fn acquired(self, range_id: RangeId, was_free: bool) -> Acquired {
        let shard = self.shard.expect("a lease that is held has a record");
        Acquired { range_id, commit_id: self.commit_id, shard, was_free }
    }
}

impl ShardRecord {
    fn new(claim: &Claim) -> Self {
        Self {
            owner: claim.owner.clone(),
            nonce: claim.nonce,
            transfer_acked: 0,
            visibility_acked: 0,
            timer_acked: TimerKey { fires_at: Timestamp(0), task_id: 0 },
            updated_at: Timestamp(0),
        }
    }

    pub(crate) fn to_value(&self) -> Value {
        rows::to_value(&record::Shard {
            owner: self.owner.clone(),
            nonce: rows::uuid_bytes(self.nonce),
            transfer_acked_task_id: self.transfer_acked,
            timer_acked_fires_at: self.timer_acked.fires_at.0,
            timer_acked_task_id: self.timer_acked.task_id,
            updated_at: self.updated_at.0,
            visibility_acked_task_id: self.visibility_acked,
        })
    }

    fn from_value(value: Value) -> Decoded<Self> {
        let shard: record::Shard = rows::from_value(value)?;
        Ok(Self {
            owner: shard.owner,
            nonce: rows::uuid(&shard.nonce, "nonce")?,
            transfer_acked: shard.transfer_acked_task_id,
            visibility_acked: shard.visibility_acked_task_id,
            timer_acked: TimerKey {
                fires_at: Timestamp(shard.timer_acked_fires_at),
                task_id: shard.timer_acked_task_id,
            },
            updated_at: Timestamp(shard.updated_at),
        })
    }
}

impl RangeId {
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shard {}", self.0)
    }
}

impl fmt::Display for RangeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

pub(crate) fn partition(shard: ShardId) -> Partition {
    Partition::new(&EXECUTIONS, vec![Value::Int(shard.0)])
}
