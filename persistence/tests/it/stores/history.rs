//! Only what chains is history: orphans, forks of forks, pages of every size.

use persistence::engine::{Batch, Engine, KeyRange, Partition, Row, Slice};
use persistence::error::StoreError;
use persistence::stores::history::{Cursor, EventBatch, HistoryStore, NewNode, Node};
use persistence::table::{Table, Value};
use persistence::tables::{HISTORY_NODE, HISTORY_TREE};
use proto::temporal::api::history::v1::HistoryEvent;
use uuid::Uuid;
use workflow::{Branch, EventId, RunId};

use super::{Bench, benches, on_model};

fn root() -> Branch {
    Branch::root(RunId(Uuid::new_v4()))
}

fn events(ids: std::ops::Range<i64>, txn_id: i64) -> Vec<HistoryEvent> {
    ids.map(|event_id| HistoryEvent { event_id, task_id: txn_id, ..HistoryEvent::default() }).collect()
}

/// Writes events `ids` as one node.
async fn append(history: &HistoryStore, branch: &Branch, ids: std::ops::Range<i64>, txn: (i64, i64)) {
    let (prev_txn_id, txn_id) = txn;
    let events = EventBatch::encode(&events(ids, txn_id));
    history.append(branch, NewNode { txn_id, prev_txn_id, events: &events }).await.unwrap();
}

/// A root branch with real nodes `1..3 3..4 4..8 8..9 9..12`, and orphans before, between and after them.
async fn with_orphans(history: &HistoryStore) -> Branch {
    let branch = root();
    append(history, &branch, 1..2, (0, 5)).await;
    append(history, &branch, 2..5, (5, 6)).await;
    append(history, &branch, 1..3, (0, 10)).await;
    append(history, &branch, 3..4, (10, 11)).await;
    // A line of three that was given up, and what came in its place.
    append(history, &branch, 4..5, (11, 12)).await;
    append(history, &branch, 5..7, (12, 13)).await;
    append(history, &branch, 7..9, (13, 14)).await;
    append(history, &branch, 4..8, (11, 20)).await;
    append(history, &branch, 8..9, (20, 21)).await;
    append(history, &branch, 9..10, (21, 22)).await;
    append(history, &branch, 9..12, (21, 30)).await;
    append(history, &branch, 12..15, (30, 31)).await;
    branch
}

/// The `(event id, transaction id)` of every event.
fn shown(nodes: &[Node]) -> Vec<(i64, i64)> {
    let events = nodes.iter().flat_map(|node| node.events.decode().unwrap());
    events.map(|event| (event.event_id, event.task_id)).collect()
}

const REAL: [(i64, i64); 11] =
    [(1, 10), (2, 10), (3, 11), (4, 20), (5, 20), (6, 20), (7, 20), (8, 21), (9, 30), (10, 30), (11, 30)];

/// Whether a page may be continued with all that it says, or only with the event id, as clients do.
#[derive(Clone, Copy)]
enum Tokens {
    Full,
    EventIdOnly,
}

fn token(cursor: Cursor, tokens: Tokens) -> Cursor {
    match tokens {
        Tokens::Full => cursor,
        Tokens::EventIdOnly => Cursor::from(cursor.event_id),
    }
}

async fn read_all(
    history: &HistoryStore,
    branch: &Branch,
    range: std::ops::Range<i64>,
    page: (usize, Tokens),
) -> Vec<(i64, i64)> {
    let mut place = Cursor::from(EventId(range.start));
    let mut nodes = Vec::new();
    loop {
        let read = history.read(branch, place, EventId(range.end), page.0).await.unwrap();
        assert!(read.nodes.len() <= page.0);
        nodes.extend(read.nodes);
        match read.next {
            Some(next) => place = token(next, page.1),
            None => return shown(&nodes),
        }
    }
}

async fn read_all_reverse(
    history: &HistoryStore,
    branch: &Branch,
    range: std::ops::Range<i64>,
    page: (usize, Tokens),
) -> Vec<(i64, i64)> {
    let mut place = Cursor::from(EventId(range.end));
    let mut nodes = Vec::new();
    loop {
        let read = history.read_reverse(branch, place, EventId(range.start), page.0).await.unwrap();
        assert!(read.nodes.len() <= page.0);
        nodes.extend(read.nodes);
        match read.next {
            Some(next) => place = token(next, page.1),
            None => break,
        }
    }
    nodes.reverse();
    shown(&nodes)
}

/// Reads every range of `expected` in pages of every size, in both directions.
async fn check(history: &HistoryStore, branch: &Branch, expected: &[(i64, i64)]) {
    let n_events = i64::try_from(expected.len()).unwrap();
    for from in 1..=n_events {
        for to in from + 1..=n_events + 1 {
            let wanted = &expected[usize::try_from(from - 1).unwrap()..usize::try_from(to - 1).unwrap()];
            for limit in [1, 2, 3, 100] {
                for tokens in [Tokens::Full, Tokens::EventIdOnly] {
                    let page = (limit, tokens);
                    let read = read_all(history, branch, from..to, page).await;
                    assert_eq!(read, wanted, "{from}..{to} in pages of {limit}");
                    let read = read_all_reverse(history, branch, from..to, page).await;
                    assert_eq!(read, wanted, "{from}..{to} backwards in pages of {limit}");
                }
            }
        }
    }
}

#[tokio::test]
async fn orphans_are_never_read() {
    for bench in benches() {
        let history = &bench.stores.history;
        let branch = with_orphans(history).await;
        check(history, &branch, &REAL).await;
    }
}

#[tokio::test]
async fn nodes_keep_their_bounds_and_chain() {
    for bench in benches() {
        let history = &bench.stores.history;
        let branch = with_orphans(history).await;
        let page = history.read(&branch, EventId(5), EventId(9), 10).await.unwrap();
        let bounds = |node: &Node| (node.first_event_id.0, node.prev_txn_id, node.txn_id, node.events.count());
        assert_eq!(page.nodes.iter().map(bounds).collect::<Vec<_>>(), [(4, 11, 20, 3), (8, 20, 21, 1)]);
        let node = history.read_node(&branch, EventId(9)).await.unwrap();
        assert_eq!((node.txn_id, shown(&[node]).as_slice()), (30, &REAL[8..]));
        let empty = history.read(&branch, EventId(5), EventId(5), 10).await.unwrap();
        assert_eq!((empty.nodes.len(), empty.next), (0, None));
    }
}

#[tokio::test]
async fn forks_of_forks_read_as_one_history() {
    for bench in benches() {
        let history = &bench.stores.history;
        let trunk = with_orphans(history).await;
        // In the middle of a node, as a reset to a transient workflow task is.
        let fork = history.fork(&trunk, EventId(6), RunId(Uuid::new_v4())).await.unwrap();
        append(history, &fork, 6..9, (20, 40)).await;
        append(history, &fork, 9..11, (40, 41)).await;
        let mut expected = REAL[..5].to_vec();
        expected.extend([(6, 40), (7, 40), (8, 40), (9, 41), (10, 41)]);
        check(history, &fork, &expected).await;

        let fork_of_fork = history.fork(&fork, EventId(9), RunId(Uuid::new_v4())).await.unwrap();
        append(history, &fork_of_fork, 9..10, (40, 50)).await;
        let mut expected = expected[..8].to_vec();
        expected.push((9, 50));
        check(history, &fork_of_fork, &expected).await;

        // Forked below the end of its source's own ancestor: the source has no part in it.
        let low = history.fork(&fork_of_fork, EventId(3), RunId(Uuid::new_v4())).await.unwrap();
        assert_eq!(low.ancestors.len(), 1);
        append(history, &low, 3..5, (10, 60)).await;
        check(history, &low, &[(1, 10), (2, 10), (3, 60), (4, 60)]).await;
        check(history, &trunk, &REAL).await;
        assert_eq!(history.branches(trunk.tree_id).await.unwrap().len(), 4);
        let node = history.read_node(&fork_of_fork, EventId(8)).await;
        assert!(matches!(node, Err(StoreError::Corrupt(_))), "no node of this branch starts at 8");
    }
}

#[tokio::test]
async fn a_history_with_a_hole_is_corrupt() {
    let (model, stores) = on_model();
    let history = &stores.history;
    let branch = with_orphans(history).await;
    let mut batch = Batch::new(Partition::new(&HISTORY_NODE, vec![Value::Uuid(branch.tree_id)]));
    let key = |node_id: i64, txn_id: i64| vec![branch.branch_id.into(), node_id.into(), txn_id.into()];
    batch.deletes = vec![key(8, 21)];
    model.write(batch).await.unwrap();
    for (from, to) in [(1, 12), (4, 9), (8, 9), (8, 12)] {
        let read = history.read(&branch, EventId(from), EventId(to), 10).await;
        assert!(matches!(read, Err(StoreError::Corrupt(_))), "{from}..{to}: {read:?}");
        let read = history.read_reverse(&branch, EventId(to), EventId(from), 10).await;
        assert!(matches!(read, Err(StoreError::Corrupt(_))), "{from}..{to} backwards: {read:?}");
    }
    // What is whole can still be read.
    assert_eq!(read_all(history, &branch, 1..8, (10, Tokens::Full)).await, REAL[..7]);
    assert_eq!(read_all(history, &branch, 9..12, (10, Tokens::Full)).await, REAL[8..]);
}

#[tokio::test]
async fn a_node_that_follows_another_transaction_is_corrupt() {
    let (_, stores) = on_model();
    let history = &stores.history;
    let branch = root();
    append(history, &branch, 1..3, (0, 10)).await;
    append(history, &branch, 3..5, (9, 11)).await;
    let read = history.read(&branch, EventId(1), EventId(5), 10).await;
    let Err(StoreError::Corrupt(reason)) = read else { panic!("{read:?}") };
    assert!(reason.contains("follows transaction 9, not 10"), "{reason}");
    assert!(reason.contains(&branch.branch_id.to_string()), "{reason}");
}

#[tokio::test]
async fn trimming_deletes_what_lies_beyond_the_end_and_is_old() {
    let (model, stores) = on_model();
    let history = &stores.history;
    let branch = with_orphans(history).await;
    append(history, &branch, 12..13, (30, 99)).await;
    assert_eq!(history.trim(&branch, EventId(12), 90).await.unwrap(), 1);
    assert_eq!(history.trim(&branch, EventId(12), 90).await.unwrap(), 0);
    assert_eq!(read_all(history, &branch, 1..13, (10, Tokens::Full)).await.last(), Some(&(12, 99)));
    let rows = model.dump(&Partition::new(&HISTORY_NODE, vec![Value::Uuid(branch.tree_id)])).1;
    assert!(rows.iter().all(|row| row.key[2] != Value::Bigint(31)));
}

#[tokio::test]
async fn deleting_branches_in_any_order_keeps_what_others_need_and_leaves_nothing_at_last() {
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    for (order, bench) in orders.into_iter().flat_map(|order| benches().into_iter().map(move |bench| (order, bench))) {
        let history = &bench.stores.history;
        let trunk = with_orphans(history).await;
        let fork = history.fork(&trunk, EventId(6), RunId(Uuid::new_v4())).await.unwrap();
        append(history, &fork, 6..9, (20, 40)).await;
        append(history, &fork, 9..11, (40, 41)).await;
        let fork_of_fork = history.fork(&fork, EventId(9), RunId(Uuid::new_v4())).await.unwrap();
        append(history, &fork_of_fork, 9..10, (40, 50)).await;
        let branches = [(trunk.clone(), 12), (fork, 11), (fork_of_fork, 10)];
        let mut expected = Vec::new();
        for (branch, end) in &branches {
            expected.push(read_all(history, branch, 1..*end, (10, Tokens::Full)).await);
        }
        for (n_deleted, index) in order.into_iter().enumerate() {
            history.delete(&branches[index].0).await.unwrap();
            history.delete(&branches[index].0).await.unwrap();
            for kept in &order[n_deleted + 1..] {
                let (branch, end) = &branches[*kept];
                let read = read_all(history, branch, 1..*end, (10, Tokens::EventIdOnly)).await;
                assert_eq!(read, expected[*kept], "{order:?}: {kept} after {index} is gone");
            }
        }
        for (branch, _) in &branches {
            assert_eq!(rows(&bench, &HISTORY_TREE, branch.branch_id).await, [], "{order:?}");
        }
        assert_eq!(rows(&bench, &HISTORY_NODE, trunk.tree_id).await, [], "{order:?}");
    }
}

/// All that a partition has.
async fn rows(bench: &Bench, table: &'static Table, id: Uuid) -> Vec<Row> {
    let partition = Partition::new(table, vec![Value::Uuid(id)]);
    bench.engine.read(Slice::new(partition, KeyRange::all(), 100)).await.unwrap().rows
}

#[tokio::test]
async fn the_branch_of_a_run_is_found_by_its_id_alone() {
    for bench in benches() {
        let history = &bench.stores.history;
        let trunk = with_orphans(history).await;
        let (one, other) = (RunId(Uuid::new_v4()), RunId(Uuid::new_v4()));
        assert_eq!(history.branch_of(RunId(trunk.branch_id)).await.unwrap(), trunk, "never forked");
        let fork = history.fork(&trunk, EventId(6), one).await.unwrap();
        let fork_of_fork = history.fork(&fork, EventId(9), other).await.unwrap();
        for branch in [trunk, fork, fork_of_fork] {
            assert_eq!(history.branch_of(RunId(branch.branch_id)).await.unwrap(), branch);
        }
    }
}

#[tokio::test]
async fn a_history_that_was_never_forked_has_no_tree() {
    let (model, stores) = on_model();
    let branch = with_orphans(&stores.history).await;
    let tree = Partition::new(&HISTORY_TREE, vec![Value::Uuid(branch.tree_id)]);
    assert_eq!(model.dump(&tree).1, []);
    stores.history.delete(&branch).await.unwrap();
    let nodes = Partition::new(&HISTORY_NODE, vec![Value::Uuid(branch.tree_id)]);
    assert_eq!(model.dump(&nodes).1, []);
}
