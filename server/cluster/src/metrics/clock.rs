//! Steps of the wall clock.

use std::fmt::Write as _;

use super::family::{Family, Labels};

static STEPS: Family<Direction> =
    Family::counter("clock_steps", "How often the wall clock was set, or jumped because the machine slept.");

/// Which way the wall clock was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    Back,
    Forward,
}

pub fn count_step(direction: Direction) {
    STEPS.add(direction, 1);
}

pub(super) fn write(text: &mut String) {
    STEPS.write(text);
}

impl Labels for Direction {
    fn write(&self, text: &mut String) {
        let direction = match self {
            Self::Back => "back",
            Self::Forward => "forward",
        };
        let _ = write!(text, "direction=\"{direction}\"");
    }
}
