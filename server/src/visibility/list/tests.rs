//! Page tokens: those that we made are read back, and any other bytes are a place in the list or refused.

use bytes::Bytes;
use cluster::fuzz::seeds;
use persistence::stores::visibility::record::{Close, Record};
use proto::temporal::api::enums::v1::WorkflowExecutionStatus;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use uuid::Uuid;
use workflow::{Listing, NamespaceId, RunId, Timestamp};

use super::super::order::{by_start, started_at};
use super::super::query::parse;
use super::{PageOrder, TokenScope};

const SEEDS: u64 = 5_000;
const QUERIES: [&str; 5] = [
    "",
    "ORDER BY StartTime",
    "ORDER BY StartTime DESC, WorkflowId",
    "ORDER BY WorkflowId DESC",
    "ORDER BY CloseTime, StartTime",
];

fn moment(random: &mut SmallRng) -> Timestamp {
    // Bytes of zero and of ones are where escaping goes wrong.
    let bytes: [u8; 8] = std::array::from_fn(|_| [0, 1, 0xfe, 0xff, random.random()][random.random_range(0..5)]);
    Timestamp(i64::from_be_bytes(bytes))
}

fn record(random: &mut SmallRng) -> Record {
    let closed = random.random_bool(0.5).then(|| Close {
        at: moment(random),
        history_length: 1,
        history_size: 1,
        state_transitions: 1,
    });
    Record {
        namespace_id: NamespaceId(Uuid::nil()),
        workflow_id: "a\0b".into(),
        run_id: RunId(Uuid::from_u128(random.random())),
        workflow_type: String::new(),
        task_queue: String::new(),
        status: WorkflowExecutionStatus::Running,
        started_at: moment(random),
        executes_at: Timestamp(0),
        closed,
        memo: Default::default(),
        search_attributes: Default::default(),
        parent: None,
        root: None,
        listing: Listing { started_in: 0, closed_in: None },
        version: 1,
    }
}

#[test]
fn a_token_brings_back_its_place() {
    for seed in seeds(SEEDS) {
        let mut random = SmallRng::seed_from_u64(seed);
        let query = parse(QUERIES[random.random_range(0..QUERIES.len())], &Default::default()).expect("a query");
        let (asked, began_at) =
            (TokenScope { namespace_id: NamespaceId(Uuid::nil()), query_hash: 7 }, moment(&mut random));
        let record = record(&mut random);
        let place = PageOrder { order_by: &query.order_by, began_at }.place(&record);
        if let Some(direction) = by_start(&query.order_by) {
            assert_eq!(started_at(&place, direction), Some(record.started_at), "seed {seed}");
        }
        let token = asked.token(began_at, place.clone());
        let from = asked.parse(&token, &query).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!((from.began_at, from.after), (began_at, Some(place)), "seed {seed}");
    }
}

#[test]
fn a_token_of_other_bytes_is_a_place_or_refused() {
    for seed in seeds(SEEDS * 4) {
        let mut random = SmallRng::seed_from_u64(seed);
        let query = parse(QUERIES[random.random_range(0..QUERIES.len())], &Default::default()).expect("a query");
        let asked = TokenScope { namespace_id: NamespaceId(Uuid::nil()), query_hash: 7 };
        let record = record(&mut random);
        let began_at = moment(&mut random);
        let place = PageOrder { order_by: &query.order_by, began_at }.place(&record);
        let mut token = asked.token(began_at, place).to_vec();
        for _ in 0..random.random_range(1..4) {
            let at = random.random_range(0..token.len());
            match random.random_range(0..3) {
                0 => token[at] = random.random(),
                1 => token.truncate(at.max(1)),
                _ => token.insert(at, random.random()),
            }
        }
        if let Ok(from) = asked.parse(&Bytes::from(token), &query)
            && let (Some(direction), Some(after)) = (by_start(&query.order_by), from.after)
        {
            assert!(started_at(&after, direction).is_some(), "seed {seed}: the list knows where to go on");
        }
    }
}
