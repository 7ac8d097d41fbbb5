//! Everrow's server: the modules in the order a request meets them.

pub mod cli;
pub mod node;
pub mod config;
pub mod errors;
pub mod env;
pub mod namespaces;
pub mod search_attributes;
pub mod spans;
pub mod cluster;
mod http_api;
pub mod frontend;
pub mod history;
pub mod matching;
mod metrics;
pub mod visibility;
pub mod scheduler;
pub mod telemetry;
pub mod version;
#[cfg(test)]
mod fuzz;
