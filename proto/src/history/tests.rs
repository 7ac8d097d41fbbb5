//! What is encoded already and what is not read as one history, and as a generated message would read it.

use bytes::Bytes;
use prost::encoding::{message, string};
use prost::{Message, Name};

use super::{EVENTS, History};
use crate::temporal::api::history::v1::HistoryEvent;
use crate::temporal::api::workflowservice::v1::GetWorkflowExecutionHistoryResponse;

fn events(ids: std::ops::Range<i64>) -> Vec<HistoryEvent> {
    ids.map(|event_id| HistoryEvent { event_id, task_id: event_id + 100, ..HistoryEvent::default() }).collect()
}

fn encoded(ids: std::ops::Range<i64>) -> Bytes {
    History::from(events(ids)).encode_to_vec().into()
}

#[test]
fn events_are_encoded_as_the_wire_format_says() {
    let history = History::from(events(1..4));
    let mut expected = Vec::new();
    for event in &history.events {
        message::encode(EVENTS, event, &mut expected);
    }
    assert_eq!(history.encode_to_vec(), expected);
    assert_eq!(history.encoded_len(), expected.len());
    assert_eq!(History::decode(expected.as_slice()).unwrap(), history);
}

#[test]
fn what_is_encoded_already_comes_first() {
    let history = History { encoded: vec![encoded(1..3), encoded(3..4)], events: events(4..6) };
    let bytes = history.encode_to_vec();
    assert_eq!(bytes.len(), history.encoded_len());
    assert_eq!(bytes, encoded(1..6));
    assert_eq!(History::decode(bytes.as_slice()).unwrap(), History::from(events(1..6)));
    assert_eq!(history.into_events().unwrap(), events(1..6));
}

#[test]
fn a_message_that_holds_it_has_its_length_right() {
    let history = Some(History { encoded: vec![encoded(1..200)], events: events(200..300) });
    let next_page_token = Bytes::from_static(b"more");
    let page = GetWorkflowExecutionHistoryResponse { history, next_page_token, ..Default::default() };
    let read = GetWorkflowExecutionHistoryResponse::decode(page.encode_to_vec().as_slice()).unwrap();
    assert_eq!(read.history, Some(History::from(events(1..300))));
    assert_eq!(read.next_page_token, page.next_page_token);
}

#[test]
fn unknown_fields_are_skipped() {
    let mut bytes = encoded(1..2).to_vec();
    string::encode(15, &"of a later version".to_owned(), &mut bytes);
    bytes.extend_from_slice(&encoded(2..3));
    assert_eq!(History::decode(bytes.as_slice()).unwrap().events, events(1..3));
    let held = History { encoded: vec![bytes.into()], events: Vec::new() };
    assert_eq!(held.into_events().unwrap(), events(1..3));
}

#[test]
fn what_is_damaged_is_refused_when_it_is_read() {
    let damaged = encoded(1..2).slice(..3);
    assert!(History::decode(damaged.clone()).is_err());
    assert!(History { encoded: vec![damaged], events: Vec::new() }.into_events().is_err());
}

#[test]
fn it_is_named_as_in_the_public_api() {
    assert_eq!(History::full_name(), "temporal.api.history.v1.History");
    assert_eq!(History::type_url(), "/temporal.api.history.v1.History");
    assert_eq!(HistoryEvent::type_url(), "/temporal.api.history.v1.HistoryEvent");
}

#[test]
fn clearing_leaves_nothing() {
    let mut history = History { encoded: vec![encoded(1..3)], events: events(3..4) };
    history.clear();
    assert_eq!(history, History::default());
}
