//! The engine and the schema on a real Cassandra: `cargo xtask test` starts one.

mod cluster;
mod conforms;
mod lease;
mod limits;
mod schema;
