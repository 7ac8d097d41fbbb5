//! Visibility of a run, and what changes it: start, close, a pause of the run or of an activity, a change of its memo
//! or search attributes.

use std::collections::BTreeMap;
use std::sync::Arc;

use proto::temporal::api::common::v1::{Memo, Payload, SearchAttributes};

use crate::pause::{self, Pausable};
use crate::state::{ExecutionState, Status};
use crate::tasks::VisibilityTask;

/// Visibility snapshot of a run before a transition.
pub(crate) struct Listed {
    status: Status,
    pausable: Pausable,
    memo: Arc<Memo>,
    search_attributes: Arc<SearchAttributes>,
}

impl Listed {
    pub(crate) fn new(state: &ExecutionState) -> Self {
        Self {
            status: state.status,
            pausable: Pausable::new(state),
            memo: Arc::clone(&state.memo),
            search_attributes: Arc::clone(&state.search_attributes),
        }
    }

    pub(crate) fn has_other_properties(&self, state: &ExecutionState) -> bool {
        // Changes are copy-on-write, so an unchanged value keeps its address.
        !Arc::ptr_eq(&self.memo, &state.memo) || !Arc::ptr_eq(&self.search_attributes, &state.search_attributes)
    }

    /// The visibility task, if visibility changed.
    pub(crate) fn change(&self, state: &ExecutionState) -> Option<VisibilityTask> {
        let is_other = self.status != state.status || self.pausable.is_other(state);
        (is_other || self.has_other_properties(state)).then(|| VisibilityTask {
            is_first: false,
            replaced: self.replaced(state),
            version: state.last_version(),
            is_schedule: false,
        })
    }

    fn replaced(&self, state: &ExecutionState) -> BTreeMap<String, Payload> {
        if Arc::ptr_eq(&self.search_attributes, &state.search_attributes) && !self.pausable.is_other(state) {
            return BTreeMap::new();
        }
        let before = self.pausable.shown(&state.key.workflow_id, &self.search_attributes);
        let now = pause::shown_search_attributes(state);
        let (before, now) = (&before.indexed_fields, &now.indexed_fields);
        let other = before.keys().chain(now.keys()).filter(|name| before.get(*name) != now.get(*name));
        other.map(|name| (name.clone(), before.get(name).cloned().unwrap_or_default())).collect()
    }
}

/// The first visibility task of a new run.
pub(crate) fn first(state: &ExecutionState) -> VisibilityTask {
    VisibilityTask { is_first: true, replaced: BTreeMap::new(), version: state.last_version(), is_schedule: false }
}
