//! A job is what was asked for and how far it is, whatever else is in the commits that change it.

use std::sync::Arc;

use persistence::stores::Stores;
use persistence::stores::executions::{JobKey, JobWrite, ShardCommit};
use persistence::stores::shards::{Claim, ShardId};
use proto::everrow::record;
use uuid::Uuid;
use workflow::NamespaceId;

use super::benches;

const SHARD: ShardId = ShardId(5);

fn key(job_id: &str) -> JobKey {
    JobKey { namespace_id: NamespaceId(Uuid::from_u128(1)), job_id: job_id.into() }
}

fn job(seconds: i64) -> record::Job {
    let delay = Some(prost_types::Duration { seconds, nanos: 0 });
    record::Job { work: Some(record::job::Work::NamespaceRemoval(record::NamespaceRemoval { delay })) }
}

fn started(job_id: &str, seconds: i64) -> JobWrite {
    let progress = Some(record::JobProgress { started_at: seconds, ..Default::default() });
    JobWrite { key: key(job_id), job: Some(Arc::new(job(seconds))), progress }
}

fn progressed(job_id: &str, n_complete: i64) -> JobWrite {
    let progress = Some(record::JobProgress { n_complete, ..Default::default() });
    JobWrite { key: key(job_id), job: None, progress }
}

fn forgotten(job_id: &str) -> JobWrite {
    JobWrite { key: key(job_id), job: None, progress: None }
}

async fn commit(stores: &Stores, jobs: Vec<JobWrite>) {
    let claim = Claim { owner: "test".to_owned(), nonce: Uuid::new_v4() };
    let acquired = stores.shards.acquire(SHARD, claim).await.unwrap();
    let mut commit = ShardCommit::new(SHARD, acquired.range_id, acquired.commit_id + 1);
    commit.jobs = jobs;
    stores.executions.commit(&commit).await.unwrap();
}

async fn known(stores: &Stores) -> Vec<(String, i64)> {
    let jobs = stores.executions.load_progress(SHARD).await.unwrap();
    jobs.into_iter().map(|(key, progress)| (key.job_id.to_string(), progress.n_complete)).collect()
}

#[tokio::test]
async fn how_far_a_job_is_changes_and_what_was_asked_for_does_not() {
    for bench in benches() {
        let stores = &bench.stores;
        commit(stores, vec![started("one", 1), started("two", 2), progressed("two", 7)]).await;
        assert_eq!(known(stores).await, [("one".to_owned(), 0), ("two".to_owned(), 7)]);
        commit(stores, vec![progressed("one", 1), progressed("one", 2)]).await;
        assert_eq!(known(stores).await, [("one".to_owned(), 2), ("two".to_owned(), 7)]);
        assert_eq!(stores.executions.load_job(SHARD, &key("one")).await.unwrap(), Some(job(1)));
        assert_eq!(stores.executions.load_job(SHARD, &key("two")).await.unwrap(), Some(job(2)));
    }
}

#[tokio::test]
async fn nothing_is_left_of_a_job_that_is_forgotten() {
    for bench in benches() {
        let stores = &bench.stores;
        commit(stores, vec![started("one", 1)]).await;
        commit(stores, vec![progressed("one", 3), forgotten("one"), started("two", 2), forgotten("two")]).await;
        assert_eq!(known(stores).await, []);
        assert_eq!(stores.executions.load_job(SHARD, &key("one")).await.unwrap(), None);
        commit(stores, vec![started("one", 4)]).await;
        assert_eq!(stores.executions.load_job(SHARD, &key("one")).await.unwrap(), Some(job(4)));
    }
}
