//! ① Public gRPC. Checks a request, finds its namespace, asks the service that owns the answer; decides nothing itself.

pub mod service;
mod call;
mod entry;
mod start;
mod signal;
mod pause;
mod query;
mod update;
mod poll;
mod left_workers;
mod long_calls;
mod polls;
mod respond;
mod respond_by_id;
mod activity_operations;
mod activity_executions;
mod history;
mod list;
mod schedule;
mod batch;
mod describe;
mod namespace;
mod cluster;
mod clusters;
mod nexus_endpoints;
mod search_attributes;
mod operator;
mod admin;
pub(crate) mod validate;
mod guard;

pub use admin::Admin;
pub(crate) use call::{grpc_timeout, parse_timeout};
pub use guard::Guarded;
pub use service::{Defined, Frontend};
