//! Handles to services, all local so far. Services call one another only through these.

use std::sync::{Arc, PoisonError, RwLock};

use cluster::errors::ServiceError;

use crate::{history, matching, visibility};

/// Handles to the services of the cluster. History and matching call each other, so the handles come first and are
/// filled in as the node builds its services. They are cleared at shutdown: the two hold each other.
#[derive(Clone, Default)]
pub struct Peers {
    history: Handle<history::service::Service>,
    matching: Handle<matching::service::Service>,
    visibility: Handle<visibility::service::Service>,
}

/// The service, for callers that only use it from here.
pub type HistoryService = history::service::Service;
/// Requests and pages of visibility.
pub use crate::visibility::list::{Among, ListPage, ListRequest};

struct Handle<S>(Arc<RwLock<Option<Arc<S>>>>);

impl Peers {
    /// The history service that owns a workflow's shard.
    pub fn history(&self) -> Result<Arc<history::service::Service>, ServiceError> {
        self.history.get("history")
    }

    /// The matching service that owns a task queue's partition.
    pub fn matching(&self) -> Result<Arc<matching::service::Service>, ServiceError> {
        self.matching.get("matching")
    }

    /// The visibility service of this node: its data is in the store, which all nodes share.
    pub fn visibility(&self) -> Result<Arc<visibility::service::Service>, ServiceError> {
        self.visibility.get("visibility")
    }

    pub fn set_history(&self, service: Arc<history::service::Service>) {
        let previous = self.history.replace(Some(service));
        assert!(previous.is_none(), "a node has one history service");
    }

    pub fn set_matching(&self, service: Arc<matching::service::Service>) {
        let previous = self.matching.replace(Some(service));
        assert!(previous.is_none(), "a node has one matching service");
    }

    pub fn set_visibility(&self, service: Arc<visibility::service::Service>) {
        let previous = self.visibility.replace(Some(service));
        assert!(previous.is_none(), "a node has one visibility service");
    }

    /// Drops the stopped services.
    pub fn clear(&self) {
        self.history.replace(None);
        self.matching.replace(None);
        self.visibility.replace(None);
    }
}

impl<S> Handle<S> {
    fn get(&self, name: &str) -> Result<Arc<S>, ServiceError> {
        let service = self.0.read().unwrap_or_else(PoisonError::into_inner);
        service.clone().ok_or_else(|| ServiceError::Unavailable(format!("the {name} service is not ready")))
    }

    fn replace(&self, service: Option<Arc<S>>) -> Option<Arc<S>> {
        std::mem::replace(&mut *self.0.write().unwrap_or_else(PoisonError::into_inner), service)
    }
}

impl<S> Clone for Handle<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> Default for Handle<S> {
    fn default() -> Self {
        Self(Arc::default())
    }
}
