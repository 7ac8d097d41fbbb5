//! Wide rows: the contract that every engine keeps, the engines on this machine, and the stores written once on top.
//!
//! A *table* is described once (`table`); an *engine* reads slices and writes batches of one partition (`engine`); a
//! *store* gives rows a meaning (`stores`). Nothing here knows gRPC, services or the clock.

pub mod table;
pub mod engine;
pub mod error;
pub mod tables;
pub mod counted;
pub mod embedded;
pub mod model;
pub mod stores;
#[cfg(feature = "conformance")]
pub mod conformance;
