//! What a node's data must be, and which part of it a reader gets.

use bytes::Bytes;
use prost::Message;
use proto::history::History;
use proto::temporal::api::history::v1::HistoryEvent;
use workflow::EventId;

use super::{EncodedEvents, EventBatch, FORMAT_PLAIN};
use crate::error::StoreError;

fn events(ids: impl IntoIterator<Item = i64>) -> Vec<HistoryEvent> {
    ids.into_iter().map(|event_id| HistoryEvent { event_id, task_id: 70 + event_id, ..Default::default() }).collect()
}

fn node(ids: impl IntoIterator<Item = i64>) -> Bytes {
    [vec![FORMAT_PLAIN], History::from(events(ids)).encode_to_vec()].concat().into()
}

fn refused(data: &Bytes) -> String {
    let bad = EncodedEvents::of_node(EventId(4), data).expect_err("it is refused");
    let StoreError::Corrupt(reason) = bad.at("") else { panic!("not corrupt") };
    reason.trim_start_matches(": ").to_owned()
}

#[test]
fn what_is_written_is_what_is_read() {
    let batch = EventBatch::encode(&events(4..9));
    assert_eq!(batch.data(), node(4..9));
    let read = EncodedEvents::of_node(EventId(4), &batch.data()).unwrap();
    assert_eq!(&read, batch.events());
    assert_eq!((read.first_event_id(), read.last_event_id(), read.count()), (EventId(4), EventId(8), 5));
    assert_eq!(read.decode().unwrap(), events(4..9));
    assert_eq!(History::decode(read.into_history()).unwrap().events, events(4..9));
}

#[test]
fn a_node_has_events_one_after_the_other_from_its_first_on() {
    assert_eq!(refused(&node([])), "node 4 has no events");
    assert_eq!(refused(&node([4, 5, 7])), "node 4 has event 7 in place of 6");
    assert_eq!(refused(&node([4, 4])), "node 4 has event 4 in place of 5");
    assert_eq!(refused(&node([5, 6])), "node 4 has event 5 in place of 4");
    assert_eq!(refused(&node([0])), "node 4 has event 0 in place of 4");
}

#[test]
fn a_node_that_is_cut_off_or_of_another_format_is_malformed() {
    let whole = node(4..6);
    assert!(refused(&whole.slice(..whole.len() - 1)).starts_with("events do not decode"));
    assert_eq!(refused(&Bytes::new()), "node of unknown format None");
    assert_eq!(refused(&Bytes::from_static(&[9, 0x0a, 0])), "node of unknown format Some(9)");
}

#[test]
fn every_part_is_a_history_of_its_events() {
    let batch = EventBatch::encode(&events(4..9));
    for (from, to) in (1..12).flat_map(|from| (1..12).map(move |to| (from, to))) {
        let wanted: Vec<i64> = (from.max(4)..to.min(9)).collect();
        let Some(part) = batch.events().within(EventId(from), EventId(to)) else {
            assert_eq!(wanted, [0; 0], "{from}..{to}");
            continue;
        };
        assert_eq!(part.decode().unwrap(), events(wanted.clone()), "{from}..{to}");
        assert_eq!(part.count(), wanted.len(), "{from}..{to}");
        assert_eq!(Some(&part.first_event_id().0), wanted.first(), "{from}..{to}");
        assert_eq!(Some(&part.last_event_id().0), wanted.last(), "{from}..{to}");
        assert_eq!(part.size(), History::from(events(wanted)).encoded_len(), "{from}..{to}");
    }
}

#[test]
fn an_event_that_is_damaged_inside_is_corrupt_when_it_is_decoded() {
    // Its time, field 2, is no timestamp.
    let data = Bytes::from_static(&[FORMAT_PLAIN, 0x0a, 5, 0x08, 4, 0x12, 1, 0xff]);
    let read = EncodedEvents::of_node(EventId(4), &data).unwrap();
    let Err(StoreError::Corrupt(reason)) = read.decode() else { panic!("it decodes") };
    assert!(reason.starts_with("events 4 to 4 do not decode"), "{reason}");
}
