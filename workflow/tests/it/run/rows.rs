//! What a store has of a run's items, written only from what each transition says it changed.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use proto::temporal::api::common::v1::{Memo, SearchAttributes};
use proto::temporal::api::history::v1::HistoryEvent;
use workflow::{Activity, ChangedItems, Child, ExecutionState, ExternalRequest, Timer, Update};

type Stored<V> = BTreeMap<i64, Arc<V>>;

#[derive(Default)]
pub(super) struct Rows {
    activities: Stored<Activity>,
    timers: Stored<Timer>,
    children: Stored<Child>,
    external_signals: Stored<ExternalRequest>,
    external_cancels: Stored<ExternalRequest>,
    signal_request_ids: Stored<String>,
    updates: Stored<Update>,
    memo: Arc<Memo>,
    search_attributes: Arc<SearchAttributes>,
    buffered_events: Stored<HistoryEvent>,
}

impl Rows {
    pub(super) fn write(&mut self, changed: ChangedItems, state: &ExecutionState) {
        write(&mut self.activities, changed.activities);
        write(&mut self.timers, changed.timers);
        write(&mut self.children, changed.children);
        write(&mut self.external_signals, changed.external_signals);
        write(&mut self.external_cancels, changed.external_cancels);
        write(&mut self.signal_request_ids, changed.signal_request_ids);
        write(&mut self.updates, changed.updates);
        write(&mut self.buffered_events, changed.buffered_events);
        if changed.properties {
            self.memo = Arc::clone(&state.memo);
            self.search_attributes = Arc::clone(&state.search_attributes);
        }
    }

    /// Nothing changed that was not written.
    pub(super) fn check(&self, state: &ExecutionState) {
        stored(&self.activities, state.activities.iter().collect());
        stored(&self.timers, state.timers.iter().collect());
        stored(&self.children, state.children.iter().collect());
        stored(&self.external_signals, state.external_signals.iter().collect());
        stored(&self.external_cancels, state.external_cancels.iter().collect());
        stored(&self.signal_request_ids, state.signal_request_ids.iter().collect());
        stored(&self.updates, state.updates.iter().collect());
        stored(&self.buffered_events, state.unrecorded.buffered_events.iter().collect());
        assert_eq!(self.memo, state.memo, "a changed memo is written");
        assert_eq!(self.search_attributes, state.search_attributes, "and so are changed search attributes");
    }
}

fn write<V>(rows: &mut Stored<V>, changed: Vec<(i64, Option<Arc<V>>)>) {
    for (id, row) in changed {
        match row {
            Some(row) => rows.insert(id, row),
            None => rows.remove(&id),
        };
    }
}

fn stored<V: PartialEq + Debug>(rows: &Stored<V>, items: Vec<(i64, &V)>) {
    let rows: Vec<(i64, &V)> = rows.iter().map(|(id, row)| (*id, row.as_ref())).collect();
    assert_eq!(rows, items, "the changed rows are all that changed");
}
