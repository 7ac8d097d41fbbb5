//! The order of a list, and each run's place (sort key) in it. Pure.
//!
//! The usual order is: open runs, the latest started first; then closed ones, the latest closed first. Runs close while
//! a client pages. So that none is returned twice or skipped, all pages use the time of the first: a run that closed
//! later has the place of an open one, whether it was returned before it closed or not.

use std::time::Duration;

use cluster::search_attributes::attribute::{Attribute, SystemAttribute};
use persistence::stores::visibility::record::Record;
use workflow::Timestamp;

use super::query::filter::{Direction, OrderBy};
use super::record_values::value_of;

/// Visibility lag, nearly always at most this: a run that closed this shortly before a list began may have been open on
/// its first page.
const LAG_MAX: Duration = Duration::from_secs(2);

/// Section byte of the usual order: the run counts as open, or as closed.
const OPEN: u8 = 0;
const CLOSED: u8 = 1;

/// Sort key of a run: the lower comes first.
pub(super) type Place = Vec<u8>;

/// The order of a list, the same for all its pages.
#[derive(Debug, Clone)]
pub(super) struct PageOrder<'q> {
    /// Empty: the usual order.
    pub(super) order_by: &'q [OrderBy],
    /// When the first page was read.
    pub(super) began_at: Timestamp,
}

impl PageOrder<'_> {
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
                    // A keyword list sorts by its lowest keyword.
                    escape(value.index_keys().first().map_or(&[], Vec::as_slice), &mut place);
                    if *direction == Direction::Descending {
                        place[from + 1..].iter_mut().for_each(|byte| *byte = !*byte);
                    }
                }
                // Unset attributes sort last, in either direction.
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

/// Position of the last returned run in the usual order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reached {
    /// Next: open runs that started at this time or before, then all closed ones.
    Open(Timestamp),
    /// Next: runs that closed at this time or before.
    Closed(Timestamp),
}

/// `None` if the place is not one of the usual order.
pub(super) fn reached(place: &[u8]) -> Option<Reached> {
    let (section, rest) = place.split_first()?;
    let moment = Timestamp(!(u64::from_be_bytes(rest.get(..8)?.try_into().ok()?) ^ SIGN).cast_signed());
    match *section {
        OPEN if rest.len() == 24 => Some(Reached::Open(moment)),
        CLOSED if rest.len() == 32 => Some(Reached::Closed(moment)),
        _ => None,
    }
}

/// Direction of the first `ORDER BY` column, if that is `StartTime`.
pub(super) fn by_start(order_by: &[OrderBy]) -> Option<Direction> {
    let first = order_by.first()?;
    (first.attribute == Attribute::System(SystemAttribute::StartTime)).then_some(first.direction)
}

/// Start time in a place of a list ordered by `StartTime` first. `None` if it is no such place.
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

/// Sort key of the runs within one page: their current state.
pub(super) fn as_they_are(record: &Record) -> (bool, std::cmp::Reverse<Timestamp>, std::cmp::Reverse<Timestamp>) {
    let closed_at = record.closed.map_or(Timestamp(i64::MAX), |closed| closed.at);
    (record.closed.is_some(), std::cmp::Reverse(closed_at), std::cmp::Reverse(record.started_at))
}

const SIGN: u64 = 1 << 63;

fn latest_first(moment: Timestamp) -> [u8; 8] {
    ((!moment.0).cast_unsigned() ^ SIGN).to_be_bytes()
}

/// Appends bytes escaped and terminated, so that their order holds whatever bytes follow.
fn escape(bytes: &[u8], place: &mut Place) {
    for byte in bytes {
        place.push(*byte);
        if *byte == 0 {
            place.push(u8::MAX);
        }
    }
    place.extend([0, 0]);
}
