//! Old segments of visibility: one whose runs are closed is not read for open ones any more, one whose runs are deleted is
//! removed. Whatever fails in between, no run is lost, and no list writes.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cluster::env::Env;
use cluster::search_attributes::custom::CustomAttributes;
use cluster::segments::{Segments, begins_at};
use persistence::counted::{Counted, Counts};
use persistence::model::{Fault, Model};
use persistence::stores::Stores;
use persistence::stores::visibility::record::{Close, Record};
use persistence::stores::visibility::{Change, Known, Put, Removal, Segment};
use proto::temporal::api::enums::v1::WorkflowExecutionStatus as Status;
use server::peers::Peers;
use server::visibility::list::{Among, ListRequest};
use server::visibility::service::{Parts, Service};
use uuid::Uuid;
use workflow::{Listing, NamespaceId, RunId, Timestamp};

use crate::query_table::blank;

const NAMESPACE_ID: NamespaceId = NamespaceId(Uuid::from_u128(1));
const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Passes that settle a segment, remove an empty one, and find nothing more to do.
const N_PASSES: usize = 4;
/// A list asks for a pass after 11 minutes.
const PASS: Duration = Duration::from_secs(12 * 60);
/// All runs that are ever listed.
const TOLD: [&str; 4] = ["closed-0", "closed-1", "left-open", "with-it"];

/// A node that went down some days ago, and what it left of its lists.
struct Left {
    model: Arc<Model>,
    stores: Stores,
    counts: Arc<Counts>,
    env: Env,
    settled: i64,
    open: i64,
    emptied: i64,
}

impl Left {
    /// A segment whose runs are closed, one with an open run, and one whose runs were deleted.
    async fn new() -> Self {
        let (model, env) = (Model::new(), Env::simulated(7));
        let (engine, counts) = Counted::new(Arc::clone(&model) as Arc<_>);
        let stores = Stores::new(engine);
        let began_at = |n_days: u32| Timestamp(env.now().0 - i64::try_from((n_days * DAY).as_nanos()).expect("days"));
        let [settled, open, emptied] = [5, 4, 3].map(|n_days| (began_at(n_days).0 / 1_000_000) << 20);
        for id in [settled, open, emptied] {
            let announced_at = begins_at(id);
            let segment = Segment { id, announced_at, sealed_at: None, is_settled: false };
            stores.visibility.put_segment(NAMESPACE_ID, segment).await.expect("it is written");
        }
        let deleted = closed("deleted", emptied);
        let runs = [closed("closed-0", settled), closed("closed-1", settled), record("left-open", open)];
        let mut changes: Vec<Change> =
            runs.into_iter().chain([closed("with-it", open), deleted.clone()]).map(put).collect();
        changes.push(Change::Remove(Box::new(Removal { record: deleted, terms: Vec::new() })));
        for change in changes {
            stores.visibility.write(&[change]).await.expect("it is written");
        }
        Self { model, stores, counts, env, settled, open, emptied }
    }

    /// A node that starts now.
    fn a_service(&self) -> Arc<Service> {
        let (env, store) = (self.env.clone(), self.stores.visibility.clone());
        Service::start(Parts { segments: Segments::new(env.clone()), peers: Peers::default(), env, store })
    }

    /// The segments that lists know of, with whether their runs are known to be closed.
    async fn segments(&self) -> Vec<(i64, bool)> {
        let segments = self.stores.visibility.segments(NAMESPACE_ID).await.expect("they are read");
        segments.into_iter().map(|segment| (segment.id, segment.is_settled)).collect()
    }

    /// The reads of one list of open runs.
    async fn reads(&self, service: &Service) -> u64 {
        let before = self.counts.reads.load(Ordering::Relaxed);
        assert_eq!(listed(service, "CloseTime IS NULL").await, ["left-open"]);
        self.counts.reads.load(Ordering::Relaxed) - before
    }
}

/// An open run that started a minute after its segment began.
fn record(workflow_id: &str, segment: i64) -> Record {
    let started_at = begins_at(segment) + MINUTE;
    let random: [u8; 10] = std::array::from_fn(|n| workflow_id.as_bytes().get(n).copied().unwrap_or_default());
    Record {
        workflow_id: workflow_id.into(),
        listing: Listing { started_in: segment, closed_in: None },
        ..blank(NAMESPACE_ID, RunId::new(started_at, &random), started_at)
    }
}

fn closed(workflow_id: &str, segment: i64) -> Record {
    let open = record(workflow_id, segment);
    let at = open.started_at + MINUTE;
    Record {
        status: Status::Completed,
        closed: Some(Close { at, history_length: 3, history_size: 300, state_transitions: 2 }),
        listing: Listing { started_in: segment, closed_in: Some(segment) },
        ..open
    }
}

fn put(record: Record) -> Change {
    Change::Put(Box::new(Put { record, terms: Vec::new(), stale: Vec::new(), known: Known::Never }))
}

async fn listed(service: &Service, query: &str) -> Vec<String> {
    let request = ListRequest {
        namespace_id: NAMESPACE_ID,
        custom: CustomAttributes::default(),
        among: Among::Runs,
        query: query.to_owned(),
        page_size: 100,
        token: Default::default(),
    };
    let page = service.list(request).await.expect("it is listed");
    let mut ids: Vec<String> =
        page.executions.into_iter().map(|run| run.execution.unwrap_or_default().workflow_id).collect();
    ids.sort_unstable();
    ids
}

/// Lists, and lets the pass that follows happen.
async fn list_and_wait(service: &Service, n_passes: usize) {
    for _ in 0..n_passes {
        assert_eq!(listed(service, "").await, TOLD);
        tokio::time::sleep(PASS).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_old_segment_is_settled_when_its_runs_are_closed_and_removed_when_they_are_deleted() {
    let left = Left::new().await;
    let service = left.a_service();
    let (settled, open, emptied) = (left.settled, left.open, left.emptied);
    assert_eq!(left.segments().await, [(emptied, false), (open, false), (settled, false)]);
    // The directory, and the open runs of each segment.
    assert_eq!(left.reads(&service).await, 1 + 3);
    list_and_wait(&service, N_PASSES).await;
    assert_eq!(left.segments().await, [(open, false), (settled, true)]);
    assert_eq!(left.reads(&service).await, 1 + 1);
    service.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_writes_nothing_and_a_namespace_without_lists_and_changes_costs_nothing() {
    let left = Left::new().await;
    let service = left.a_service();
    let counted = || {
        let Counts { reads, plain_writes, conditional_writes, .. } = &*left.counts;
        [reads, plain_writes, conditional_writes].map(|count| count.load(Ordering::Relaxed))
    };
    tokio::time::sleep(10 * PASS).await;
    let before = counted();
    tokio::time::sleep(10 * PASS).await;
    assert_eq!(counted(), before, "an idle service");
    let [_, writes, conditional_writes] = counted();
    for _ in 0..100 {
        assert_eq!(listed(&service, "").await, TOLD);
    }
    assert_eq!(counted()[1..], [writes, conditional_writes], "lists");
    service.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn housekeeping_loses_no_run_whenever_a_node_ends_or_a_write_fails() {
    use Fault::{AppliedLater, TimeoutApplied, TimeoutNotApplied, Unavailable};
    let faults = [None, Some(Unavailable), Some(TimeoutNotApplied), Some(TimeoutApplied), Some(AppliedLater)];
    for (n_passes, fault) in (0..3).flat_map(|n_passes| faults.map(|fault| (n_passes, fault))) {
        for nth in 1..=3 {
            let left = Left::new().await;
            let first = left.a_service();
            if let Some(fault) = fault {
                left.model.inject_nth(nth, fault);
            }
            list_and_wait(&first, n_passes).await;
            // Nothing of what it was doing is continued.
            first.shutdown().await;
            let second = left.a_service();
            list_and_wait(&second, N_PASSES).await;
            let expected = [(left.open, false), (left.settled, true)];
            assert_eq!(left.segments().await, expected, "{fault:?} at {nth}, {n_passes} passes");
            left.model.deliver_late();
            list_and_wait(&second, 1).await;
            assert_eq!(left.segments().await, expected, "{fault:?} at {nth}, {n_passes} passes, late");
            second.shutdown().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_written_only_after_a_restart_is_listed_as_open() {
    let left = Left::new().await;
    let service = left.a_service();
    assert_eq!(listed(&service, "").await, TOLD);
    tokio::time::sleep(10 * MINUTE).await;
    let as_they_were = [(left.emptied, false), (left.open, false), (left.settled, false)];
    assert_eq!(left.segments().await, as_they_were, "a node that has just started leaves them alone");
    service.write(vec![put(record("unheard-of", left.settled))]).await.expect("it is written");
    for _ in 0..N_PASSES {
        tokio::time::sleep(PASS).await;
        assert_eq!(listed(&service, "CloseTime IS NULL").await, ["left-open", "unheard-of"]);
    }
    assert_eq!(left.segments().await, [(left.open, false), (left.settled, false)]);
    service.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_written_after_its_segment_was_settled_or_removed_is_listed_as_open() {
    let left = Left::new().await;
    let service = left.a_service();
    // From here on the writer knows all three segments, and does not read them from the store.
    let known =
        Put { record: record("left-open", left.open), terms: Vec::new(), stale: Vec::new(), known: Known::Surely };
    service.write(vec![Change::Put(Box::new(known))]).await.expect("it is written");
    list_and_wait(&service, N_PASSES).await;
    assert_eq!(left.segments().await, [(left.open, false), (left.settled, true)]);

    let late = [record("late-0", left.settled), record("late-1", left.emptied)];
    service.write(late.into_iter().map(put).collect()).await.expect("it is written");
    for _ in 0..N_PASSES {
        assert_eq!(listed(&service, "CloseTime IS NULL").await, ["late-0", "late-1", "left-open"]);
        tokio::time::sleep(PASS).await;
    }
    service.shutdown().await;
}
