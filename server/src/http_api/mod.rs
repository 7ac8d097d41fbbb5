//! HTTP/JSON: the public API for who has no gRPC. Every call is found in the API's own HTTP annotations, turned into the
//! message that they describe, and handed to the gRPC services in this process; nothing here knows a single RPC.

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
