//! How many, and of what.

use super::*;

fn namespace(number: u128) -> NamespaceId {
    NamespaceId(uuid::Uuid::from_u128(number))
}

#[test]
fn so_many_calls_of_a_kind_wait_in_a_namespace_and_no_more() {
    let calls = LongCalls::default();
    let enter = |number, call| calls.enter(namespace(number), call);
    let mut places: Vec<Place> =
        (1..UNDER_WAY_MAX).map(|_| enter(1, LongCall::PollWorkflowTaskQueue).unwrap()).collect();
    assert_eq!(places.len(), 1199);
    places.push(enter(1, LongCall::PollWorkflowTaskQueue).unwrap());
    let refused = enter(1, LongCall::PollWorkflowTaskQueue).err().unwrap();
    let expected = ServiceError::ResourceExhausted {
        cause: ResourceExhaustedCause::ConcurrentLimit,
        scope: ResourceExhaustedScope::Namespace,
        message: "namespace concurrent poller limit exceeded".into(),
    };
    assert_eq!(refused, expected);
    assert!(enter(1, LongCall::QueryWorkflow).is_ok(), "one kind does not take the place of another");
    assert!(enter(2, LongCall::PollWorkflowTaskQueue).is_ok(), "nor one namespace that of another");
    places.pop();
    assert!(enter(1, LongCall::PollWorkflowTaskQueue).is_ok(), "who leaves makes room");
    drop(places);
    assert!(calls.under_way().is_empty(), "nothing is kept of what is over");
}
