//! The door against prost: random messages of every request type, and damaged ones.

use cluster::fuzz::{SEED, random, rounds};
use prost::DecodeError;
use prost_reflect::{DescriptorPool, DynamicMessage, Kind, MessageDescriptor};
use rand::RngExt as _;
use rand::rngs::SmallRng;

use super::*;

const PROST_DEPTH: usize = 100;

/// A random encoded message of this type, as wild as the wire format allows.
fn random_message(random: &mut SmallRng, message: &MessageDescriptor, depth: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let fields: Vec<_> = message.fields().collect();
    for _ in 0..random.random_range(0..4) {
        if random.random_ratio(1, 12) {
            unknown(random, &mut bytes, depth);
            continue;
        }
        if fields.is_empty() {
            break;
        }
        let field = &fields[random.random_range(0..fields.len())];
        let mut delimited = |value: &[u8]| {
            encode_key(field.number(), WireType::LengthDelimited, &mut bytes);
            encode_varint(value.len() as u64, &mut bytes);
            bytes.extend(value);
        };
        match field.kind() {
            Kind::Message(inner) if depth > 0 => delimited(&random_message(random, &inner, depth - 1)),
            Kind::Message(_) => delimited(&[]),
            Kind::String | Kind::Bytes => delimited("änd".repeat(random.random_range(0..4)).as_bytes()),
            Kind::Double | Kind::Fixed64 | Kind::Sfixed64 => {
                encode_key(field.number(), WireType::SixtyFourBit, &mut bytes);
                bytes.extend(random.random::<u64>().to_le_bytes());
            }
            Kind::Float | Kind::Fixed32 | Kind::Sfixed32 => {
                encode_key(field.number(), WireType::ThirtyTwoBit, &mut bytes);
                bytes.extend(random.random::<u32>().to_le_bytes());
            }
            Kind::Int32
            | Kind::Int64
            | Kind::Uint32
            | Kind::Uint64
            | Kind::Sint32
            | Kind::Sint64
            | Kind::Bool
            | Kind::Enum(_) => {
                encode_key(field.number(), WireType::Varint, &mut bytes);
                encode_varint(random.random(), &mut bytes);
            }
        }
    }
    bytes
}

fn unknown(random: &mut SmallRng, bytes: &mut Vec<u8>, depth: usize) {
    const NUMBER: u32 = 1234;
    if depth == 0 || random.random_ratio(1, 2) {
        encode_key(NUMBER, WireType::LengthDelimited, bytes);
        encode_varint(3, bytes);
        bytes.extend(b"new");
        return;
    }
    encode_key(NUMBER, WireType::StartGroup, bytes);
    unknown(random, bytes, depth - 1);
    encode_key(NUMBER, WireType::EndGroup, bytes);
}

fn decoded(message: &MessageDescriptor, bytes: &[u8]) -> Result<DynamicMessage, DecodeError> {
    DynamicMessage::decode(message.clone(), bytes)
}

#[test]
fn the_door_and_prost_agree_on_what_is_a_message() {
    let pool = DescriptorPool::decode(proto::DESCRIPTORS).expect("our own descriptors");
    let requests: Vec<MessageDescriptor> = pool
        .services()
        .filter(|service| service.full_name().starts_with("temporal.api."))
        .flat_map(|service| service.methods().map(|method| method.input()).collect::<Vec<_>>())
        .collect();
    let tables = &DOOR.tables;
    let mut random = random();
    let (mut n_admitted, mut n_refused) = (0, 0);
    for round in rounds(20_000) {
        let message = &requests[random.random_range(0..requests.len())];
        let mut bytes = random_message(&mut random, message, 8);
        let is_damaged = random.random_ratio(1, 2) && !bytes.is_empty();
        if is_damaged {
            let at = random.random_range(0..bytes.len());
            bytes[at] = random.random();
        }
        let (package, name) = message.full_name().rsplit_once('.').expect("a package");
        let table = tables.request((package, name)).expect("a request");
        let scanned = Scan::new(tables, PROST_DEPTH).message(table, &bytes, 0);
        let decoded = decoded(message, &bytes);
        let case = || format!("round {round} (seed {SEED}) {name}: {bytes:02x?}");
        match scanned {
            Ok(()) => n_admitted += 1,
            // Packed texts may be damaged, too, and prost does not look into them.
            Err(Refusal::Malformed) if decoded.is_ok() => panic!("refused and decodable: {}", case()),
            Err(_) => n_refused += 1,
        }
        if !is_damaged {
            assert_eq!(scanned, Ok(()), "{}", case());
            assert!(decoded.is_ok(), "{}: {decoded:?}", case());
        }
    }
    assert!(n_admitted > 0 && n_refused > 0, "{n_admitted} admitted, {n_refused} refused");
}

#[test]
fn the_door_and_prost_count_levels_alike() {
    let pool = DescriptorPool::decode(proto::DESCRIPTORS).expect("our own descriptors");
    let message = pool.get_message_by_name("temporal.api.workflowservice.v1.RespondActivityTaskFailedRequest");
    let message = message.expect("a request");
    let table = DOOR.tables.request((WORKFLOW_SERVICE, message.name())).expect("a request");
    for levels in [1, 2, 50, PROST_DEPTH - 1, PROST_DEPTH, PROST_DEPTH + 1, PROST_DEPTH + 2, 300] {
        let failed = public::RespondActivityTaskFailedRequest { failure: Some(failure(levels)), ..Default::default() };
        let bytes = failed.encode_to_vec();
        let scanned = Scan::new(&DOOR.tables, PROST_DEPTH).message(table, &bytes, 0);
        let decoded = public::RespondActivityTaskFailedRequest::decode(bytes.as_slice());
        assert_eq!(scanned.is_ok(), decoded.is_ok(), "{levels} levels: {scanned:?}");
        assert_eq!(scanned.is_ok(), levels <= PROST_DEPTH);
    }
    let group = |levels: usize| {
        let mut bytes = Vec::new();
        (0..levels).for_each(|_| encode_key(1234, WireType::StartGroup, &mut bytes));
        (0..levels).for_each(|_| encode_key(1234, WireType::EndGroup, &mut bytes));
        bytes
    };
    for levels in [1, 50, PROST_DEPTH, PROST_DEPTH + 1, 100_000] {
        let scanned = Scan::new(&DOOR.tables, PROST_DEPTH).message(table, &group(levels), 0);
        let decoded = public::RespondActivityTaskFailedRequest::decode(group(levels).as_slice());
        assert_eq!(scanned.is_ok(), decoded.is_ok(), "{levels} groups: {scanned:?}");
    }
}
