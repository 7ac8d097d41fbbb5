//! HTTP/JSON: the public API for clients without gRPC. Every call is resolved by the API's own HTTP annotations,
//! converted to the message that they describe, and passed to the gRPC services in this process; no code here is
//! specific to an RPC.

mod routes;
mod request;
mod shorthand;
mod format;
mod transcoder;
mod answer;
mod openapi;
mod access;
mod gateway;

pub(crate) use access::Access;
pub(crate) use answer::HttpResponse;
pub(crate) use gateway::Gateway;
