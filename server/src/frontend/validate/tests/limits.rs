//! What a start may bring along: one less than the limit, the limit, and one more.

use prost::Message;
use proto::temporal::api::common::v1::link::{Variant as LinkVariant, Workflow};

use super::*;

type Start = public::StartWorkflowExecutionRequest;
/// The limited item, its limit, a start with that amount of it, and the error beyond the limit.
type Limited = (&'static str, usize, fn(&mut Start, usize), fn(usize) -> String);

fn name(length: usize) -> String {
    "x".repeat(length)
}

/// The message that encodes to exactly `bytes`, found by growing its data.
fn sized<M: Message>(bytes: usize, with_data: impl Fn(usize) -> M) -> M {
    const OVERHEAD_MAX: usize = 64;
    let mut messages = (bytes - OVERHEAD_MAX..bytes).map(with_data);
    messages.find(|message| message.encoded_len() == bytes).expect("the overhead is small")
}

fn link(reason: usize) -> Link {
    let workflow =
        Workflow { namespace: "n".into(), workflow_id: "w".into(), run_id: "r".into(), reason: name(reason) };
    Link { variant: Some(LinkVariant::Workflow(workflow)) }
}

fn callback_with_header(bytes: usize) -> Callback {
    let mut callback = callback("temporal://system");
    if let Some(Variant::Nexus(nexus)) = &mut callback.variant {
        nexus.header.insert("k".into(), name(bytes - 1));
    }
    callback
}

fn names() -> [Limited; 5] {
    [
        (
            "workflow id",
            1000,
            |r, n| r.workflow_id = name(n),
            |n| format!("WorkflowId exceeds maximum allowed length ({n}/1000)"),
        ),
        (
            "workflow type",
            1000,
            |r, n| r.workflow_type = Some(WorkflowType { name: name(n) }),
            |_| "WorkflowType length exceeds limit.".into(),
        ),
        ("task queue", 1000, |r, n| r.task_queue = queue(&name(n)), |_| "taskQueue length exceeds limit".into()),
        ("request id", 1000, |r, n| r.request_id = name(n), |_| "RequestId length exceeds limit.".into()),
        (
            "fairness key",
            64,
            |r, n| r.priority = Some(Priority { fairness_key: name(n), ..Priority::default() }),
            |_| "fairness key length exceeds limit".into(),
        ),
    ]
}

fn payloads_and_lists() -> [Limited; 7] {
    [
        (
            "input",
            2 << 20,
            |r, n| r.input = Some(sized(n, |bytes| payloads(bytes).unwrap_or_default())),
            |_| "Blob data size exceeds limit.".into(),
        ),
        (
            "memo",
            2 << 20,
            |r, n| {
                r.memo = Some(sized(n, |bytes| {
                    let payload = Payload { data: vec![0; bytes].into(), ..Payload::default() };
                    Memo { fields: [("key".to_owned(), payload)].into() }
                }));
            },
            |_| "Memo size exceeds limit.".into(),
        ),
        (
            "links",
            10,
            |r, n| r.links = vec![link(1); n],
            |n| format!("cannot attach more than 10 links per request, got {n}"),
        ),
        (
            "link",
            4000,
            |r, n| r.links = vec![sized(n, link)],
            |n| format!("link exceeds allowed size of 4000, got {n}"),
        ),
        (
            "callbacks",
            32,
            |r, n| r.completion_callbacks = vec![callback("http://here/done"); n],
            |_| "cannot attach more than 32 callbacks to an execution".into(),
        ),
        (
            "callback address",
            1000,
            |r, n| r.completion_callbacks = vec![callback(&format!("http://{}", name(n - 7)))],
            |_| "invalid url: url length longer than max length allowed of 1000".into(),
        ),
        (
            "callback header",
            8192,
            |r, n| r.completion_callbacks = vec![callback_with_header(n)],
            |_| "invalid header: header size longer than max allowed size of 8192".into(),
        ),
    ]
}

#[test]
fn each_limit_of_a_start_is_kept_to_the_byte() {
    for (what, limit, with, expected) in names().into_iter().chain(payloads_and_lists()) {
        for n in [limit - 1, limit, limit + 1] {
            let mut request = proper_start();
            with(&mut request, n);
            match start::start(request, undefined(), || "generated".into()) {
                Ok(_) => assert!(n <= limit, "{what}: {n} of {limit} are taken"),
                Err(ServiceError::InvalidArgument(told)) => assert_eq!((n, told), (limit + 1, expected(n)), "{what}"),
                Err(other) => panic!("{what}: {other}"),
            }
        }
    }
}

#[test]
fn a_schedule_id_that_is_too_long_names_none_and_goes_no_further() {
    assert!(schedule::schedule_id("daily").is_ok());
    assert!(matches!(schedule::schedule_id(""), Err(ServiceError::InvalidArgument(_))));
    assert!(matches!(schedule::schedule_id(&long()), Err(ServiceError::NotFound(_))));
}
