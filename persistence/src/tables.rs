//! Every table, described once. `schema/cql` spells the same tables for CQL; a test holds the two together.

use crate::table::{Column, Kind, Table};

const fn int(name: &'static str) -> Column {
    Column::new(name, Kind::Int)
}
const fn bigint(name: &'static str) -> Column {
    Column::new(name, Kind::Bigint)
}
const fn text(name: &'static str) -> Column {
    Column::new(name, Kind::Text)
}
const fn uuid(name: &'static str) -> Column {
    Column::new(name, Kind::Uuid)
}
const fn blob(name: &'static str) -> Column {
    Column::new(name, Kind::Blob)
}

/// The shard's wide row: its lease, its runs with their pending items, and its queues, so that one conditional batch
/// covers all that a transition changes.
///
/// `kind` is a `stores::executions::RowKind`. Rows of one run are adjacent: a run is loaded by one slice. `sort_key`
/// and `id` are the item's kind and id, or a timer's fire time and task id.
pub static EXECUTIONS: Table = Table {
    name: "executions",
    partition: &[int("shard_id")],
    clustering: &[
        int("kind"),
        uuid("namespace_id"),
        text("workflow_id"),
        uuid("run_id"),
        bigint("sort_key"),
        bigint("id"),
    ],
    statics: &[bigint("range_id"), bigint("commit_id"), blob("shard")],
    values: &[bigint("version"), blob("data")],
    is_versioned: false,
};

/// Event batches. The highest `txn_id` of a node wins; `prev_txn_id` chains it to the batch before.
pub static HISTORY_NODE: Table = Table {
    name: "history_node",
    partition: &[uuid("tree_id")],
    clustering: &[uuid("branch_id"), bigint("node_id"), bigint("txn_id")],
    statics: &[],
    values: &[bigint("prev_txn_id"), blob("data")],
    is_versioned: false,
};

/// Branches of a history that was forked. A history with one branch has no row here.
pub static HISTORY_TREE: Table = Table {
    name: "history_tree",
    partition: &[uuid("tree_id")],
    clustering: &[uuid("branch_id")],
    statics: &[],
    values: &[blob("data")],
    is_versioned: false,
};

/// One task-queue partition: its lease and its backlog, ordered by subqueue (priority) and fairness `pass`.
pub static TASK_QUEUES: Table = Table {
    name: "task_queues",
    partition: &[uuid("namespace_id"), text("name"), int("task_type")],
    clustering: &[int("subqueue"), bigint("pass"), bigint("task_id")],
    statics: &[bigint("range_id"), blob("queue")],
    values: &[blob("data")],
    is_versioned: false,
};

pub static TASK_QUEUE_USER_DATA: Table = Table {
    name: "task_queue_user_data",
    partition: &[uuid("namespace_id")],
    clustering: &[text("name")],
    statics: &[],
    values: &[bigint("version"), blob("data")],
    is_versioned: false,
};

/// Task queues of a namespace that were ever leased: a partition cannot be found without its key.
pub static TASK_QUEUE_NAMES: Table = Table {
    name: "task_queue_names",
    partition: &[uuid("namespace_id")],
    clustering: &[text("name"), int("task_type")],
    statics: &[],
    values: &[blob("data")],
    is_versioned: false,
};

/// All namespaces, twice: by id with the record, by name with the id. One partition, so that one conditional batch
/// keeps the two and `notification_version` together.
pub static NAMESPACES: Table = Table {
    name: "namespaces",
    partition: &[int("bucket")],
    clustering: &[int("kind"), text("key")],
    statics: &[bigint("notification_version")],
    values: &[bigint("version"), blob("data")],
    is_versioned: false,
};

pub static CLUSTER_METADATA: Table = Table {
    name: "cluster_metadata",
    partition: &[int("bucket")],
    clustering: &[text("cluster_name")],
    statics: &[],
    values: &[bigint("version"), blob("data")],
    is_versioned: false,
};

/// Heartbeats of the nodes. No TTL: any node that notices deletes the row of one that left.
pub static CLUSTER_MEMBERSHIP: Table = Table {
    name: "cluster_membership",
    partition: &[int("bucket")],
    clustering: &[uuid("host_id")],
    statics: &[],
    values: &[bigint("heartbeat_at"), blob("data")],
    is_versioned: false,
};

/// Queues of messages and their dead letters.
pub static QUEUES: Table = Table {
    name: "queues",
    partition: &[int("queue_type"), text("name")],
    clustering: &[bigint("message_id")],
    statics: &[bigint("next_message_id"), blob("queue")],
    values: &[blob("data")],
    is_versioned: false,
};

/// All queues: a partition cannot be found without its key.
pub static QUEUE_NAMES: Table = Table {
    name: "queue_names",
    partition: &[int("queue_type")],
    clustering: &[text("name")],
    statics: &[],
    values: &[blob("data")],
    is_versioned: false,
};

pub static NEXUS_ENDPOINTS: Table = Table {
    name: "nexus_endpoints",
    partition: &[int("bucket")],
    clustering: &[uuid("endpoint_id")],
    statics: &[bigint("table_version")],
    values: &[bigint("version"), blob("data")],
    is_versioned: false,
};

/// Visibility: runs and their index terms, in segments of a namespace; segment 0 is the directory of the others.
///
/// `kind` is a `stores::visibility::keys::RowKind`. `started` is the start of the run, inverted, so that the newest
/// come first. Versioned, because a node that lost its shard may still have a write in flight.
pub static VISIBILITY: Table = Table {
    name: "visibility",
    partition: &[uuid("namespace_id"), bigint("segment")],
    clustering: &[int("kind"), text("name"), blob("value"), bigint("started"), uuid("run_id")],
    statics: &[],
    values: &[bigint("version"), blob("data")],
    is_versioned: true,
};

/// All tables, in reading order.
pub static ALL: [&Table; 13] = [
    &EXECUTIONS,
    &HISTORY_NODE,
    &HISTORY_TREE,
    &TASK_QUEUES,
    &TASK_QUEUE_USER_DATA,
    &TASK_QUEUE_NAMES,
    &NAMESPACES,
    &CLUSTER_METADATA,
    &CLUSTER_MEMBERSHIP,
    &QUEUES,
    &QUEUE_NAMES,
    &NEXUS_ENDPOINTS,
    &VISIBILITY,
];
