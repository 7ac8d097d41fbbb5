//! A service here or elsewhere. Services call one another only through these handles.

use std::sync::{Arc, OnceLock};

use crate::errors::ServiceError;
use crate::{history, matching};

/// Handles to the services of the cluster. History calls matching and matching calls history, so the handles come
/// first and are filled in as the node builds its services.
#[derive(Clone, Default)]
pub struct Peers {
    history: Arc<OnceLock<Arc<history::service::Service>>>,
    matching: Arc<OnceLock<Arc<matching::service::Service>>>,
}

impl Peers {
    /// The history service that owns a workflow's shard.
    pub fn history(&self) -> Result<&history::service::Service, ServiceError> {
        self.history.get().map(AsRef::as_ref).ok_or_else(|| not_ready("history"))
    }

    /// The matching service that owns a task queue's partition.
    pub fn matching(&self) -> Result<&matching::service::Service, ServiceError> {
        self.matching.get().map(AsRef::as_ref).ok_or_else(|| not_ready("matching"))
    }

    pub fn set_history(&self, service: Arc<history::service::Service>) {
        assert!(self.history.set(service).is_ok(), "a node has one history service");
    }

    pub fn set_matching(&self, service: Arc<matching::service::Service>) {
        assert!(self.matching.set(service).is_ok(), "a node has one matching service");
    }
}

fn not_ready(service: &str) -> ServiceError {
    ServiceError::Unavailable(format!("the {service} service is not ready yet"))
}
