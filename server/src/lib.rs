//! Everrow's server: the modules in the order a request meets them.

pub mod cli;
pub mod node;
pub mod config;
pub mod peers;
mod http_api;
pub mod frontend;
pub mod history;
pub mod matching;
pub mod visibility;
pub mod telemetry;
