//! The order of a list, and each run's place in it. Pure.
//!
//! The usual order is: open runs, the latest started first; then closed ones, the latest closed first. While a client
//! pages through, runs close. So that none is told twice or left out, a list keeps to the moment at which it began: a run
//! that closed later has the place of an open one, whether it was told before it closed or not.

use std::time::Duration;

use cluster::search_attributes::attribute::{Attribute, SystemAttribute};
use persistence::stores::visibility::record::Record;
use workflow::Timestamp;

use super::query::filter::{Direction, OrderBy};
use super::record_values::value_of;

/// A change is in the store this long after it happened at the latest, or nearly: runs that closed so shortly before a list
/// began may have been open to its first page.
const LAG_MAX: Duration = Duration::from_secs(2);

/// Begins the place of a run that counts as open, and that of one that counts as closed.
const OPEN: u8 = 0;
const CLOSED: u8 = 1;

/// A run's place: the lower comes first.
pub(super) type Place = Vec<u8>;

/// How a list is ordered, from its first page to its last.
#[derive(Debug, Clone)]
pub(super) struct Ordering<'q> {
    /// Empty: the usual order.
    pub(super) order_by: &'q [OrderBy],
    /// When the first page was read.
    pub(super) began_at: Timestamp,
}

impl Ordering<'_> {
    /// Runs that closed at this moment or later count as open.
    pub(super) fn open_from(&self) -> Timestamp {
        Timestamp(self.began_at.0.saturating_sub(i64::try_from(LAG_MAX.as_nanos()).unwrap_or(i64::MAX)))
    }

    pub(super) fn place(&self, record: &Record) -> Place {
        let mut place = Vec::with_capacity(40);
        for OrderBy { attribute, direction } in self.order_by {
            let from = place.len();
            match value_of(record, attribute) {
                Some(value) => {
                    place.push(0);
                    // A list of keywords has the place of its first one.
                    escape(value.index_keys().first().map_or(&[], Vec::as_slice), &mut place);
                    if *direction == Direction::Descending {
                        place[from + 1..].iter_mut().for_each(|byte| *byte = !*byte);
                    }
                }
                // What is not set comes last, in either direction.
                None => place.push(1),
            }
        }
        self.usual(record, &mut place);
        place
    }

    fn usual(&self, record: &Record, place: &mut Place) {
        match record.closed.map(|closed| closed.at).filter(|at| *at < self.open_from()) {
            Some(closed_at) => {
                place.push(CLOSED);
                place.extend(latest_first(closed_at));
            }
            None => place.push(OPEN),
        }
        place.extend(latest_first(record.started_at));
        place.extend(record.run_id.0.as_bytes());
    }
}

/// What the place of the last run that was told says of the usual order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reached {
    /// Open runs that started at this moment or before are next, then all that are closed.
    Open(Timestamp),
    /// Runs that closed at this moment or before are next.
    Closed(Timestamp),
}

/// `None` if it is no place in the usual order.
pub(super) fn reached(place: &[u8]) -> Option<Reached> {
    let (section, rest) = place.split_first()?;
    let moment = Timestamp(!(u64::from_be_bytes(rest.get(..8)?.try_into().ok()?) ^ SIGN).cast_signed());
    match *section {
        OPEN if rest.len() == 24 => Some(Reached::Open(moment)),
        CLOSED if rest.len() == 32 => Some(Reached::Closed(moment)),
        _ => None,
    }
}

/// In which direction a list goes through runs by their start, if that is what it is ordered by first.
pub(super) fn by_start(order_by: &[OrderBy]) -> Option<Direction> {
    let first = order_by.first()?;
    (first.attribute == Attribute::System(SystemAttribute::StartTime)).then_some(first.direction)
}

/// When the run with this place started, in a list that is ordered by that first. `None` if it is no such place.
pub(super) fn started_at(place: &[u8], direction: Direction) -> Option<Timestamp> {
    let (0, rest) = place.split_first().map(|(set, rest)| (*set, rest))? else { return None };
    let plain = |byte: &u8| if direction == Direction::Descending { !*byte } else { *byte };
    let mut bytes = rest.iter().map(plain);
    let mut key = [0; 8];
    for byte in &mut key {
        *byte = bytes.next()?;
        if *byte == 0 && bytes.next()? != u8::MAX {
            return None;
        }
    }
    Some(Timestamp((u64::from_be_bytes(key) ^ SIGN).cast_signed()))
}

/// The order in which the runs of one page are told: by what they are now.
pub(super) fn as_they_are(record: &Record) -> (bool, std::cmp::Reverse<Timestamp>, std::cmp::Reverse<Timestamp>) {
    let closed_at = record.closed.map_or(Timestamp(i64::MAX), |closed| closed.at);
    (record.closed.is_some(), std::cmp::Reverse(closed_at), std::cmp::Reverse(record.started_at))
}

const SIGN: u64 = 1 << 63;

fn latest_first(moment: Timestamp) -> [u8; 8] {
    ((!moment.0).cast_unsigned() ^ SIGN).to_be_bytes()
}

/// Bytes that compare as these do, also before others that follow them.
fn escape(bytes: &[u8], place: &mut Place) {
    for byte in bytes {
        place.push(*byte);
        if *byte == 0 {
            place.push(u8::MAX);
        }
    }
    place.extend([0, 0]);
}
