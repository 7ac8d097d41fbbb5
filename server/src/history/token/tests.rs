//! Tokens of any bytes: understood, or refused as the caller's mistake.

use cluster::fuzz::{SEED, damaged, random, rounds};
use proto::history::History;
use proto::temporal::api::history::v1::HistoryEvent;
use rand::RngExt as _;

use super::*;

const NAMESPACE: NamespaceId = NamespaceId(Uuid::nil());
const RUN: Uuid = Uuid::from_u128(7);

#[test]
fn fuzz_task_tokens() {
    let whole = task_token(&TaskToken {
        namespace_id: NAMESPACE.to_string(),
        workflow_id: "workflow".into(),
        run_id: RUN.to_string(),
        scheduled_event_id: 5,
        started_event_id: 6,
        attempt: 1,
        activity_id: "activity".into(),
        workflow_type: "t".into(),
        activity_type: "a".into(),
        stamp: 1,
        started_at: 9,
    });
    let mut random = random();
    for round in rounds(50_000) {
        let bytes: Bytes = damaged(&mut random, &whole).into();
        match parse_task_token(NAMESPACE, &bytes) {
            Ok(parsed) => assert!(!parsed.workflow_id.is_empty(), "round {round} (seed {SEED}): {bytes:?}"),
            Err(ServiceError::InvalidArgument(_)) => {}
            Err(error) => panic!("round {round} (seed {SEED}): {error:?} for {bytes:?}"),
        }
    }
}

#[test]
fn fuzz_page_tokens_of_history() {
    let whole = page_token(&HistoryPageToken {
        namespace_id: NAMESPACE.to_string(),
        workflow_id: "workflow".into(),
        run_id: RUN.to_string(),
        next_event_id: 5,
        end_event_id: 9,
        transient: Some(History::from(vec![HistoryEvent { event_id: 9, ..Default::default() }])),
        ..HistoryPageToken::default()
    });
    let mut random = random();
    for round in rounds(50_000) {
        let bytes: Bytes = damaged(&mut random, &whole).into();
        let asked = random.random_ratio(1, 2).then_some(RunId(RUN));
        match parse_page_token(NAMESPACE, ("workflow", asked), &bytes) {
            Ok((token, key)) => {
                assert!(token.next_event_id >= 1 && token.end_event_id >= token.next_event_id, "round {round}");
                assert_eq!(&*key.workflow_id, "workflow", "round {round} (seed {SEED}): {bytes:?}");
            }
            Err(ServiceError::InvalidArgument(_)) => {}
            Err(error) => panic!("round {round} (seed {SEED}): {error:?} for {bytes:?}"),
        }
    }
}
