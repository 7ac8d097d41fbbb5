//! The log has each kind once.

use super::*;

#[test]
fn each_kind_is_logged_once() {
    let polls = UnbuiltPolls::default();
    let also = polls.clone();
    let asked = [Unbuilt::NexusTasks, Unbuilt::NexusTasks, Unbuilt::VersionedWorkers, Unbuilt::VersionedWorkers];
    assert_eq!(asked.map(|what| also.is_first(what)), [true, false, true, false]);
    assert!(!polls.is_first(Unbuilt::NexusTasks), "clones share what they know");
}
