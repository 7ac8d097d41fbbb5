//! The door against the descriptors: every text, map and level of every request.

use prost::Message as _;
use prost::encoding::{WireType, encode_key, encode_varint};
use proto::temporal::api::command::v1::Command;
use proto::temporal::api::common::v1::{Payload, Payloads};
use proto::temporal::api::failure::v1::Failure;
use proto::temporal::api::protocol::v1::Message as ProtocolMessage;
use proto::temporal::api::update::v1 as update;
use proto::temporal::api::workflowservice::v1 as public;

use super::rules::{Bound, Context, DEPTH_MARGIN, DEPTH_MAX, MAP_ENTRIES_MAX, SPECIAL, UNKNOWN_BYTES_MAX, bound};
use super::tables::Tables;
use super::*;

mod descriptors;
mod differential;

use descriptors::{Api, Step};

const WORKFLOW_SERVICE: &str = "temporal.api.workflowservice.v1";

fn admitted(name: &'static str, encoded: &[u8]) -> Result<(), String> {
    admit(&DOOR.tables, (WORKFLOW_SERVICE, name), encoded).map_err(|error| error.to_string())
}

/// A field's bytes inside the messages that lead to it.
fn encoded(path: &[Step], value: &[u8]) -> Vec<u8> {
    path.iter().rev().fold(value.to_vec(), |inner, step| {
        let mut outer = Vec::with_capacity(inner.len() + 16);
        encode_key(step.number, WireType::LengthDelimited, &mut outer);
        encode_varint(inner.len() as u64, &mut outer);
        outer.extend(inner);
        outer
    })
}

#[test]
fn every_text_of_every_request_is_limited_or_named_with_a_reason() {
    let api = Api::read();
    let tables = Tables::of_descriptors();
    let (mut n_requests, mut n_limited) = (0, 0);
    for request in api.public_requests() {
        n_requests += 1;
        for path in api.texts_of(&request) {
            let last = path.last().expect("a path leads to a field");
            let in_command = path.iter().any(|step| step.message == ".temporal.api.command.v1.Command");
            let context = if in_command { Context::Command } else { Context::Request };
            let Bound::Bytes(bytes_max) = bound(&last.message, &last.field, context) else { continue };
            n_limited += 1;
            let name = request.trim_start_matches('.').rsplit_once('.').expect("a package");
            let name: TypeName = (name.0.to_owned().leak(), name.1.to_owned().leak());
            let fits = encoded(&path, &vec![b'x'; bytes_max as usize]);
            assert_eq!(admit(&tables, name, &fits), Ok(()), "{request}: {path:?}");
            let too_long = encoded(&path, &vec![b'x'; bytes_max as usize + 1]);
            let refused = admit(&tables, name, &too_long).expect_err("one byte too much").to_string();
            assert!(refused.ends_with(&format!("({}/{bytes_max})", bytes_max + 1)), "{request}: {refused}");
        }
    }
    assert_eq!(n_requests, 135, "every RPC of both services");
    assert!(n_limited > 1000, "{n_limited}");
}

#[test]
fn every_field_that_is_named_is_there() {
    let api = Api::read();
    let paths: Vec<_> = api.public_requests().iter().flat_map(|request| api.texts_of(request)).collect();
    for special in SPECIAL {
        let is_it = |path: &Vec<Step>| {
            let last = path.last().expect("a path leads to a field");
            let message = last.message.strip_prefix(".temporal.api.").unwrap_or(&last.message);
            (special.0 == "*" || special.0 == message) && (special.1 == "*" || special.1 == last.field.name())
        };
        assert!(paths.iter().any(is_it), "no request has {} {}", special.0, special.1);
    }
}

#[test]
fn every_map_has_a_number_of_entries() {
    let start = |n: usize| {
        let header = (0..n).map(|n| (n.to_string(), Payload::default())).collect();
        let header = Some(proto::temporal::api::common::v1::Header { fields: header });
        public::StartWorkflowExecutionRequest { header, ..Default::default() }.encode_to_vec()
    };
    assert_eq!(admitted("StartWorkflowExecutionRequest", &start(MAP_ENTRIES_MAX)), Ok(()));
    let refused = admitted("StartWorkflowExecutionRequest", &start(MAP_ENTRIES_MAX + 1));
    assert_eq!(refused, Err("Fields has more than 2000 entries".into()));
}

/// A failure with causes; `levels` failures in all.
fn failure(levels: usize) -> Failure {
    (1..levels).fold(Failure::default(), |cause, _| Failure { cause: Some(Box::new(cause)), ..Default::default() })
}

#[test]
fn a_failure_that_is_nested_too_deep_is_refused() {
    let failed = |levels| {
        let failure = Some(failure(levels));
        public::RespondActivityTaskFailedRequest { failure, ..Default::default() }.encode_to_vec()
    };
    assert_eq!(admitted("RespondActivityTaskFailedRequest", &failed(DEPTH_MAX)), Ok(()));
    for levels in [DEPTH_MAX + 1, 100, 101, 1000] {
        let refused = admitted("RespondActivityTaskFailedRequest", &failed(levels));
        assert_eq!(refused, Err("the request has messages nested more than 80 levels deep".into()));
    }
}

#[test]
fn what_is_packed_passes_too() {
    let rejected = |levels| {
        let rejection = update::Rejection { failure: Some(failure(levels)), ..Default::default() };
        let body = prost_types::Any {
            type_url: "type.googleapis.com/temporal.api.update.v1.Rejection".into(),
            value: rejection.encode_to_vec(),
        };
        let messages = vec![ProtocolMessage { body: Some(body), ..Default::default() }];
        public::RespondWorkflowTaskCompletedRequest { messages, ..Default::default() }.encode_to_vec()
    };
    assert_eq!(admitted("RespondWorkflowTaskCompletedRequest", &rejected(DEPTH_MAX - 3)), Ok(()));
    let refused = admitted("RespondWorkflowTaskCompletedRequest", &rejected(DEPTH_MAX - 2));
    assert_eq!(refused, Err("the request has messages nested more than 80 levels deep".into()));
}

/// Every stored or returned message has room for an accepted recursive message.
#[test]
fn the_margin_covers_every_place_where_a_failure_is_kept() {
    /// A timeout has the last failure as its cause, and a failure that is too large is the cause of the one that says so.
    const WRAPPED_BY_US: usize = 2;
    let api = Api::read();
    let recursive = api.recursive();
    assert!(recursive.iter().any(|name| name == ".temporal.api.failure.v1.Failure"), "{recursive:?}");
    for name in recursive.iter().filter(|name| name.starts_with(".temporal.api.")) {
        let least = api.public_requests().iter().filter_map(|request| api.levels_to(request, name)).min();
        let Some(least) = least else { continue };
        for kept in api.kept_and_told() {
            let Some(levels) = api.most_levels_to(&kept, name) else { continue };
            assert!(levels + WRAPPED_BY_US <= least + DEPTH_MARGIN, "{kept} has {name} at level {levels}");
        }
    }
}

#[test]
fn a_request_that_swells_when_decoded_is_refused() {
    let empty_commands =
        |n| public::RespondWorkflowTaskCompletedRequest { commands: vec![Command::default(); n], ..Default::default() };
    let refused = admitted("RespondWorkflowTaskCompletedRequest", &empty_commands(2_000_000).encode_to_vec());
    assert_eq!(refused, Err("the request takes more than 67108864 bytes in memory".into()));
    let empty_payloads = Payloads { payloads: vec![Payload::default(); 2_000_000] };
    let start = public::StartWorkflowExecutionRequest { input: Some(empty_payloads), ..Default::default() };
    let refused = admitted("StartWorkflowExecutionRequest", &start.encode_to_vec());
    assert_eq!(refused, Err("the request takes more than 67108864 bytes in memory".into()));
    // More than any worker sends at once.
    assert_eq!(admitted("RespondWorkflowTaskCompletedRequest", &empty_commands(40_000).encode_to_vec()), Ok(()));
}

#[test]
fn what_a_message_takes_is_about_what_is_reckoned() {
    let reckoned = |name: &str| DOOR.tables.item_bytes(DOOR.tables.request((WORKFLOW_SERVICE, name)).expect("a type"));
    for (name, is) in [
        ("StartWorkflowExecutionRequest", size_of::<public::StartWorkflowExecutionRequest>()),
        ("RespondWorkflowTaskCompletedRequest", size_of::<public::RespondWorkflowTaskCompletedRequest>()),
        ("RecordWorkerHeartbeatRequest", size_of::<public::RecordWorkerHeartbeatRequest>()),
        ("CreateScheduleRequest", size_of::<public::CreateScheduleRequest>()),
    ] {
        let reckoned = reckoned(name);
        assert!(reckoned >= is * 3 / 4 && reckoned <= is * 2, "{name}: {reckoned} reckoned, is {is}");
    }
}

/// Found by the differential test after 34 784 inputs: prost reads an entry of a map whatever its wire type is.
#[test]
fn an_entry_of_a_map_is_length_delimited() {
    let step = Step::unknown;
    for wire_type in [WireType::Varint, WireType::SixtyFourBit, WireType::ThirtyTwoBit, WireType::StartGroup] {
        // The key and the payload of an entry of `memo.fields`, which a walk by wire types does not see as one.
        let mut memo = Vec::new();
        encode_key(1, wire_type, &mut memo);
        let fields = [encoded(&[step(1)], b"k"), encoded(&[step(2)], &[])].concat();
        encode_varint(fields.len() as u64, &mut memo);
        memo.extend(&fields);
        let request = encoded(&[step(14)], &memo);
        let decoded = public::StartWorkflowExecutionRequest::decode(request.as_slice()).expect("prost accepts it");
        assert_eq!(decoded.memo.expect("a memo").fields.keys().collect::<Vec<_>>(), ["k"]);
        let refused = admitted("StartWorkflowExecutionRequest", &request);
        assert_eq!(
            refused,
            Err("the request is not a valid StartWorkflowExecutionRequest".to_owned()),
            "{wire_type:?}"
        );
    }
}

#[test]
fn fields_of_a_newer_api_are_skipped_within_reason() {
    let unknown = |bytes: usize| encoded(&[Step::unknown(900)], &vec![0; bytes]);
    assert_eq!(admitted("StartWorkflowExecutionRequest", &unknown(UNKNOWN_BYTES_MAX)), Ok(()));
    let refused = admitted("StartWorkflowExecutionRequest", &unknown(UNKNOWN_BYTES_MAX + 1));
    assert_eq!(refused, Err("the request has more than 65536 bytes in fields unknown to this server".into()));
}

#[test]
fn what_is_no_message_is_named_without_the_decoders_words() {
    for garbage in [&[0xff; 40][..], b"\x0a\x05ab", b"\x00", b"\x0c", b"\x0b\x0a"] {
        let refused = admitted("StartWorkflowExecutionRequest", garbage);
        assert_eq!(refused, Err("the request is not a valid StartWorkflowExecutionRequest".into()));
    }
    let status = DOOR.undecodable((WORKFLOW_SERVICE, "StartWorkflowExecutionRequest")).expect("it is a request");
    assert_eq!(status.code(), tonic::Code::InvalidArgument);
    assert!(DOOR.undecodable((WORKFLOW_SERVICE, "StartWorkflowExecutionResponse")).is_none(), "answers are not ours");
}

#[test]
fn answers_are_not_looked_at() {
    let answer = public::DescribeNamespaceResponse {
        namespace_info: Some(proto::temporal::api::namespace::v1::NamespaceInfo {
            description: "x".repeat(100_000),
            ..Default::default()
        }),
        ..Default::default()
    };
    assert_eq!(admitted("DescribeNamespaceResponse", &answer.encode_to_vec()), Ok(()));
}

#[test]
#[ignore = "prints a figure: what the check of a small and of a large request costs"]
fn cost_of_the_check() {
    let start = public::StartWorkflowExecutionRequest {
        namespace: "default".into(),
        workflow_id: "order-1234567890".into(),
        workflow_type: Some(proto::temporal::api::common::v1::WorkflowType { name: "Order".into() }),
        task_queue: Some(proto::temporal::api::taskqueue::v1::TaskQueue {
            name: "orders".into(),
            ..Default::default()
        }),
        input: Some(Payloads { payloads: vec![Payload { data: vec![0; 200].into(), ..Default::default() }] }),
        identity: "1234@host".into(),
        request_id: "5a3f1a57-6e1b-4d22-9a8e-3b1c6a0d2f10".into(),
        ..Default::default()
    };
    let timers =
        public::RespondWorkflowTaskCompletedRequest { commands: vec![Command::default(); 1000], ..Default::default() };
    for (name, encoded) in [
        ("StartWorkflowExecutionRequest", start.encode_to_vec()),
        ("RespondWorkflowTaskCompletedRequest", timers.encode_to_vec()),
    ] {
        const ROUNDS: u32 = 20_000;
        let began = std::time::Instant::now();
        for _ in 0..ROUNDS {
            assert_eq!(admitted(name, &encoded), Ok(()));
        }
        println!("{name} of {} bytes: {:?}", encoded.len(), began.elapsed() / ROUNDS);
    }
}
