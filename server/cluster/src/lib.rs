//! Foundation of all services: errors, time, namespaces, search attributes, metrics, membership. Depends on no service.

pub mod errors;
pub mod env;
pub mod config;
pub mod membership;
pub mod segments;
pub mod namespaces;
pub mod search_attributes;
pub mod spans;
pub mod metrics;
pub mod version;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
