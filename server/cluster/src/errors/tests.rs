//! What a client gets to see of an error.

use super::*;

#[test]
fn our_inner_workings_stay_inside() {
    let cases = [
        (ServiceError::ShardOwnershipLost(3), Code::Unavailable, "shard unavailable, please backoff and retry"),
        (ServiceError::DataLoss("row 7".into()), Code::Unavailable, "internal history service error"),
        (ServiceError::Internal(String::new()), Code::Internal, "something went wrong, please retry (811c9dc5)"),
        (ServiceError::NotFound("no".into()), Code::NotFound, "no"),
    ];
    for (error, code, message) in cases {
        let status = Status::from(error.for_client());
        assert_eq!((status.code(), status.message()), (code, message));
    }
    assert_eq!(ServiceError::Internal(String::new()).hidden_hash(), Some(0x811c_9dc5));
    let of_second = ServiceError::Operations(vec![None, Some(ServiceError::Internal(String::new()))]);
    assert_eq!(of_second.hidden_hash(), Some(0x811c_9dc5), "it is logged");
    assert_eq!(ServiceError::Operations(vec![None, Some(ServiceError::NotFound("no".into()))]).hidden_hash(), None);
}

#[test]
fn no_text_of_the_store_reaches_a_client() {
    let text = || "table executions, shard 3: record does not decode".to_owned();
    let retry = (Code::Unavailable, "the store is unavailable, please retry");
    let cases = [
        (StoreError::Unavailable(text()), retry),
        (StoreError::OutcomeUnknown(text()), retry),
        (StoreError::LeaseLost(text()), retry),
        (StoreError::Refused(text()), retry),
        (StoreError::TooLarge(text()), (Code::InvalidArgument, "too large to be stored")),
        (StoreError::Corrupt(text()), (Code::Unavailable, "internal history service error")),
    ];
    for (error, (code, message)) in cases {
        let is_permanent = matches!(error, StoreError::TooLarge(_) | StoreError::Corrupt(_));
        let error = ServiceError::from(error);
        assert!(error.to_string().contains("executions"), "the log has it: {error}");
        assert_eq!(error.is_transient(), !is_permanent, "{error:?}");
        let operations = ServiceError::operations([Some(error.clone()), None]).for_client();
        assert!(!format!("{operations:?}").contains("executions"), "{operations:?}");
        let status = Status::from(error.for_client());
        assert_eq!((status.code(), status.message()), (code, message));
    }
}

#[test]
fn exhaustion_is_in_headers_too() {
    let error = ServiceError::ResourceExhausted {
        cause: ResourceExhaustedCause::RpsLimit,
        scope: ResourceExhaustedScope::Namespace,
        message: "slower".into(),
    };
    let status = Status::from(error);
    assert_eq!(status.metadata().get("x-resource-exhausted-cause").unwrap(), "RpsLimit");
    assert_eq!(status.metadata().get("x-resource-exhausted-scope").unwrap(), "Namespace");
}
