//! Workflows of children that run one activity each: runs that start others and are notified of their close.

use super::whole::Whole;
use crate::script::Step;

const FAMILY: u32 = 3;

pub(super) fn scenario(size: Option<u32>) -> Whole {
    Whole::of(vec![Step::Children(size.unwrap_or(FAMILY))])
}
