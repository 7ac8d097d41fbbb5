//! The text of every shape.

use std::collections::BTreeMap;

use persistence::engine::KeyRange;
use persistence::tables::{EXECUTIONS, HISTORY_NODE, NEXUS_ENDPOINTS, TASK_QUEUES, VISIBILITY};

use super::*;

fn shape_of(lower: Bound<Vec<Value>>, upper: Bound<Vec<Value>>) -> RangeShape {
    RangeShape::new(&Range::new(&KeyRange { lower, upper }).unwrap())
}

#[test]
fn static_columns_are_read_without_rows() {
    assert_eq!(
        text(&TASK_QUEUES, &Shape::Statics),
        "SELECT DISTINCT range_id, queue FROM task_queues WHERE namespace_id = ? AND name = ? AND task_type = ?"
    );
}

#[test]
fn a_whole_key_is_read_as_a_point() {
    let key: Vec<Value> = vec![uuid::Uuid::nil().into()];
    let range = shape_of(Bound::Included(key.clone()), Bound::Included(key));
    assert_eq!(
        text(&NEXUS_ENDPOINTS, &Shape::Ascending(range)),
        "SELECT endpoint_id, version, data FROM nexus_endpoints WHERE bucket = ? AND endpoint_id = ? \
         ORDER BY endpoint_id ASC LIMIT ?"
    );
}

#[test]
fn both_bounds_are_tuples_if_one_is() {
    let node = |number: i64| Value::Bigint(number);
    let branch = Value::Uuid(uuid::Uuid::nil());
    let range =
        shape_of(Bound::Excluded(vec![branch.clone(), node(1), node(5)]), Bound::Excluded(vec![branch, node(9)]));
    assert_eq!(
        text(&HISTORY_NODE, &Shape::Descending(range)),
        "SELECT branch_id, node_id, txn_id, prev_txn_id, data FROM history_node WHERE tree_id = ? AND branch_id = ? \
         AND (node_id, txn_id) > (?, ?) AND (node_id) < (?) \
         ORDER BY branch_id DESC, node_id DESC, txn_id DESC LIMIT ?"
    );
}

#[test]
fn a_span_of_one_column_needs_no_tuples() {
    let range = shape_of(Bound::Included(vec![1.into()]), Bound::Excluded(vec![3.into()]));
    assert_eq!(
        text(&TASK_QUEUES, &Shape::DeleteRange(range)),
        "DELETE FROM task_queues WHERE namespace_id = ? AND name = ? AND task_type = ? AND subqueue >= ? AND subqueue < ?"
    );
}

#[test]
fn the_lease_is_a_condition_on_a_static_column() {
    let shape = Shape::SetStatics { set: vec![(1, Cell::Bound)], conditions: vec![(0, Cell::Bound), (2, Cell::Null)] };
    assert_eq!(
        text(&EXECUTIONS, &shape),
        "UPDATE executions SET commit_id = ? WHERE shard_id = ? IF range_id = ? AND shard = null"
    );
}

#[test]
fn rows_are_put_kept_and_deleted_on_condition() {
    let check = |shape: Shape, expected: &str| assert_eq!(text(&NEXUS_ENDPOINTS, &shape), expected);
    let key = "bucket = ? AND endpoint_id = ?";
    check(Shape::Put, "INSERT INTO nexus_endpoints (bucket, endpoint_id, version, data) VALUES (?, ?, ?, ?)");
    check(
        Shape::PutIfAbsent,
        "INSERT INTO nexus_endpoints (bucket, endpoint_id, version, data) VALUES (?, ?, ?, ?) IF NOT EXISTS",
    );
    check(Shape::PutKey, "INSERT INTO nexus_endpoints (bucket, endpoint_id) VALUES (?, ?)");
    check(
        Shape::PutIf(vec![0]),
        &format!("UPDATE nexus_endpoints SET version = ?, data = ? WHERE {key} IF version = ?"),
    );
    check(
        Shape::KeepIf(vec![0, 1]),
        &format!("UPDATE nexus_endpoints SET version = ? WHERE {key} IF version = ? AND data = ?"),
    );
    check(Shape::Delete, &format!("DELETE FROM nexus_endpoints WHERE {key}"));
    check(Shape::DeleteIf(vec![0]), &format!("DELETE FROM nexus_endpoints WHERE {key} IF version = ?"));
}

#[test]
fn a_version_is_the_time_of_writing() {
    let check = |shape: Shape, expected: &str| assert_eq!(text(&VISIBILITY, &shape), expected);
    check(
        Shape::PutAt,
        "INSERT INTO visibility (namespace_id, segment, kind, name, value, started, run_id, version, data) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) USING TIMESTAMP ?",
    );
    check(
        Shape::DeleteAt,
        "DELETE FROM visibility USING TIMESTAMP ? WHERE namespace_id = ? AND segment = ? AND kind = ? AND name = ? \
         AND value = ? AND started = ? AND run_id = ?",
    );
    let kind = shape_of(Bound::Included(vec![1.into()]), Bound::Included(vec![1.into()]));
    check(
        Shape::DeleteRangeAt(kind),
        "DELETE FROM visibility USING TIMESTAMP ? WHERE namespace_id = ? AND segment = ? AND kind = ?",
    );
}

#[test]
fn a_keyspace_is_replicated_as_configured() {
    assert_eq!(
        create_keyspace("everrow", &Replication::Copies(3)),
        "CREATE KEYSPACE IF NOT EXISTS everrow WITH replication = {'class': 'SimpleStrategy', \
         'replication_factor': 3} AND durable_writes = true"
    );
    let copies = BTreeMap::from([("east".to_owned(), 3), ("o'west".to_owned(), 2)]);
    assert_eq!(
        create_keyspace("everrow", &Replication::PerDatacenter(copies)),
        "CREATE KEYSPACE IF NOT EXISTS everrow WITH replication = {'class': 'NetworkTopologyStrategy', \
         'east': 3, 'o''west': 2} AND durable_writes = true"
    );
}
