//! Search attributes of runs. All services use them, none owns them.

pub mod attribute;
pub mod custom;
pub mod payload;
pub mod check;
pub mod datetime;
