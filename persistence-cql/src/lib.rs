//! The wide-row contract of `persistence` on Cassandra and ScyllaDB, and the schema it needs there.
//!
//! `statements` is the only place with CQL text. Nothing here knows what a row means: that is the stores' business.

pub mod config;
mod tls;
mod session;
mod anchor;
mod range;
mod statements;
mod cells;
mod plan;
mod classify;
mod prepared;
mod lanes;
mod nodes;
mod requests;
mod shared;
mod row_sizes;
mod engine;
pub mod schema;

pub use config::CqlConfig;
pub use engine::CqlEngine;
pub use session::ConnectError;
