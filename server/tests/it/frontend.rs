//! The public API from outside.

mod door;
mod metrics;
mod namespaces;
mod polls;
mod robustness;
mod server_itself;
mod wrong_requests;
