//! A lease has one holder, whatever becomes of the writes that take it.

use persistence::error::StoreError;
use persistence::model::{Fault, Faults};
use persistence::stores::executions::{ShardCommit, TimerKey};
use persistence::stores::shards::{Claim, RangeId, ShardId, ShardRecord};
use uuid::Uuid;
use workflow::Timestamp;

use super::{benches, on_model};

const SHARD: ShardId = ShardId(7);

fn claim(owner: &str) -> Claim {
    Claim { owner: owner.to_owned(), nonce: Uuid::new_v4() }
}

#[tokio::test]
async fn each_lease_has_the_next_number_and_leaves_the_rest_alone() {
    for bench in benches() {
        let shards = &bench.stores.shards;
        assert_eq!(shards.newest(SHARD).await.unwrap(), None);
        let first = shards.acquire(SHARD, claim("one")).await.unwrap();
        assert_eq!((first.range_id, first.commit_id, first.shard.owner.as_str()), (RangeId(1), 0, "one"));

        let record = ShardRecord {
            transfer_acked: 40,
            visibility_acked: 41,
            timer_acked: TimerKey { fires_at: Timestamp(-3), task_id: 41 },
            updated_at: Timestamp(42),
            ..first.shard
        };
        let commit = ShardCommit { shard_record: Some(record.clone()), ..ShardCommit::new(SHARD, RangeId(1), 17) };
        bench.stores.executions.commit(&commit).await.unwrap();

        let mine = claim("two");
        let second = shards.acquire(SHARD, mine.clone()).await.unwrap();
        assert_eq!((second.range_id, second.commit_id), (RangeId(2), 17));
        assert_eq!(second.shard, ShardRecord { owner: mine.owner, nonce: mine.nonce, ..record });
        assert_eq!(shards.newest(SHARD).await.unwrap(), Some(RangeId(2)));
        assert_eq!(shards.newest(ShardId(8)).await.unwrap(), None);
    }
}

#[tokio::test]
async fn whoever_lost_the_lease_can_neither_commit_nor_take_it_again_unnoticed() {
    for bench in benches() {
        let shards = &bench.stores.shards;
        let mine = claim("one");
        let held = shards.acquire(SHARD, mine.clone()).await.unwrap().range_id;
        shards.acquire(SHARD, claim("two")).await.unwrap();
        let commit = bench.stores.executions.commit(&ShardCommit::new(SHARD, held, 1)).await;
        assert!(matches!(commit, Err(StoreError::LeaseLost(_))), "{commit:?}");
        let again = shards.reacquire(SHARD, held, mine).await;
        assert!(matches!(again, Err(StoreError::LeaseLost(_))), "{again:?}");
    }
}

#[tokio::test]
async fn reacquiring_raises_the_lease_even_with_the_claim_that_took_it() {
    for bench in benches() {
        let mine = claim("one");
        let held = bench.stores.shards.acquire(SHARD, mine.clone()).await.unwrap().range_id;
        let again = bench.stores.shards.reacquire(SHARD, held, mine).await.unwrap();
        assert_eq!(again.range_id, RangeId(held.0 + 1));
    }
}

#[tokio::test]
async fn an_unknown_outcome_of_a_claim_is_settled_by_its_nonce() {
    for fault in [Fault::TimeoutApplied, Fault::TimeoutNotApplied, Fault::AppliedLater] {
        let (model, stores) = on_model();
        model.inject(fault);
        let acquired = stores.shards.acquire(SHARD, claim("one")).await.unwrap();
        assert_eq!(acquired.range_id, RangeId(1), "{fault:?}");

        let mine = claim("one");
        model.inject(fault);
        let again = stores.shards.reacquire(SHARD, RangeId(1), mine.clone()).await.unwrap();
        assert_eq!(again.range_id, RangeId(2), "{fault:?}");
        // As after an error: the same call finds what the first did.
        let once_more = stores.shards.reacquire(SHARD, RangeId(1), mine).await.unwrap();
        assert_eq!(once_more, again);
    }
}

#[tokio::test]
async fn reacquiring_tells_whether_the_last_commit_was_applied() {
    let cases = [(Fault::TimeoutApplied, 5), (Fault::AppliedLater, 5), (Fault::TimeoutNotApplied, 4)];
    for (fault, expected) in cases {
        let (model, stores) = on_model();
        let mine = claim("one");
        let range_id = stores.shards.acquire(SHARD, mine.clone()).await.unwrap().range_id;
        stores.executions.commit(&ShardCommit::new(SHARD, range_id, 4)).await.unwrap();
        model.inject(fault);
        let outcome = stores.executions.commit(&ShardCommit::new(SHARD, range_id, 5)).await;
        assert!(matches!(outcome, Err(StoreError::OutcomeUnknown(_))), "{outcome:?}");
        let settled = stores.shards.reacquire(SHARD, range_id, mine).await.unwrap();
        assert_eq!((settled.range_id, settled.commit_id), (RangeId(2), expected), "{fault:?}");
    }
}

#[tokio::test]
async fn of_many_claims_at_once_each_lease_goes_to_one() {
    for seed in 0..50 {
        let (model, stores) = on_model();
        model.set_faults(Faults {
            timeout_applied: 0.2,
            timeout_not_applied: 0.2,
            applied_later: 0.2,
            ..Faults::none(seed)
        });
        let claims = (0..4).map(|node| {
            let stores = stores.clone();
            tokio::spawn(async move { stores.shards.acquire(SHARD, claim(&format!("node {node}"))).await })
        });
        let claims: Vec<_> = claims.collect();
        let mut taken = Vec::new();
        for claim in claims {
            if let Ok(acquired) = claim.await.unwrap() {
                taken.push(acquired.range_id);
            }
        }
        model.stop_faults();
        let newest = stores.shards.newest(SHARD).await.unwrap();
        let n_taken = taken.len();
        taken.sort();
        taken.dedup();
        assert_eq!(taken.len(), n_taken, "seed {seed}: two nodes hold the same lease");
        assert!(taken.last().copied() <= newest, "seed {seed}: {taken:?} but {newest:?}");
    }
}
