//! Schedules: what one is, when it acts, and what it does. Pure: whoever keeps a schedule brings the time, and does what
//! was decided.

pub mod spec;
pub(crate) mod schedule;
pub(crate) mod decide;
mod times;
mod buffer;
pub(crate) mod stored;
pub(crate) mod shown;
pub(crate) mod actions;
#[cfg(test)]
mod tests;
