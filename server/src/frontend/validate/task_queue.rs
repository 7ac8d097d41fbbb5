//! Names of task queues.

use cluster::errors::ServiceError;
use proto::temporal::api::enums::v1::TaskQueueKind;
use proto::temporal::api::taskqueue::v1::TaskQueue;

use super::{ID_BYTES_MAX, invalid};

/// Prefix of partition names, which queue names must not have.
const PARTITION_PREFIX: &str = "/_sys/";

/// Queues of the server's own workers in each namespace.
const INTERNAL_PREFIX: &str = "temporal-sys-per-ns-";
const INTERNAL_CONTROLLER: &str = "temporal-sys-worker-controller-per-ns-tq";

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Naming {
    /// A whole queue.
    Queue,
    /// A queue or one of its partitions.
    Partition,
}

/// Checks a queue that a worker polls or an operator describes.
pub(crate) fn check(queue: Option<&mut TaskQueue>, naming: Naming) -> Result<(), ServiceError> {
    let queue = queue.ok_or_else(|| invalid("taskQueue is not set"))?;
    if queue.kind() == TaskQueueKind::Unspecified {
        queue.set_kind(TaskQueueKind::Normal);
    }
    if queue.name.is_empty() {
        return Err(invalid("missing task queue name"));
    }
    name(&queue.name, naming)?;
    // Old SDKs leave out the normal name of a sticky queue.
    if queue.kind() == TaskQueueKind::Sticky && !queue.normal_name.is_empty() {
        name(&queue.normal_name, Naming::Partition)?;
    }
    Ok(())
}

/// Checks a queue that a client chose for a workflow.
pub(crate) fn check_chosen_by_user(queue: Option<&mut TaskQueue>) -> Result<(), ServiceError> {
    let queue = queue.ok_or_else(|| invalid("taskQueue is not set"))?;
    check(Some(queue), Naming::Queue)?;
    if queue.name.starts_with(INTERNAL_PREFIX) || queue.name == INTERNAL_CONTROLLER {
        return Err(invalid(format!("cannot use internal per-namespace task queue:{}", queue.name)));
    }
    Ok(())
}

/// Checks the name of a target queue.
pub(crate) fn named(queue: &str) -> Result<(), ServiceError> {
    if queue.is_empty() {
        return Err(invalid("taskQueue is not set"));
    }
    name(queue, Naming::Queue)
}

fn name(name: &str, naming: Naming) -> Result<(), ServiceError> {
    if name.len() > ID_BYTES_MAX {
        return Err(invalid("taskQueue length exceeds limit"));
    }
    if naming == Naming::Queue && name.starts_with(PARTITION_PREFIX) {
        return Err(invalid(format!("task queue name cannot start with reserved prefix {PARTITION_PREFIX}")));
    }
    if name.strip_prefix(PARTITION_PREFIX).is_some_and(|partition| !is_partition(partition)) {
        return Err(invalid(format!("invalid task queue partition name {name}")));
    }
    Ok(())
}

/// Whether this is a queue's name and the number of a partition that is not its first.
fn is_partition(name: &str) -> bool {
    name.rsplit_once('/')
        .is_some_and(|(queue, number)| !queue.is_empty() && number.parse::<u32>().is_ok_and(|number| number > 0))
}
