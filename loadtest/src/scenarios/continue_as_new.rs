//! Workflows that continue as new again and again: a chain of short runs of one id.

use super::whole::Whole;
use crate::script::Step;

const TIMES: u32 = 5;

pub(super) fn scenario(size: Option<u32>) -> Whole {
    Whole::of((0..size.unwrap_or(TIMES)).map(|_| Step::ContinueAsNew).collect())
}
