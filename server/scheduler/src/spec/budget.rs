//! Work budget of a search for times. Specifications come from clients, so their size bounds the work, and not where
//! their times happen to lie.

/// Steps of one computation, whatever the specification: about 4 ms. A step is a month of a calendar, a day of a zone,
/// or a few comparisons. Each of 1000 listed times may skip 200 excluded ones; the costliest realistic specification
/// (minutes of a year with all but a day excluded) needs 1000.
const STEPS: u64 = 200_000;
/// Additional steps per calendar and interval: one that matches no day at all (30 February) takes two per year.
const STEPS_PER_SOURCE: u64 = 160;
/// Calendars and intervals that add steps, at most. Larger specifications get no more, also those stored before
/// `SPEC_BYTES_MAX` was introduced.
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

    /// Whether nothing was spent: a search that exhausts a whole budget will never succeed.
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
