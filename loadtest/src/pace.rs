//! Start times of operations. Pure.

use std::sync::Arc;
use std::time::Duration;

/// A steady rate, after a ramp over which it grows from nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pace {
    pub(crate) rate: f64,
    pub(crate) ramp: Duration,
}

impl Pace {
    /// When the operation of this number (from 0) is due, counted from the start of the clock.
    pub(crate) fn due(&self, n: u64) -> Duration {
        let n = n as f64;
        let ramp = self.ramp.as_secs_f64();
        let n_in_ramp = self.rate * ramp / 2.0;
        let seconds =
            if n < n_in_ramp { (2.0 * ramp * n / self.rate).sqrt() } else { ramp + (n - n_in_ramp) / self.rate };
        Duration::from_secs_f64(seconds)
    }
}

/// Concurrency in steps of equal duration, repeated after the last.
#[derive(Debug, Clone)]
pub(crate) struct Stairs {
    steps: Arc<[usize]>,
    each: Duration,
}

impl Stairs {
    pub(crate) fn new(steps: &[usize], each: Duration) -> Self {
        assert!(!steps.is_empty() && !each.is_zero(), "stairs have a step");
        Self { steps: steps.into(), each }
    }

    /// Constant concurrency.
    pub(crate) fn level(at_once: usize) -> Self {
        Self::new(&[at_once], Duration::MAX)
    }

    pub(crate) fn highest(&self) -> usize {
        self.steps.iter().copied().max().unwrap_or(0)
    }

    /// When the `n`-th loop, free at this time, may begin its next operation: at once, or at the next step that has it.
    pub(crate) fn turn(&self, n: usize, free_at: Duration) -> Option<Duration> {
        let step = u32::try_from(free_at.as_nanos() / self.each.as_nanos()).ok()?;
        let has_place = |step: &u32| n < self.steps[*step as usize % self.steps.len()];
        let next = (step..).take(self.steps.len()).find(has_place)?;
        if next == step {
            return Some(free_at);
        }
        // Staggered: loops that start at one moment would come and go in waves.
        Some(self.each * next + joins_at(n, self.highest(), self.each / 4))
    }
}

/// When the `n`-th of `of` concurrent loops begins.
pub(crate) fn joins_at(n: usize, of: usize, ramp: Duration) -> Duration {
    let share = u32::try_from(n).unwrap_or(u32::MAX);
    ramp.saturating_mul(share) / u32::try_from(of.max(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    //! Moments by hand.

    use super::*;

    fn check(ramp: u64, n: u64, due_ms: u128) {
        let pace = Pace { rate: 100.0, ramp: Duration::from_secs(ramp) };
        assert_eq!(pace.due(n).as_millis(), due_ms, "operation {n} after a ramp of {ramp} s");
    }

    #[test]
    fn without_a_ramp_operations_are_evenly_apart() {
        check(0, 0, 0);
        check(0, 1, 10);
        check(0, 250, 2500);
    }

    #[test]
    fn over_a_ramp_half_as_many_begin_and_then_it_goes_on_evenly() {
        check(4, 50, 2000);
        check(4, 200, 4000);
        check(4, 300, 5000);
    }

    #[test]
    fn on_stairs_a_start_without_a_place_waits_for_a_step_that_has_one() {
        let stairs = Stairs::new(&[2, 4, 3], Duration::from_secs(10));
        let turn = |n, free_at| stairs.turn(n, Duration::from_secs(free_at)).map(|turn| turn.as_secs());
        assert_eq!([turn(1, 5), turn(2, 5), turn(3, 15), turn(3, 25)], [Some(5), Some(11), Some(15), Some(41)]);
        assert_eq!(turn(4, 0), None, "no step has a place for it");
        assert_eq!(Stairs::level(2).turn(1, Duration::from_secs(99)), Some(Duration::from_secs(99)));
    }

    #[test]
    fn workers_join_one_after_the_other_over_the_ramp() {
        assert_eq!(joins_at(0, 4, Duration::from_secs(8)), Duration::ZERO);
        assert_eq!(joins_at(3, 4, Duration::from_secs(8)), Duration::from_secs(6));
    }
}
