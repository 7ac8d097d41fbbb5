//! Workflows of many activities at once: one run with much pending, whose completions come together.

use super::whole::Whole;
use crate::script::Step;

const WIDTH: u32 = 100;

pub(super) fn scenario(size: Option<u32>) -> Whole {
    Whole::of(vec![Step::Activities(size.unwrap_or(WIDTH))])
}
