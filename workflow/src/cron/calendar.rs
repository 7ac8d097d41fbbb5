//! Dates in a time zone, and the next date that matches a schedule. Clock changes follow the cron library of the
//! reference: a skipped hour has no run, a repeated hour has two.

use crate::civil::{Zone, date, days_since_epoch};
use crate::time::Timestamp;

pub(crate) const NANOS_PER_SECOND: i64 = 1_000_000_000;
const DAY: i64 = 24 * HOUR;
const HOUR: i64 = 60 * MINUTE;
const MINUTE: i64 = 60;

/// A schedule without a match within this many years counts as one that never matches.
const YEARS_SEARCHED_MAX: i64 = 5;

/// Each set is a bit set: bit n means that value n matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Calendar {
    pub(super) minutes: u64,
    pub(super) hours: u64,
    pub(super) days: Days,
    pub(super) months: u64,
    pub(super) zone: Zone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Days {
    pub(super) of_month: u64,
    pub(super) of_week: u64,
    /// If both fields are restricted, a day must match either one; otherwise both.
    pub(super) both_must_match: bool,
}

/// Local wall-clock time, without seconds.
struct Civil {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
}

impl Calendar {
    /// The first matching time after this one.
    pub(super) fn next(&self, after: Timestamp) -> Option<Timestamp> {
        if self.minutes == 0 || self.hours == 0 || self.months == 0 {
            return None;
        }
        let mut search = Search { at: after.0.div_euclid(NANOS_PER_SECOND) + 1, is_truncated: false, zone: &self.zone };
        let year_max = search.civil().year + YEARS_SEARCHED_MAX;
        while search.civil().year <= year_max {
            if self.find_in_round(&mut search) {
                let next = Timestamp(search.at.checked_mul(NANOS_PER_SECOND)?);
                assert!(next > after, "the next time is not this one");
                return Some(next);
            }
        }
        None
    }

    /// Advances until each unit matches, largest first. False: a unit wrapped, so larger units must be checked again.
    fn find_in_round(&self, search: &mut Search) -> bool {
        while !has(self.months, search.civil().month) {
            search.enter_next_month();
            if search.civil().month == 1 {
                return false;
            }
        }
        while !self.days.matches(&search.civil()) {
            search.enter_next_day();
            if search.civil().day == 1 {
                return false;
            }
        }
        while !has(self.hours, search.civil().hour) {
            search.enter_next_hour();
            if search.civil().hour == 0 {
                return false;
            }
        }
        while !has(self.minutes, search.civil().minute) {
            search.enter_next_minute();
            if search.civil().minute == 0 {
                return false;
            }
        }
        if search.at.rem_euclid(MINUTE) != 0 {
            search.enter_next_minute();
            return false;
        }
        true
    }
}

/// Position of the search. The first step truncates to its unit; later steps find that done.
struct Search<'a> {
    at: i64,
    is_truncated: bool,
    zone: &'a Zone,
}

impl Search<'_> {
    fn civil(&self) -> Civil {
        Civil::of(self.zone, self.at)
    }

    fn truncate(&mut self, to: impl FnOnce(Civil) -> Civil) {
        if !self.is_truncated {
            self.is_truncated = true;
            self.at = to(self.civil()).moment(self.zone);
        }
    }

    fn enter_next_month(&mut self) {
        self.truncate(|civil| Civil { day: 1, hour: 0, minute: 0, ..civil });
        let civil = self.civil();
        self.at = Civil { month: civil.month + 1, ..civil }.moment(self.zone);
    }

    fn enter_next_day(&mut self) {
        self.truncate(|civil| Civil { hour: 0, minute: 0, ..civil });
        let (civil, before) = (self.civil(), self.at);
        self.at = Civil { day: civil.day + 1, ..civil }.moment(self.zone);
        // Where clocks change at midnight, this is an hour off midnight.
        match self.civil().hour {
            hour @ 13..=23 => self.at += (24 - hour) * HOUR,
            hour => self.at -= hour * HOUR,
        }
        // A zone that moves across the date line skips a whole day.
        if self.at <= before {
            self.at = before + DAY;
        }
    }

    /// By elapsed time, not by wall-clock time: no hour is left out.
    fn enter_next_hour(&mut self) {
        self.truncate(|civil| Civil { minute: 0, ..civil });
        self.at += HOUR;
    }

    fn enter_next_minute(&mut self) {
        self.at += MINUTE - self.at.rem_euclid(MINUTE);
        self.is_truncated = true;
    }
}

impl Days {
    fn matches(self, civil: &Civil) -> bool {
        // 1 January 1970 was a Thursday.
        let day_of_week = (days_since_epoch(civil.year, civil.month, civil.day) + 4).rem_euclid(7);
        let (in_month, in_week) = (has(self.of_month, civil.day), has(self.of_week, day_of_week));
        if self.both_must_match { in_month && in_week } else { in_month || in_week }
    }
}

impl Civil {
    fn of(zone: &Zone, at: i64) -> Self {
        let local = at + zone.offset(at);
        let (year, month, day) = date(local.div_euclid(DAY));
        let seconds = local.rem_euclid(DAY);
        Self { year, month, day, hour: seconds / HOUR, minute: seconds % HOUR / MINUTE }
    }

    /// Unix time of this local time. A skipped or repeated local time resolves by the offset around it.
    fn moment(&self, zone: &Zone) -> i64 {
        let days = days_since_epoch(self.year, self.month, self.day);
        let local = days * DAY + self.hour * HOUR + self.minute * MINUTE;
        match zone.offset(local) {
            0 => local,
            near => local - zone.offset(local - near),
        }
    }
}

fn has(set: u64, value: i64) -> bool {
    (0..64).contains(&value) && set & (1 << value) != 0
}
