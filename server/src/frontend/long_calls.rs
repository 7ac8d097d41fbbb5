//! Limits the waiting calls of each kind that a namespace may have under way on this node.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use cluster::errors::ServiceError;
use proto::temporal::api::enums::v1::{ResourceExhaustedCause, ResourceExhaustedScope};
use workflow::NamespaceId;

#[cfg(test)]
mod tests;

/// Calls of one kind in one namespace.
const UNDER_WAY_MAX: usize = 1200;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum LongCall {
    PollWorkflowTaskQueue,
    PollActivityTaskQueue,
    PollWorkflowExecutionUpdate,
    UpdateWorkflowExecution,
    ExecuteMultiOperation,
    QueryWorkflow,
    /// Only with `wait_new_event`.
    GetWorkflowExecutionHistory,
}

/// Counts of calls under way. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct LongCalls {
    under_way: Arc<Mutex<HashMap<(NamespaceId, LongCall), usize>>>,
}

/// Permit of one call, released on drop.
pub(super) struct Place {
    calls: LongCalls,
    key: (NamespaceId, LongCall),
}

impl LongCalls {
    pub(super) fn enter(&self, namespace_id: NamespaceId, call: LongCall) -> Result<Place, ServiceError> {
        let key = (namespace_id, call);
        let mut under_way = self.under_way();
        let n_calls = under_way.entry(key).or_default();
        if *n_calls >= UNDER_WAY_MAX {
            return Err(ServiceError::ResourceExhausted {
                cause: ResourceExhaustedCause::ConcurrentLimit,
                scope: ResourceExhaustedScope::Namespace,
                message: "namespace concurrent poller limit exceeded".into(),
            });
        }
        *n_calls += 1;
        drop(under_way);
        Ok(Place { calls: self.clone(), key })
    }

    fn under_way(&self) -> MutexGuard<'_, HashMap<(NamespaceId, LongCall), usize>> {
        self.under_way.lock().expect("no panic while counting")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut under_way = self.calls.under_way();
        let Some(n_calls) = under_way.get_mut(&self.key) else { return };
        *n_calls -= 1;
        if *n_calls == 0 {
            under_way.remove(&self.key);
        }
    }
}
