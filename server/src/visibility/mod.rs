//! Lists and counts: the query language, and who answers it.

pub mod query;
pub mod service;
pub mod list;
pub mod count;
mod writer;
mod housekeeping;
mod plan;
mod access;
mod candidates;
mod reading;
mod merge;
mod order;
mod bounds;
mod record_values;
