//! Visibility: the query language, and the service that answers list and count requests.

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
