//! The frames are those that decoding finds, wherever an event has its id.

use prost::Message;
use prost::encoding::{int64, message, string};
use proto::history::History;
use proto::temporal::api::history::v1::HistoryEvent;
use workflow::EventId;

use super::{EVENTS, Frame, Frames};
use crate::stores::rows::Decoded;

fn frames(history: &[u8]) -> Decoded<Vec<Frame>> {
    Frames::new(history).collect()
}

fn ids(history: &[u8]) -> Vec<i64> {
    frames(history).expect("whole frames").iter().map(|frame| frame.event_id.0).collect()
}

fn event(event_id: i64) -> HistoryEvent {
    let event_time = Some(prost_types::Timestamp { seconds: 1_700_000_000, nanos: 5 });
    HistoryEvent { event_id, event_time, task_id: 7, ..HistoryEvent::default() }
}

fn encoded(events: &[HistoryEvent]) -> Vec<u8> {
    History::from(events.to_vec()).encode_to_vec()
}

/// An event of these bytes, within a history.
fn framed(body: &[u8]) -> Vec<u8> {
    let mut history = Vec::new();
    prost::encoding::bytes::encode(EVENTS, &body.to_vec(), &mut history);
    history
}

#[test]
fn a_frame_is_a_history_of_one_event() {
    let events: Vec<HistoryEvent> = [1, 2, 300, 1 << 40].map(event).to_vec();
    let history = encoded(&events);
    let frames = frames(&history).unwrap();
    assert_eq!(frames.len(), events.len());
    for (frame, event) in frames.iter().zip(&events) {
        assert_eq!(frame.event_id, EventId(event.event_id));
        assert_eq!(History::decode(&history[frame.bytes.clone()]).unwrap().events, std::slice::from_ref(event));
    }
    assert_eq!(frames.last().unwrap().bytes.end, history.len());
}

#[test]
fn nothing_has_no_frames() {
    assert_eq!(frames(&[]), Ok(Vec::new()));
}

#[test]
fn the_id_may_stand_anywhere_and_the_last_one_counts() {
    let rest = HistoryEvent { event_id: 0, ..event(0) }.encode_to_vec();
    let id = |id: i64| {
        let mut field = Vec::new();
        int64::encode(1, &id, &mut field);
        field
    };
    for body in [[id(5), rest.clone()].concat(), [rest.clone(), id(5)].concat(), [id(4), rest.clone(), id(5)].concat()]
    {
        let history = framed(&body);
        assert_eq!(ids(&history), [5]);
        assert_eq!(History::decode(history.as_slice()).unwrap().events, [event(5)]);
    }
    assert_eq!(ids(&framed(&rest)), [0], "as an absent number reads");
    assert_eq!(ids(&framed(&[])), [0]);
}

#[test]
fn fields_of_a_later_version_are_passed_over() {
    let mut history = encoded(&[event(1)]);
    let later = history.len();
    string::encode(9, &"new".to_owned(), &mut history);
    let start = history.len();
    message::encode(EVENTS, &event(2), &mut history);
    string::encode(9, &"newer".to_owned(), &mut history);
    assert_eq!(ids(&history), [1, 2]);
    let bytes: Vec<_> = frames(&history).unwrap().into_iter().map(|frame| frame.bytes).collect();
    assert_eq!((bytes[0].end, bytes[1].start), (later, start));
}

#[test]
fn a_history_that_is_cut_off_is_malformed() {
    let history = encoded(&[event(1), event(2)]);
    let border = encoded(&[event(1)]).len();
    for length in (1..history.len()).filter(|length| *length != border) {
        assert!(frames(&history[..length]).is_err(), "{length} bytes");
        assert!(History::decode(&history[..length]).is_err(), "{length} bytes");
    }
    assert_eq!(ids(&history[..border]), [1]);
}

#[test]
fn garbage_is_malformed() {
    let wrong_kind_of_events = [0x08, 1];
    let wrong_kind_of_id = framed(&[0x0a, 1, b'x']);
    let no_such_wire_type = [0x0f, 1];
    let tag_zero = [0x00, 1];
    let endless_number = framed(&[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
    let huge_length = [0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    let overlong_field = framed(&[0x08, 1, 0x12, 5, 0]);
    let cases: [&[u8]; 7] = [
        &wrong_kind_of_events,
        &wrong_kind_of_id,
        &no_such_wire_type,
        &tag_zero,
        &endless_number,
        &huge_length,
        &overlong_field,
    ];
    for history in cases {
        assert!(frames(history).is_err(), "{history:?}");
        assert!(History::decode(history).is_err(), "{history:?}");
    }
}

#[test]
fn nothing_is_read_after_what_is_malformed() {
    let mut frames = Frames::new(&[0x00, 0x0a, 0x00]);
    assert!(frames.next().is_some_and(|frame| frame.is_err()));
    assert!(frames.next().is_none());
}
