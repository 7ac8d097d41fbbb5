//! What every error takes on the wire.

use tonic::Status;
use tonic::codegen::http::Response;

use super::super::ServiceError;
use super::*;
use proto::temporal::api::enums::v1::{ResourceExhaustedCause, ResourceExhaustedScope};

/// What C-core clients take, by HTTP/2's own count: names, values, and 32 bytes for each.
const HEADER_LIST_BYTES_MAX: usize = 8 << 10;

fn on_the_wire(status: Status) -> usize {
    let response: Response<()> = status.into_http();
    response.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 32).sum()
}

fn errors(text: &str) -> Vec<ServiceError> {
    let text = text.to_owned();
    let failure = Failure {
        message: text.clone(),
        stack_trace: text.clone(),
        cause: Some(Box::new(Failure { message: text.clone(), ..Failure::default() })),
        ..Failure::default()
    };
    let exhausted = ServiceError::ResourceExhausted {
        cause: ResourceExhaustedCause::SystemOverloaded,
        scope: ResourceExhaustedScope::Namespace,
        message: text.clone(),
    };
    let started = ServiceError::AlreadyStarted {
        message: text.clone(),
        start_request_id: text.clone(),
        run_id: text.clone(),
        first_run_id: text.clone(),
    };
    let query = ServiceError::QueryFailed { message: text.clone(), failure: Some(Box::new(failure)) };
    vec![
        ServiceError::InvalidArgument(text.clone()),
        ServiceError::NotFound(text.clone()),
        ServiceError::NamespaceNotFound { namespace: text.clone() },
        ServiceError::PermissionDenied { message: text.clone(), reason: text },
        ServiceError::operations([Some(query.clone()), Some(started.clone())]),
        exhausted,
        started,
        query,
    ]
}

#[test]
fn every_error_fits_into_the_trailers_that_c_core_takes() {
    for text in ["a", " ", "é", "\u{1F980}", "%", "words of a usual error "] {
        for repeated in [1, 100, 999, 4000, 100_000] {
            for error in errors(&text.repeat(repeated)) {
                let kind = format!("{text:?} × {repeated}: {:.30}", format!("{error:?}"));
                let bytes = on_the_wire(error.into());
                assert!(bytes <= HEADER_LIST_BYTES_MAX, "{kind}: {bytes} bytes");
            }
        }
    }
}

#[test]
fn a_message_is_cut_between_characters_and_says_so() {
    let cut = message("é".repeat(4000), None);
    assert!(cut.ends_with("é... <truncated>"), "{cut}");
    assert!(cut.len() > STATUS_BYTES_MAX / 4, "{} bytes of the room are used", cut.len());
    let plain = "a".repeat(MESSAGE_BYTES_MAX);
    assert_eq!(message(plain.clone(), None), plain, "what fits stays whole");
    assert_eq!(message(format!("{plain}a"), None).len(), MESSAGE_BYTES_MAX);
}

#[test]
fn a_failure_that_fits_is_sent_whole_and_one_that_does_not_says_what_it_is() {
    let small = Failure { message: "small".into(), stack_trace: "at line 1".into(), ..Failure::default() };
    assert_eq!(query_failure(Some(&small)).failure, Some(small));
    let large = Failure { message: "large".into(), stack_trace: "x".repeat(1 << 20), ..Failure::default() };
    let sent = query_failure(Some(&large)).failure.unwrap();
    assert_eq!((sent.message.as_str(), sent.stack_trace.as_str()), ("large", ""));
}

#[test]
fn operations_keep_their_codes_whatever_they_say() {
    let long = "x".repeat(100_000);
    let met = [Some(ServiceError::NotFound(long.clone())), Some(ServiceError::NamespaceNotFound { namespace: long })];
    let status = Status::from(ServiceError::operations(met));
    let details = proto::google::rpc::Status::decode(status.details()).unwrap().details;
    let failure = details::MultiOperationExecutionFailure::decode(details[0].value.as_slice()).unwrap();
    let codes: Vec<_> = failure.statuses.iter().map(|status| status.code).collect();
    assert_eq!(codes, [5, 5]);
}
