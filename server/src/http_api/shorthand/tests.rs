//! What is said in short and in full, both ways.

use prost_reflect::DescriptorPool;

use super::*;

fn description(name: &str) -> MessageDescriptor {
    let pool = DescriptorPool::decode(proto::DESCRIPTORS).unwrap();
    pool.get_message_by_name(name).unwrap_or_else(|| panic!("there is no {name}"))
}

fn start() -> MessageDescriptor {
    description("temporal.api.workflowservice.v1.StartWorkflowExecutionRequest")
}

fn in_full(encoding: &str, data: &str) -> Value {
    json!({ "metadata": { "encoding": encode(encoding) }, "data": encode(data) })
}

#[track_caller]
fn check_expanded(message: &MessageDescriptor, short: &Value, full: &Value) {
    let mut value = short.clone();
    expand(&mut value, message, Payloads::Short);
    assert_eq!(value, *full);
}

#[track_caller]
fn check_both_ways(message: &MessageDescriptor, short: &Value, full: &Value) {
    check_expanded(message, short, full);
    let mut value = full.clone();
    shorten(&mut value, message, Payloads::Short);
    assert_eq!(value, *short);
}

#[test]
fn json_in_payloads_stands_as_itself() {
    for (short, data) in [
        (json!(1), "1"),
        (json!("text"), "\"text\""),
        (json!(true), "true"),
        (json!([]), "[]"),
        (json!({ "z": [1, { "a": 2.5 }] }), "{\"z\":[1,{\"a\":2.5}]}"),
        (json!({ "metadata": "not a payload" }), "{\"metadata\":\"not a payload\"}"),
    ] {
        let full = in_full(JSON, data);
        check_both_ways(&start(), &json!({ "input": [short] }), &json!({ "input": { "payloads": [full] } }));
        check_both_ways(
            &start(),
            &json!({ "memo": { "fields": { "m": short } } }),
            &json!({ "memo": { "fields": { "m": full } } }),
        );
    }
}

#[test]
fn null_is_the_payload_of_nothing() {
    let full = json!({ "payloads": [null_payload()] });
    check_expanded(&start(), &json!({ "input": [null] }), &json!({ "input": full }));
    check_both_ways(&start(), &json!({ "input": [null_payload()] }), &json!({ "input": full }));
    // A field that is null is a field that is not there.
    check_expanded(&start(), &json!({ "input": null }), &json!({ "input": null }));
}

#[test]
fn a_message_in_a_payload_says_its_type() {
    let metadata = json!({ "encoding": encode(PROTOBUF), "messageType": encode("some.Message") });
    let full = json!({ "metadata": metadata, "data": encode("{\"name\":\"n\"}") });
    let short = json!({ "name": "n", "_protoMessageType": "some.Message" });
    check_both_ways(&start(), &json!({ "input": [short] }), &json!({ "input": { "payloads": [full] } }));
}

#[test]
fn what_json_cannot_say_stays_in_full() {
    let binary = in_full("binary/plain", "\u{1}");
    let broken = in_full(JSON, "{");
    let annotated = json!({ "metadata": { "encoding": encode(JSON), "type": encode("t") }, "data": encode("1") });
    for payload in [binary, broken, annotated] {
        let mut value = json!({ "input": { "payloads": [in_full(JSON, "1"), payload] } });
        shorten(&mut value, &start(), Payloads::Short);
        assert_eq!(value, json!({ "input": { "payloads": [1, payload] } }));
        expand(&mut value, &start(), Payloads::Short);
        assert_eq!(value, json!({ "input": { "payloads": [in_full(JSON, "1"), payload] } }));
    }
}

#[test]
fn in_full_nothing_is_changed() {
    let full = json!({ "input": { "payloads": [in_full(JSON, "1")] } });
    let mut value = full.clone();
    shorten(&mut value, &start(), Payloads::InFull);
    expand(&mut value, &start(), Payloads::InFull);
    assert_eq!(value, full);
}

#[test]
fn enumerations_go_without_their_prefix() {
    for (field, short, full) in [
        ("workflowIdReusePolicy", "AllowDuplicate", "WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE"),
        ("workflow_id_reuse_policy", "REJECT_DUPLICATE", "WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE"),
        ("workflowIdConflictPolicy", "Fail", "WORKFLOW_ID_CONFLICT_POLICY_FAIL"),
        ("workflowIdConflictPolicy", "Nonsense", "Nonsense"),
    ] {
        check_expanded(&start(), &json!({ field: short }), &json!({ field: full }));
    }
}

#[test]
fn payloads_inside_of_typed_details_are_shortened_too() {
    let status = description("google.rpc.Status");
    let detail = "type.googleapis.com/temporal.api.errordetails.v1.QueryFailedFailure";
    let with =
        |payload: Value| json!({ "details": [{ "@type": detail, "failure": { "encodedAttributes": payload } }] });
    let mut value = with(in_full(JSON, "{\"a\":1}"));
    shorten(&mut value, &status, Payloads::Short);
    assert_eq!(value, with(json!({ "a": 1 })));
}
