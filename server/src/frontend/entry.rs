//! Resolves a namespace by a request's name or a token's id, and checks that its state allows the call.

use std::sync::Arc;

use cluster::errors::ServiceError;
use cluster::namespaces::Namespace;
use proto::temporal::api::enums::v1::NamespaceState;
use uuid::Uuid;
use workflow::NamespaceId;

use super::Frontend;
use super::validate::token::{self, CheckedToken, Origin};
use super::validate::{self, invalid};

impl Frontend {
    /// For calls that a deprecated namespace still allows.
    pub(super) async fn enter(&self, name: &str) -> Result<Arc<Namespace>, ServiceError> {
        validate::namespace_name(name)?;
        let namespace = self.namespaces.by_name(name).await?;
        allow(namespace, &[NamespaceState::Registered, NamespaceState::Deprecated])
    }

    /// For calls that start something: a deprecated namespace refuses them.
    pub(super) async fn enter_to_start(&self, name: &str) -> Result<Arc<Namespace>, ServiceError> {
        validate::namespace_name(name)?;
        let namespace = self.namespaces.by_name(name).await?;
        allow(namespace, &[NamespaceState::Registered])
    }

    /// For task responses. The token decides; a name, if given, must match.
    pub(super) async fn enter_by_token(&self, name: &str, token: &[u8]) -> Result<Arc<Namespace>, ServiceError> {
        if !name.is_empty() {
            validate::namespace_name(name)?;
            self.namespaces.by_name(name).await?;
        }
        let CheckedToken { token, origin, .. } = token::decode(token)?;
        let namespace = self.enter_by_id(name, &token.namespace_id).await?;
        match origin {
            Origin::Ours => Ok(namespace),
            Origin::Foreign => Err(ServiceError::execution_not_found(&token.workflow_id, &token.run_id)),
        }
    }

    /// Like `enter_by_token`, for tokens of other kinds.
    pub(super) async fn enter_by_id(&self, name: &str, id: &str) -> Result<Arc<Namespace>, ServiceError> {
        let not_found = || ServiceError::NamespaceNotFound { namespace: id.to_owned() };
        let id = Uuid::try_parse(id).map(NamespaceId).map_err(|_| not_found())?;
        let namespace = self.namespaces.by_id(id).await?;
        if !name.is_empty() && self.namespaces.by_name(name).await?.id != namespace.id {
            return Err(invalid("Operation requested with a token from a different namespace."));
        }
        allow(namespace, &[NamespaceState::Registered, NamespaceState::Deprecated])
    }
}

fn allow(namespace: Arc<Namespace>, allowed: &[NamespaceState]) -> Result<Arc<Namespace>, ServiceError> {
    if allowed.contains(&namespace.state) {
        return Ok(namespace);
    }
    let (name, state) = (namespace.name.clone(), namespace.state);
    Err(ServiceError::NamespaceInvalidState { namespace: name, state, allowed: allowed.to_vec() })
}
