//! Schedules: what one is, when it acts, and what it does. Pure: whoever keeps a schedule brings the time, and does what
//! was decided.

pub mod spec;
pub mod schedule;
pub mod decide;
mod times;
mod buffer;
pub mod stored;
pub mod shown;
pub mod actions;
#[cfg(test)]
mod tests;
