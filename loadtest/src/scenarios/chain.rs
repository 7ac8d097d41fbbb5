//! Workflows of activities one after the other: a workflow task between each two.

use super::whole::Whole;
use crate::script::Step;

const LINKS: u32 = 10;

pub(super) fn scenario(size: Option<u32>) -> Whole {
    Whole::of((0..size.unwrap_or(LINKS)).map(|_| Step::Activities(1)).collect())
}
