//! How much work a search for times may do. A specification comes from a client, so its size bounds the work, and not
//! where its times happen to lie.

/// Steps of one computation whatever the specification is: about four milliseconds. A step is a month of a calendar, a day
/// of a zone, or a few comparisons. Of a thousand times that a client lists, each may look at two hundred that are excluded;
/// the costliest specification that people write (minutes of a year of which all but a day is excluded) needs a thousand.
const STEPS: u64 = 200_000;
/// Steps besides for each calendar and interval: one that names no day at all (30 February) takes two for each year.
const STEPS_PER_SOURCE: u64 = 160;
/// Calendars and intervals that bring steps with them, more than `SPEC_BYTES_MAX` has room for. Specifications that were
/// stored before that bound may have more.
const SOURCES_MAX: usize = 4096;

/// Steps that are left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    left: u64,
    given: u64,
}

/// The budget does not suffice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exhausted;

impl Budget {
    /// For a specification with this many calendars and intervals.
    pub(super) fn new(n_sources: usize) -> Self {
        let sources = u64::try_from(n_sources.min(SOURCES_MAX)).expect("a small number fits");
        let given = STEPS + STEPS_PER_SOURCE * sources;
        Self { left: given, given }
    }

    pub(super) fn spend(&mut self, steps: u64) -> Result<(), Exhausted> {
        self.left = self.left.checked_sub(steps).ok_or_else(|| {
            self.left = 0;
            Exhausted
        })?;
        Ok(())
    }

    /// Nothing was spent of it: what it does not suffice for will never be found.
    pub fn is_whole(&self) -> bool {
        self.left == self.given
    }

    #[cfg(test)]
    pub fn left(&self) -> u64 {
        self.left
    }

    #[cfg(test)]
    pub fn spent(&self) -> u64 {
        self.given - self.left
    }
}
