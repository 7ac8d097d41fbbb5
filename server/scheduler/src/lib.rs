//! Schedules: state, action times and decisions. Pure: the caller supplies the time and executes the decided actions.

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
