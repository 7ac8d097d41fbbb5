//! A run with very many pending activities: what happens to one of them writes that one.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use persistence::counted::Counted;
use persistence::model::Model;
use persistence::stores::Stores;
use persistence::stores::executions::{RunWrite, ShardCommit};
use persistence::stores::shards::{Claim, ShardId};
use uuid::Uuid;
use workflow::{CompleteActivity, Decision, Heartbeat, Input, Transition};

#[path = "../../../../workflow/tests/it/run.rs"]
#[expect(dead_code, reason = "written for the core's own tests, which use all of it")]
mod run;

use run::{Run, payloads, schedule_activity};

const SHARD: ShardId = ShardId(1);
const N_ACTIVITIES: usize = 2000;
/// The first activity is scheduled after the first workflow task's three events and the start.
const FIRST_ACTIVITY: i64 = 5;

/// A run whose first activity is at a worker, and all others wait for one.
fn a_wide_run() -> Run {
    let mut run = Run::working();
    run.complete_task((0..N_ACTIVITIES).map(|number| schedule_activity(&format!("activity-{number}"))).collect());
    run.start_activity(FIRST_ACTIVITY).unwrap();
    assert_eq!(run.state.activities.len(), N_ACTIVITIES);
    run
}

fn transition(run: &Run, input: Input) -> Transition {
    match workflow::transition(&run.state, input, &run.facts).unwrap() {
        Decision::Changed(next) => *next,
        Decision::Unchanged(reply) => panic!("nothing changed: {reply:?}"),
    }
}

/// How many rows of the run a commit of this transition writes.
async fn n_rows_written(next: Transition) -> u64 {
    let (engine, counts) = Counted::new(Model::new());
    let stores = Stores::new(engine);
    let claim = Claim { owner: "test".to_owned(), nonce: Uuid::from_u128(7) };
    let acquired = stores.shards.acquire(SHARD, claim).await.unwrap();
    let mut commit = ShardCommit::new(SHARD, acquired.range_id, acquired.commit_id + 1);
    commit.runs.push(RunWrite { state: Arc::new(next.state), changed: next.changed });
    let before = counts.rows_written.load(Ordering::Relaxed);
    stores.executions.commit(&commit).await.unwrap();
    counts.rows_written.load(Ordering::Relaxed) - before
}

#[tokio::test]
async fn a_heartbeat_writes_two_rows_however_many_activities_there_are() {
    let run = a_wide_run();
    let (activity, identity) = (run.activity_ref(FIRST_ACTIVITY), "worker".to_owned());
    let beat = Heartbeat { activity, details: Some(payloads("half")), identity };
    let next = transition(&run, Input::Heartbeat(beat));
    assert!(next.tasks.is_empty(), "no queue row is written: {:?}", next.tasks);
    assert_eq!(n_rows_written(next).await, 2, "the run's state and the activity");
}

#[tokio::test]
async fn a_completion_does_not_write_the_other_activities() {
    let run = a_wide_run();
    let (activity, identity) = (run.activity_ref(FIRST_ACTIVITY), "worker".to_owned());
    let completed = CompleteActivity { activity, result: Some(payloads("out")), identity };
    let next = transition(&run, Input::CompleteActivity(completed));
    assert_eq!(next.state.activities.len(), N_ACTIVITIES - 1);
    assert_eq!(n_rows_written(next).await, 2, "the run's state, and the activity is deleted");
}
