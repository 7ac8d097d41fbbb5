//! What is committed is what is loaded; and what a commit must not do.

use std::sync::{Arc, Mutex};

use persistence::engine::{Batch, Engine};
use persistence::error::StoreError;
use persistence::model::{Fault, Model};
use persistence::stores::Stores;
use persistence::stores::executions::{
    CurrentWrite, ItemKind, QueuedTask, QueuedTimer, RowKind, RunWrite, ScheduleWrite, ShardCommit, TimerKey,
};
use persistence::stores::shards::{Claim, RangeId, ShardId};
use persistence::table::Value;
use persistence::{engine::Partition, tables::EXECUTIONS};
use proto::everrow::record;
use uuid::Uuid;
use workflow::{
    ChangedItems, CurrentRun, EventId, ExecutionKey, ExecutionState, Items, NamespaceId, RunId, StickyDispatch,
    TimerTask, Timestamp, TransferTask,
};

use super::sample::Sampler;
use super::{benches, on_model};

pub(super) const SHARD: ShardId = ShardId(3);

/// A shard under a lease, and its next commit id.
pub(super) struct Owner {
    pub(super) stores: Stores,
    range_id: RangeId,
    commit_id: i64,
}

impl Owner {
    pub(super) async fn of(stores: Stores) -> Self {
        let claim = Claim { owner: "test".to_owned(), nonce: Uuid::new_v4() };
        let acquired = stores.shards.acquire(SHARD, claim).await.unwrap();
        Self { stores, range_id: acquired.range_id, commit_id: acquired.commit_id }
    }

    pub(super) async fn commit(&mut self, fill: impl FnOnce(&mut ShardCommit)) {
        self.commit_id += 1;
        let mut commit = ShardCommit::new(SHARD, self.range_id, self.commit_id);
        fill(&mut commit);
        self.stores.executions.commit(&commit).await.unwrap();
    }

    pub(super) async fn load(&self, key: &ExecutionKey) -> Option<ExecutionState> {
        self.stores.executions.load_run(SHARD, key).await.unwrap()
    }
}

/// As a transition hands it over.
pub(super) fn write(state: &mut ExecutionState) -> RunWrite {
    let changed = ChangedItems {
        activities: state.activities.take_touched(),
        timers: state.timers.take_touched(),
        children: state.children.take_touched(),
        external_signals: state.external_signals.take_touched(),
        external_cancels: state.external_cancels.take_touched(),
        signal_request_ids: state.signal_request_ids.take_touched(),
        updates: state.updates.take_touched(),
        properties: state.unrecorded.db_record_version == 1,
        buffered_events: state.unrecorded.buffered_events.take_touched(),
    };
    RunWrite { state: Arc::new(state.clone()), changed }
}

pub(super) fn shard_partition() -> Partition {
    Partition::new(&EXECUTIONS, vec![Value::Int(SHARD.0)])
}

#[tokio::test]
async fn any_state_comes_back_as_it_was_committed() {
    for bench in benches() {
        let mut owner = Owner::of(bench.stores).await;
        for seed in 0..200 {
            let mut state = Sampler::new(seed).state();
            let run = write(&mut state);
            owner.commit(|commit| commit.runs.push(run)).await;
            assert_eq!(owner.load(&state.key).await, Some(state), "seed {seed}");
        }
    }
}

#[tokio::test]
async fn later_states_replace_earlier_ones_in_one_batch_and_across_batches() {
    for bench in benches() {
        let mut owner = Owner::of(bench.stores).await;
        for seed in 0..50 {
            let mut sampler = Sampler::new(seed);
            let mut state = sampler.state();
            for n_writes in 1..4 {
                let mut runs = vec![write(&mut state)];
                for _ in 0..n_writes {
                    change(&mut state, &mut sampler);
                    runs.push(write(&mut state));
                }
                owner.commit(|commit| commit.runs = runs).await;
                assert_eq!(owner.load(&state.key).await.as_ref(), Some(&state), "seed {seed}");
                state.unrecorded.db_record_version += 1;
            }
        }
    }
}

/// Adds, changes and removes items, as transitions do.
fn change(state: &mut ExecutionState, sampler: &mut Sampler) {
    state.unrecorded.db_record_version += 1;
    state.n_signals += 1;
    let (id, other) = (sampler.number(), sampler.number());
    state.activities.insert(id, sampler.activity(id));
    state.timers.insert(other, sampler.timer(other));
    state.signal_request_ids.insert(id, sampler.text());
    state.children.insert(id, sampler.child(id));
    state.external_signals.insert(id, sampler.external_request(id));
    state.external_cancels.insert(other, sampler.external_request(other));
    state.updates.insert(id, sampler.update());
    state.unrecorded.buffered_events.insert(id, sampler.event());
    let first = |ids: Vec<i64>| ids.into_iter().next();
    if let Some(id) = first(state.activities.iter().map(|(id, _)| id).collect()) {
        state.activities.get_mut(id).unwrap().unrecorded.attempt += 1;
    }
    if let Some(id) = first(state.timers.iter().map(|(id, _)| id).collect()) {
        state.timers.remove(id);
    }
    if let Some(id) = first(state.children.iter().map(|(id, _)| id).collect()) {
        state.children.remove(id);
    }
    if let Some(id) = first(state.external_signals.iter().map(|(id, _)| id).collect()) {
        state.external_signals.remove(id);
    }
    if let Some(id) = first(state.unrecorded.buffered_events.iter().map(|(id, _)| id).collect()) {
        state.unrecorded.buffered_events.remove(id);
    }
}

#[tokio::test]
async fn a_heartbeat_writes_two_rows_of_a_run_with_many_activities() {
    let (model, stores) = on_model();
    let mut owner = Owner::of(stores).await;
    let mut sampler = Sampler::new(1);
    let mut state = sampler.state();
    for id in 0..1000 {
        state.activities.insert(id, sampler.activity(id));
    }
    let run = write(&mut state);
    owner.commit(|commit| commit.runs.push(run)).await;

    state.unrecorded.db_record_version += 1;
    state.activities.get_mut(500).unwrap().unrecorded.last_heartbeat_at = Some(Timestamp(9));
    let run = write(&mut state);
    let written = last_batch(&model);
    owner.commit(|commit| commit.runs.push(run)).await;
    assert_eq!(written().puts.len(), 2);
    assert_eq!(owner.load(&state.key).await, Some(state));
}

/// The last batch written to the engine.
fn last_batch(model: &Model) -> impl Fn() -> Batch {
    let seen = Arc::new(Mutex::new(None));
    let last = Arc::clone(&seen);
    model.inject_when(Fault::Unavailable, move |batch: &Batch| {
        *seen.lock().unwrap() = Some(batch.clone());
        false
    });
    move || last.lock().unwrap().clone().expect("a batch was written")
}

#[tokio::test]
async fn request_ids_of_signals_that_follow_one_another_share_a_row() {
    let (model, stores) = on_model();
    let mut owner = Owner::of(stores).await;
    let mut state = Sampler::new(1).state();
    let run = write(&mut state);
    owner.commit(|commit| commit.runs.push(run)).await;
    let written = last_batch(&model);
    // Two transitions of one commit, then a gap, then more than a row takes.
    let mut runs = Vec::new();
    for event_ids in [1000..1003, 1003..1004, 1005..1600] {
        state.unrecorded.db_record_version += 1;
        event_ids.for_each(|event_id| state.signal_request_ids.insert(event_id, format!("request {event_id}")));
        runs.push(write(&mut state));
    }
    owner.commit(|commit| commit.runs = runs).await;
    let rows = written().puts.into_iter().filter(|row| row.key[4] == Value::Bigint(ItemKind::SignalRequest as i64));
    let firsts: Vec<Value> = rows.map(|row| row.key[5].clone()).collect();
    assert_eq!(firsts, [1000, 1005, 1261, 1517].map(Value::Bigint));
    assert_eq!(owner.load(&state.key).await, Some(state));
}

#[tokio::test]
async fn many_events_that_waited_go_as_one_range_and_those_that_wait_stay() {
    let (model, stores) = on_model();
    let mut owner = Owner::of(stores).await;
    let mut sampler = Sampler::new(1);
    let mut state = sampler.state();
    state.unrecorded.buffered_events = Items::default();
    for place in 1..=20 {
        state.unrecorded.buffered_events.insert(place, sampler.event());
    }
    let run = write(&mut state);
    owner.commit(|commit| commit.runs.push(run)).await;
    let written = last_batch(&model);
    state.unrecorded.db_record_version += 1;
    for place in 1..=20 {
        state.unrecorded.buffered_events.remove(place);
    }
    state.unrecorded.buffered_events.insert(21, sampler.event());
    let run = write(&mut state);
    owner.commit(|commit| commit.runs.push(run)).await;
    assert_eq!((written().deletes.len(), written().range_deletes.len()), (0, 1));
    assert_eq!(owner.load(&state.key).await.as_ref(), Some(&state));

    // One that came before them still waits: it must not go with them.
    for place in 22..=40 {
        state.unrecorded.db_record_version += 1;
        state.unrecorded.buffered_events.insert(place, sampler.event());
    }
    let run = write(&mut state);
    owner.commit(|commit| commit.runs.push(run)).await;
    state.unrecorded.db_record_version += 1;
    for place in 22..=40 {
        state.unrecorded.buffered_events.remove(place);
    }
    let run = write(&mut state);
    owner.commit(|commit| commit.runs.push(run)).await;
    assert_eq!((written().deletes.len(), written().range_deletes.len()), (19, 0));
    assert_eq!(owner.load(&state.key).await, Some(state));
}

#[tokio::test]
async fn the_next_owner_finds_the_closed_runs_that_were_left_to_it() {
    for bench in benches() {
        let mut owner = Owner::of(bench.stores).await;
        assert_eq!(owner.stores.executions.load_closed_runs(SHARD).await.unwrap(), []);
        let run_ids: Vec<RunId> = (0..3).map(|n| RunId(Uuid::from_u128(n))).collect();
        for expected in [&run_ids[..2], &run_ids[1..]] {
            owner.commit(|commit| commit.closed_runs = expected.to_vec()).await;
            // A commit that leaves none takes nothing away: a run that is closed stays so.
            owner.commit(|_| {}).await;
            assert_eq!(owner.stores.executions.load_closed_runs(SHARD).await.unwrap(), expected);
        }
    }
}

#[tokio::test]
async fn a_deleted_run_leaves_no_row() {
    let (model, stores) = on_model();
    let mut owner = Owner::of(stores).await;
    let mut state = Sampler::new(2).state();
    let key = state.key.clone();
    let first = write(&mut state);
    owner.commit(|commit| commit.runs.push(first)).await;
    state.unrecorded.db_record_version += 1;
    let second = write(&mut state);
    owner
        .commit(|commit| {
            commit.runs.push(second);
            commit.deleted_runs.push(key.clone());
        })
        .await;
    assert_eq!(owner.load(&key).await, None);
    assert_eq!(model.dump(&shard_partition()).1, []);
}

#[tokio::test]
async fn rows_that_disagree_are_corrupt_and_named() {
    for (lost, expected) in [
        (ItemKind::State, "the state row is missing"),
        (ItemKind::Started, "the row of its start is missing"),
        (ItemKind::Activity, "its items are"),
    ] {
        let (model, stores) = on_model();
        let mut owner = Owner::of(stores).await;
        let mut sampler = Sampler::new(3);
        let mut state = sampler.state();
        state.activities.insert(5, sampler.activity(5));
        let run = write(&mut state);
        owner.commit(|commit| commit.runs.push(run)).await;

        let rows = model.dump(&shard_partition()).1;
        let row = rows.into_iter().find(|row| row.key[4] == Value::Bigint(lost as i64)).unwrap();
        let mut batch = Batch::new(shard_partition());
        batch.deletes.push(row.key);
        model.write(batch).await.unwrap();
        let Err(StoreError::Corrupt(reason)) = owner.stores.executions.load_run(SHARD, &state.key).await else {
            panic!("{lost:?} is lost, and nobody noticed");
        };
        assert!(reason.contains(expected) && reason.contains(&state.key.to_string()), "{reason}");
    }
}

#[tokio::test]
async fn the_current_run_is_the_one_written_last() {
    for bench in benches() {
        let mut owner = Owner::of(bench.stores).await;
        let mut sampler = Sampler::new(4);
        let key = sampler.key();
        let mut runs = (0..3).map(|version| CurrentRun {
            run_id: RunId(sampler.uuid()),
            status: sampler.status(),
            started_at: sampler.moment(),
            request_id: sampler.text(),
            joined_request_ids: vec![sampler.text()],
            version,
        });
        let (first, second, third) = (runs.next().unwrap(), runs.next().unwrap(), runs.next().unwrap());
        let current = |run: Option<&CurrentRun>| CurrentWrite {
            namespace_id: key.namespace_id,
            workflow_id: Arc::clone(&key.workflow_id),
            run: run.cloned(),
        };
        for (writes, expected) in [
            (vec![current(Some(&first))], Some(&first)),
            (vec![current(Some(&second)), current(Some(&third))], Some(&third)),
            (vec![current(None), current(Some(&first))], Some(&first)),
            (vec![current(Some(&second)), current(None)], None),
        ] {
            owner.commit(|commit| commit.current = writes).await;
            let executions = &owner.stores.executions;
            let loaded = executions.load_current(SHARD, key.namespace_id, &key.workflow_id).await.unwrap();
            assert_eq!(loaded.as_ref(), expected);
        }
    }
}

#[tokio::test]
async fn a_schedule_is_what_was_written_last_and_found_by_its_namespace() {
    for bench in benches() {
        let mut owner = Owner::of(bench.stores).await;
        let namespaces = [1, 2].map(|id| NamespaceId(Uuid::from_u128(id)));
        let write = |namespace_id, id: &str, version, token: Option<i64>| ScheduleWrite {
            namespace_id,
            schedule_id: id.into(),
            version,
            schedule: token.map(|conflict_token| Arc::new(record::Schedule { conflict_token, ..Default::default() })),
        };
        owner
            .commit(|commit| {
                commit.schedules.push(write(namespaces[0], "a", 1, Some(1)));
                commit.schedules.push(write(namespaces[0], "a", 2, Some(5)));
                commit.schedules.push(write(namespaces[0], "b", 1, Some(1)));
                commit.schedules.push(write(namespaces[1], "a", 1, Some(9)));
            })
            .await;
        let executions = owner.stores.executions.clone();
        let (version, found) = executions.load_schedule(SHARD, namespaces[0], &"a".into()).await.unwrap().unwrap();
        assert_eq!((version, found.conflict_token), (2, 5));
        let ids = executions.schedule_ids(SHARD, namespaces[0], 10).await.unwrap();
        assert_eq!(ids, ["a".into(), "b".into()] as [Arc<str>; 2]);
        owner.commit(|commit| commit.schedules.push(write(namespaces[0], "a", 3, None))).await;
        assert_eq!(executions.load_schedule(SHARD, namespaces[0], &"a".into()).await.unwrap(), None);
        assert_eq!(executions.schedule_ids(SHARD, namespaces[0], 10).await.unwrap().len(), 1);
        assert_eq!(executions.schedule_ids(SHARD, namespaces[1], 10).await.unwrap().len(), 1);
    }
}

fn transfer(sampler: &mut Sampler, task_id: i64) -> QueuedTask<TransferTask> {
    let task_queue = sampler.text();
    let (scheduled_event_id, attempt, version) = (sampler.event_id(), 3, sampler.number());
    let sticky = sampler.maybe(|sampler| StickyDispatch {
        normal_task_queue: sampler.text(),
        schedule_to_start_timeout: sampler.span(),
    });
    let initiated_event_id = scheduled_event_id;
    let task = match task_id % 7 {
        0 => TransferTask::Activity { task_queue, scheduled_event_id, attempt, stamp: 2, version },
        1 => TransferTask::StartChild { initiated_event_id, version },
        2 => TransferTask::ExternalSignal { initiated_event_id, version },
        3 => TransferTask::ExternalCancel { initiated_event_id, version },
        4 => TransferTask::Close { version },
        5 => TransferTask::Delete { version },
        _ => TransferTask::WorkflowTask { task_queue, sticky, scheduled_event_id, attempt, version },
    };
    QueuedTask { task_id, key: sampler.key(), task }
}

#[tokio::test]
async fn transfer_tasks_of_a_commit_share_a_row_and_are_read_from_any_task_on() {
    for bench in benches() {
        let mut owner = Owner::of(bench.stores).await;
        let mut sampler = Sampler::new(5);
        let tasks: Vec<_> = (1..=9).map(|task_id| transfer(&mut sampler, task_id)).collect();
        for commit_tasks in tasks.chunks(3) {
            owner.commit(|commit| commit.transfer = commit_tasks.to_vec()).await;
        }
        let executions = owner.stores.executions.clone();
        let all = executions.read_transfer(SHARD, 0, 10).await.unwrap();
        assert_eq!((all.tasks.as_slice(), all.has_more), (tasks.as_slice(), false));
        let within = executions.read_transfer(SHARD, 4, 1).await.unwrap();
        assert_eq!((within.tasks.as_slice(), within.has_more), (&tasks[4..6], true));

        // Task 6 is the last of its row; 7 is done, but not 8 and 9, which share its row.
        owner.commit(|commit| commit.completed_transfer = Some(1..=7)).await;
        let rest = executions.read_transfer(SHARD, 0, 10).await.unwrap();
        assert_eq!(rest.tasks, tasks[6..]);
    }
}

fn timers(sampler: &mut Sampler) -> Vec<QueuedTimer> {
    let (event_id, attempt, version) = (EventId(5), 2, 7);
    let scheduled_event_id = event_id;
    let tasks = [
        TimerTask::UserTimer { started_event_id: event_id, version },
        TimerTask::ActivityTimeout { scheduled_event_id, attempt, version },
        TimerTask::ActivityRetry { scheduled_event_id, attempt, stamp: 3, version },
        TimerTask::WorkflowTaskScheduleToStart { scheduled_event_id, attempt, version },
        TimerTask::WorkflowTaskStartToClose { scheduled_event_id, attempt, version },
        TimerTask::FirstWorkflowTask { version },
        TimerTask::RunTimeout { version },
        TimerTask::ExecutionTimeout { version },
        TimerTask::Retention { version },
        TimerTask::Schedule,
    ];
    let queued = |(task_id, task)| QueuedTask { task_id, key: sampler.key(), task };
    // Two fire at the same moment each, the ids descending otherwise: time comes first.
    (1..=8)
        .rev()
        .zip(tasks)
        .map(queued)
        .enumerate()
        .map(|(index, queued)| QueuedTimer { fires_at: Timestamp(index as i64 / 2 * 100), queued })
        .collect()
}

#[tokio::test]
async fn timers_are_read_in_the_order_in_which_they_fire() {
    for bench in benches() {
        let mut owner = Owner::of(bench.stores).await;
        let timers = timers(&mut Sampler::new(6));
        owner.commit(|commit| commit.timers.clone_from(&timers)).await;
        let mut expected = timers;
        expected.sort_by_key(QueuedTimer::timer_key);

        let executions = owner.stores.executions.clone();
        let start = TimerKey { fires_at: Timestamp(i64::MIN), task_id: 0 };
        let all = executions.read_timers(SHARD, start, Timestamp(i64::MAX), 100).await.unwrap();
        assert_eq!((all.tasks.as_slice(), all.has_more), (expected.as_slice(), false));
        let due = executions.read_timers(SHARD, start, Timestamp(200), 100).await.unwrap();
        assert_eq!(due.tasks, expected[..4]);
        let page = executions.read_timers(SHARD, expected[1].timer_key(), Timestamp(i64::MAX), 2).await.unwrap();
        assert_eq!((page.tasks.as_slice(), page.has_more), (&expected[2..4], true));
        let none = executions.read_timers(SHARD, expected[1].timer_key(), Timestamp(0), 2).await.unwrap();
        assert_eq!((none.tasks.len(), none.has_more), (0, false));

        let (first, third) = (expected[0].timer_key(), expected[2].timer_key());
        owner
            .commit(|commit| {
                commit.completed_timers = Some(first..=third);
                commit.left_timers.extend([expected[5].timer_key(); 2]);
            })
            .await;
        let rest = executions.read_timers(SHARD, start, Timestamp(i64::MAX), 100).await.unwrap();
        assert_eq!(rest.tasks, [&expected[3..5], &expected[6..]].concat());
    }
}

#[tokio::test]
async fn timers_of_one_moment_share_rows_that_go_when_the_last_of_them_is_done() {
    for bench in benches() {
        let mut owner = Owner::of(bench.stores).await;
        let mut sampler = Sampler::new(9);
        let (one, other) = (sampler.key(), sampler.key());
        let timer = |task_id: i64| {
            // The other namespace has every tenth.
            let key = if task_id % 10 == 0 { other.clone() } else { one.clone() };
            let task = TimerTask::RunTimeout { version: task_id };
            QueuedTimer { fires_at: Timestamp(100), queued: QueuedTask { task_id, key, task } }
        };
        let timers: Vec<QueuedTimer> = (1..=299).map(timer).collect();
        owner.commit(|commit| commit.timers.clone_from(&timers)).await;

        let executions = owner.stores.executions.clone();
        let start = TimerKey { fires_at: Timestamp(0), task_id: 0 };
        let (mut read, mut after, mut n_rows) = (Vec::new(), start, 0);
        while let page = executions.read_timers(SHARD, after, Timestamp(101), 1).await.unwrap()
            && let Some(last) = page.tasks.last()
        {
            n_rows += 1;
            after = last.timer_key();
            read.extend(page.tasks);
        }
        read.sort_by_key(QueuedTimer::timer_key);
        assert_eq!((read, n_rows), (timers.clone(), 3), "256 and 14 of the one, 29 of the other");

        let done = |last: i64| Some(start..=TimerKey { fires_at: Timestamp(100), task_id: last });
        owner.commit(|commit| commit.completed_timers = done(298)).await;
        let of = |key: &ExecutionKey| executions.timer_rows(SHARD, key.namespace_id, start, 10);
        let (of_one, of_other) = (of(&one).await.unwrap(), of(&other).await.unwrap());
        assert_eq!((of_one.of_namespace, of_one.next), (vec![timers[298].timer_key()], None));
        assert_eq!(of_other.of_namespace, []);
        owner.commit(|commit| commit.completed_timers = done(299)).await;
        assert_eq!(of(&one).await.unwrap().of_namespace, []);
    }
}

#[tokio::test]
async fn a_row_of_timers_under_another_name_is_damaged() {
    let (model, stores) = on_model();
    let mut owner = Owner::of(stores).await;
    let key = Sampler::new(10).key();
    let queued = |task_id| QueuedTask { task_id, key: key.clone(), task: TimerTask::RunTimeout { version: 1 } };
    let together = [5, 6].map(|task_id| QueuedTimer { fires_at: Timestamp(100), queued: queued(task_id) });
    owner.commit(|commit| commit.timers.extend(together)).await;
    let mut row = model.dump(&shard_partition()).1.pop().expect("the row of both");
    *row.key.last_mut().expect("a task id") = Value::Bigint(7);
    model.write(Batch { puts: vec![row], ..Batch::new(shard_partition()) }).await.unwrap();
    let start = TimerKey { fires_at: Timestamp(0), task_id: 0 };
    let read = owner.stores.executions.read_timers(SHARD, start, Timestamp(101), 10).await.unwrap();
    let places: Vec<i64> = read.damaged.iter().map(|row| row.task_id).collect();
    assert_eq!((read.tasks.len(), places), (2, vec![7]), "the row under its own name is read");
}

#[tokio::test]
#[should_panic(expected = "put and range-deleted in one batch")]
async fn a_commit_never_completes_what_it_adds() {
    let (_, stores) = on_model();
    let mut owner = Owner::of(stores).await;
    let task = transfer(&mut Sampler::new(7), 5);
    owner
        .commit(|commit| {
            commit.transfer.push(task);
            commit.completed_transfer = Some(1..=5);
        })
        .await;
}

#[test]
fn the_size_estimate_follows_what_users_put_in() {
    let mut sampler = Sampler::new(8);
    let mut state = sampler.state();
    write(&mut state);
    let small = write(&mut state).size_estimate();
    let event = sampler.event();
    let payload = vec![7_u8; 100_000];
    let details = proto::temporal::api::common::v1::Payload { data: payload.into(), ..Default::default() };
    let mut activity = sampler.activity(1);
    activity.unrecorded.heartbeat_details =
        Some(proto::temporal::api::common::v1::Payloads { payloads: vec![details] });
    state.activities.insert(1, activity);
    state.unrecorded.buffered_events.insert(1, event);
    let large = write(&mut state).size_estimate();
    assert!(large > small + 100_000 && large < small + 110_000, "{small} and {large}");
}

#[test]
fn a_row_kind_has_the_number_that_is_stored() {
    let kinds = [RowKind::Current, RowKind::Run, RowKind::TransferQueue, RowKind::TimerQueue];
    assert_eq!(kinds.map(|kind| kind as i32), [1, 2, 3, 4]);
}
