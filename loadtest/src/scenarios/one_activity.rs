//! Workflows of one activity: the unit that servers are compared by.

use super::whole::Whole;
use crate::script::Step;

pub(super) fn scenario() -> Whole {
    Whole::of(vec![Step::Activities(1)])
}
