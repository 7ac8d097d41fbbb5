//! Task tokens of any bytes, at the door.

use cluster::errors::ServiceError;
use cluster::fuzz::{SEED, damaged, random, rounds};
use prost::Message as _;
use proto::everrow::history::TaskToken;
use proto::everrow::matching::QueryTaskToken;
use uuid::Uuid;

use super::super::token;

#[test]
fn fuzz_tokens_of_tasks_and_queries() {
    let id = Uuid::from_u128(7).to_string();
    let task = TaskToken {
        namespace_id: id.clone(),
        workflow_id: "workflow".into(),
        run_id: id.clone(),
        scheduled_event_id: 5,
        activity_id: "activity".into(),
        ..TaskToken::default()
    };
    let query = QueryTaskToken { namespace_id: id, task_queue: "queue".into(), task_id: "task".into() };
    let mut random = random();
    for round in rounds(50_000) {
        let bytes = damaged(&mut random, &task.encode_to_vec());
        let error = token::decode(&bytes).err();
        let bytes = damaged(&mut random, &query.encode_to_vec());
        let errors = [error, token::decode_query(&bytes).err()];
        for error in errors.into_iter().flatten() {
            let is_callers = matches!(error, ServiceError::InvalidArgument(_) | ServiceError::NamespaceNotFound { .. });
            assert!(is_callers, "round {round} (seed {SEED}): {error:?}");
        }
    }
}
