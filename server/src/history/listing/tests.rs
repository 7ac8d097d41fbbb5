//! Index terms removed with a run.

use proto::temporal::api::enums::v1::WorkflowExecutionStatus;
use uuid::Uuid;
use workflow::{Listing, NamespaceId, RunId, Timestamp};

use super::*;

fn keyword(value: &str) -> Payload {
    let metadata = [("encoding", "json/plain"), ("type", "Keyword")];
    Payload {
        metadata: metadata.map(|(name, value)| (name.to_owned(), value.into())).into(),
        data: format!("{value:?}").into(),
        ..Default::default()
    }
}

fn colored(color: &str) -> Record {
    let mut record = Record {
        namespace_id: NamespaceId(Uuid::from_u128(1)),
        workflow_id: "painted".into(),
        run_id: RunId(Uuid::from_u128(2)),
        workflow_type: String::new(),
        task_queue: String::new(),
        status: WorkflowExecutionStatus::Completed,
        started_at: Timestamp(1),
        executes_at: Timestamp(1),
        closed: None,
        memo: Default::default(),
        search_attributes: Default::default(),
        parent: None,
        root: None,
        listing: Listing { started_in: 1, closed_in: None },
        version: 3,
    };
    record.search_attributes.indexed_fields.insert("Color".into(), keyword(color));
    record
}

#[test]
fn a_run_that_is_deleted_is_also_forgotten_by_what_it_was_found_by_before() {
    let mut removal = removed_record(colored("red"));
    let red = removal.terms.clone();
    assert_eq!(red.len(), 1, "it is found by its color");
    remove_replaced(&mut removal, &BTreeMap::from([("Color".to_owned(), keyword("blue"))]));
    assert_eq!(removal.terms.len(), 2);
    assert!(removal.terms.contains(&red[0]));
    // A batch may name a row only once.
    remove_replaced(&mut removal, &BTreeMap::from([("Color".to_owned(), keyword("red"))]));
    assert_eq!(removal.terms.len(), 2);
}
