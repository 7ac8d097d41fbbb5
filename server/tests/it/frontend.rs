//! The public API from outside.

mod metrics;
mod namespaces;
mod polls;
mod robustness;
mod server_itself;
mod wrong_requests;
