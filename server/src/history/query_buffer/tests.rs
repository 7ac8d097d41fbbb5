//! Which task carries a query, and which queries get an answer.

use std::sync::Arc;

use uuid::Uuid;
use workflow::{NamespaceId, RunId};

use super::*;

const FIRST: TaskAttempt = TaskAttempt { scheduled_event_id: EventId(2), attempt: 1 };
const SECOND: TaskAttempt = TaskAttempt { scheduled_event_id: EventId(7), attempt: 1 };

fn key() -> ExecutionKey {
    ExecutionKey { namespace_id: NamespaceId(Uuid::nil()), workflow_id: Arc::from("wf"), run_id: RunId(Uuid::nil()) }
}

fn result(kind: QueryResultType, answer: Option<Payloads>, error: &str) -> HashMap<String, WorkflowQueryResult> {
    let result =
        WorkflowQueryResult { result_type: kind.into(), answer, error_message: error.into(), ..Default::default() };
    [("query".to_owned(), result)].into()
}

#[test]
fn a_query_is_carried_by_any_task_but_the_one_in_flight_when_it_came() {
    for (in_flight, carried_by_first) in [(None, 1), (Some(FIRST), 0)] {
        let buffer = QueryBuffer::default();
        let _query = buffer.push("query".into(), WorkflowQuery::default(), in_flight).unwrap();
        assert_eq!(buffer.carried_by(FIRST).len(), carried_by_first, "{in_flight:?}");
        assert_eq!(buffer.carried_by(SECOND).len(), 1);
    }
}

#[test]
fn a_place_is_free_again_when_its_query_is_dropped() {
    let buffer = QueryBuffer::default();
    let query = buffer.push("query".into(), WorkflowQuery::default(), None).unwrap();
    let full = buffer.push("other".into(), WorkflowQuery::default(), None);
    assert!(matches!(full.err(), Some(ServiceError::ResourceExhausted { .. })));
    drop(query);
    assert!(buffer.carried_by(FIRST).is_empty());
    buffer.push("other".into(), WorkflowQuery::default(), None).unwrap();
}

#[test]
fn an_answer_that_makes_no_sense_is_none() {
    let answer = || Some(Payloads::default());
    let cases = [
        (result(QueryResultType::Answered, answer(), ""), Some(Ok(answer()))),
        (result(QueryResultType::Answered, None, ""), None),
        (result(QueryResultType::Answered, answer(), "error"), None),
        (
            result(QueryResultType::Failed, None, "error"),
            Some(Err(ServiceError::QueryFailed { message: "error".into(), failure: None })),
        ),
        (result(QueryResultType::Failed, answer(), "error"), None),
        (result(QueryResultType::Failed, None, ""), None),
        (result(QueryResultType::Unspecified, answer(), ""), None),
    ];
    let (waiters, key) = (Waiters::default(), key());
    for (results, expected) in cases {
        let buffer = QueryBuffer::default();
        let mut query = buffer.push("query".into(), WorkflowQuery::default(), None).unwrap();
        buffer.answering(&waiters, &key).deliver(results.clone());
        assert_eq!(query.answer.try_recv().ok(), expected, "{results:?}");
    }
}

#[tokio::test]
async fn pollers_without_an_answer_are_woken_when_all_are_given() {
    let (buffer, waiters, key) = (QueryBuffer::default(), Waiters::default(), key());
    let waiting = waiters.listen(&key);
    let changed = waiting.changed();
    tokio::pin!(changed);
    changed.as_mut().enable();
    let (answering, late) = (buffer.answering(&waiters, &key), buffer.answering(&waiters, &key));
    drop(late);
    assert!(buffer.is_answering());
    drop(answering);
    assert!(!buffer.is_answering());
    changed.await;
}
