//! Which writes leave when, and together with which others.

use bytes::Bytes;
use persistence::engine::{Partition, Row};
use persistence::tables::HISTORY_NODE;

use super::*;

const NODE: NodeId = Uuid::from_u128(1);
const OTHER_NODE: NodeId = Uuid::from_u128(2);

/// A row of this history with this many bytes of events.
fn row(tree: u128, node_id: i64, bytes: usize) -> SmallWrite {
    let put = Row {
        key: vec![Uuid::from_u128(tree).into(), node_id.into(), 1_i64.into()],
        values: vec![0_i64.into(), Bytes::from(vec![7; bytes]).into()],
    };
    let partition = Partition::new(&HISTORY_NODE, vec![Uuid::from_u128(tree).into()]);
    let batch = Batch { puts: vec![put], durable: Durable::WithNext, ..Batch::new(partition) };
    SmallWrite { batch, told: oneshot::channel().0 }
}

/// How many writes leave together.
fn size(group: Option<Group>) -> Option<usize> {
    group.map(|group| group.writes.len())
}

#[test]
fn on_an_idle_lane_a_write_leaves_at_once_and_alone() {
    let mut lanes = Lanes::default();
    assert_eq!(size(lanes.add(NODE, row(1, 1, 100))), Some(1));
    assert_eq!(size(lanes.add(OTHER_NODE, row(2, 1, 100))), Some(1), "another node is another lane");
}

#[test]
fn what_comes_while_a_request_is_under_way_leaves_together_when_it_ends() {
    let mut lanes = Lanes::default();
    lanes.add(NODE, row(1, 1, 100));
    for tree in 2..=6 {
        assert_eq!(size(lanes.add(NODE, row(tree, 1, 100))), None);
    }
    assert_eq!(size(lanes.finished(NODE)), Some(5));
    assert_eq!(size(lanes.finished(NODE)), None);
    assert!(lanes.lanes.is_empty(), "an idle lane is not kept");
}

#[test]
fn a_request_leaves_beside_another_once_it_has_as_many_partitions_as_cassandra_takes_silently() {
    let mut lanes = Lanes::default();
    lanes.add(NODE, row(0, 1, 10));
    let left: Vec<_> = (1..=20).map(|tree| size(lanes.add(NODE, row(tree, 1, 10)))).collect();
    let full = |n: usize| n.is_multiple_of(10).then_some(10);
    assert_eq!(left, (1..=20).map(full).collect::<Vec<_>>());
    assert_eq!(size(lanes.finished(NODE)), None);
    assert_eq!(size(lanes.finished(NODE)), None, "two are under way still, and nothing waits");
}

#[test]
fn several_partitions_never_have_more_bytes_than_cassandra_takes_silently() {
    let mut lanes = Lanes::default();
    lanes.add(NODE, row(0, 1, 10));
    for tree in 1..=3 {
        assert_eq!(size(lanes.add(NODE, row(tree, 1, 1500))), None);
    }
    assert_eq!(size(lanes.add(NODE, row(4, 1, 1500))), Some(3));
    lanes.finished(NODE);
    assert_eq!(size(lanes.finished(NODE)), Some(1), "the one that did not fit in is next");
}

#[test]
fn rows_of_one_partition_share_a_request_whatever_their_bytes_up_to_a_number() {
    let mut lanes = Lanes::default();
    lanes.add(NODE, row(0, 1, 10));
    for node_id in 1..64 {
        assert_eq!(size(lanes.add(NODE, row(1, node_id, 1000))), None);
    }
    assert_eq!(size(lanes.add(NODE, row(1, 64, 1000))), Some(64));
}

#[test]
fn a_row_is_never_named_twice_in_a_request() {
    let mut lanes = Lanes::default();
    lanes.add(NODE, row(0, 1, 10));
    assert_eq!(size(lanes.add(NODE, row(1, 1, 10))), None);
    assert_eq!(size(lanes.add(NODE, row(1, 2, 10))), None);
    assert_eq!(size(lanes.add(NODE, row(1, 1, 20))), Some(2), "the same row again waits for the next");
}

#[test]
fn only_single_small_rows_that_count_later_may_share() {
    let shared = || row(1, 1, 100).batch;
    assert!(may_share(&shared()));
    assert!(!may_share(&row(1, 1, 6 << 10).batch), "large");
    assert!(!may_share(&Batch { durable: Durable::AtOnce, ..shared() }), "durable at once");
    assert!(!may_share(&Batch { deletes: vec![shared().puts[0].key.clone()], ..shared() }), "a deletion beside");
    let two = vec![shared().puts[0].clone(), row(1, 2, 100).batch.puts[0].clone()];
    assert!(!may_share(&Batch { puts: two, ..shared() }), "two rows");
    let absent = persistence::engine::Condition::Absent { key: shared().puts[0].key.clone() };
    assert!(!may_share(&Batch { conditions: vec![absent], ..shared() }), "a condition");
}
