//! Requests of any path, query and body: a message, or a reason why not; in full and in short.

use cluster::fuzz::{SEED, damaged, random, rounds};
use prost::Message as _;
use rand::RngExt as _;
use rand::rngs::SmallRng;

use super::*;

const LEAVES: [&str; 14] = [
    "null",
    "true",
    "0",
    "-1",
    "1e400",
    "9223372036854775808",
    "\"\"",
    "\"AQI=\"",
    "\"Running\"",
    "\"10s\"",
    "\"x\"",
    "[]",
    "{}",
    "\"2020-01-01T00:00:00Z\"",
];
const NAMES: [&str; 8] = ["metadata", "data", "encoding", "_protoMessageType", "payloads", "@type", "value", "fields"];

/// JSON that looks like the message now and then.
fn random_json(random: &mut SmallRng, message: Option<&MessageDescriptor>, depth: usize) -> String {
    if depth == 0 || random.random_ratio(1, 4) {
        return LEAVES[random.random_range(0..LEAVES.len())].to_owned();
    }
    let fields: Vec<FieldDescriptor> = message.map(|message| message.fields().collect()).unwrap_or_default();
    let mut members = Vec::new();
    for _ in 0..random.random_range(0..5) {
        let (name, inner) = if fields.is_empty() || random.random_ratio(1, 6) {
            (NAMES[random.random_range(0..NAMES.len())].to_owned(), None)
        } else {
            let field = &fields[random.random_range(0..fields.len())];
            let name = if random.random() { field.name() } else { field.json_name() };
            (name.to_owned(), field.kind().as_message().cloned())
        };
        let value = random_json(random, inner.as_ref(), depth - 1);
        let value = if random.random_ratio(1, 4) { format!("[{value}]") } else { value };
        members.push(format!("{name:?}:{value}"));
    }
    format!("{{{}}}", members.join(","))
}

#[test]
fn fuzz_requests_in_json() {
    let table = RouteTable::new(&DescriptorPool::decode(proto::DESCRIPTORS).unwrap());
    let paths = [
        (Method::POST, "/namespaces/n/workflows/w"),
        (Method::POST, "/namespaces/n/schedules/s"),
        (Method::POST, "/api/v1/namespaces/n/workflows/w/update/u"),
        (Method::POST, "/api/v1/namespaces/n/activities/a/fail"),
        (Method::POST, "/api/v1/namespaces/n/batch-operations/j"),
        (Method::GET, "/namespaces/n/workflows/w/history"),
        (Method::GET, "/namespaces/n/worker-task-reachability"),
    ];
    let found: Vec<Found> = paths
        .iter()
        .map(|(verb, path)| table.find(verb, path).unwrap_or_else(|_| panic!("{path} is a route")))
        .collect();
    let query =
        "maximumPageSize=7&execution.runId=r&buildIds=a&buildIds=b&startTimeFilter.earliestTime=x&a[b]=c&waitNewEvent";
    let mut random = random();
    let mut n_read = 0;
    for round in rounds(4_000) {
        let found = &found[random.random_range(0..found.len())];
        let mut body = random_json(&mut random, Some(&found.route.input), 6).into_bytes();
        if random.random_ratio(1, 4) {
            body = damaged(&mut random, &body);
        }
        let query = String::from_utf8_lossy(&damaged(&mut random, query.as_bytes())).into_owned();
        let payloads = if random.random() { Payloads::Short } else { Payloads::InFull };
        let Ok(message) = message(found, &query, &body, payloads) else { continue };
        n_read += 1;
        // A parsed message can be encoded, decoded and converted to JSON.
        let sent = message.encode_to_vec();
        let again = DynamicMessage::decode(found.route.input.clone(), sent.as_slice());
        let again = again.unwrap_or_else(|error| panic!("round {round} (seed {SEED}): {error}"));
        if let Ok(mut told) = serde_json::to_value(&again) {
            shorthand::shorten(&mut told, &found.route.input, payloads);
        }
    }
    assert!(n_read > 0, "some are requests");
}
