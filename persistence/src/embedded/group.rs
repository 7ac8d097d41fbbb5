//! A group of batches that become durable together.
//!
//! Conditions are checked in arrival order, against what is committed plus the changes of earlier batches of the group.
//! The result is one value per key: fjall gives a whole commit one number, so a key may occur only once. Versioned rows
//! use arrival order too: no other process can have a write in flight to this directory.

use super::cells;
use super::disk::{Changes, View};
use super::keys::{self, Span};
use crate::engine::{Batch, Condition, Current, Durable, Outcome, Partition, Row};
use crate::error::StoreError;
use crate::table::Value;

/// Size at which a group takes no more batches, to bound the latency of its first.
const GROUP_BYTES: usize = 8 << 20;

/// A range with more rows than this is hidden at once and removed in pieces (`sweep`), so that its keys need not be in
/// memory together.
pub(super) const SWEEP_ROWS: usize = 10_000;

/// Approximate memory of an entry besides its key and value.
const ENTRY_OVERHEAD: usize = 64;

pub(super) struct Group {
    view: View,
    changes: Changes,
    bytes: usize,
    sweeps: Vec<Span>,
    durable: Durable,
}

/// The writes of a group.
pub(super) struct Written {
    pub(super) changes: Changes,
    /// To be swept after the commit.
    pub(super) sweeps: Vec<Span>,
    /// The strictest durability of its batches.
    pub(super) durable: Durable,
}

/// A batch's range deletes, resolved.
#[derive(Default)]
struct Doomed {
    keys: Vec<Vec<u8>>,
    spans: Vec<Span>,
    sweeps: Vec<Span>,
}

impl Group {
    pub(super) fn new(view: View) -> Self {
        Self { view, changes: Changes::new(), bytes: 0, sweeps: Vec::new(), durable: Durable::WithNext }
    }

    /// A group with a sweep is full too: later batches would read rows that are deleted but not yet removed.
    pub(super) fn is_full(&self) -> bool {
        self.bytes >= GROUP_BYTES || !self.sweeps.is_empty()
    }

    pub(super) fn into_written(self) -> Written {
        Written { changes: self.changes, sweeps: self.sweeps, durable: self.durable }
    }

    /// Adds the batch if its conditions hold. After an error nothing of it is in the group.
    pub(super) fn apply(&mut self, batch: Batch) -> Result<Outcome, StoreError> {
        // Also for a refusal: the values it returns must be durable.
        if batch.durable == Durable::AtOnce {
            self.durable = Durable::AtOnce;
        }
        let partition = &batch.partition;
        let current: Vec<Current> =
            batch.conditions.iter().map(|condition| self.current(partition, condition)).collect::<Result<_, _>>()?;
        if !batch.conditions.iter().zip(&current).all(|(condition, current)| condition.holds(current)) {
            return Ok(Outcome::Refused(current));
        }
        // The last step that can fail, so that a batch is never half in the group.
        let doomed = self.find_doomed(&batch)?;

        self.delete_doomed(doomed);
        for (column, value) in &batch.statics {
            self.change(keys::static_column(partition, *column), Some(cells::encode(std::slice::from_ref(value))));
        }
        for row in batch.all_puts() {
            self.change(keys::row(partition, &row.key), Some(cells::encode(&row.values)));
        }
        for key in batch.all_deletes() {
            self.change(keys::row(partition, key), None);
        }
        Ok(Outcome::Applied)
    }

    fn change(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        self.bytes += key.len() + value.as_ref().map_or(0, Vec::len) + ENTRY_OVERHEAD;
        self.changes.insert(key, value);
    }

    fn current(&self, partition: &Partition, condition: &Condition) -> Result<Current, StoreError> {
        match condition {
            Condition::Static { column, .. } => {
                let key = keys::static_column(partition, *column);
                let columns = &partition.table.0.statics[*column..=*column];
                let value = self.get(&key, |bytes| cells::decode(columns, bytes))?;
                Ok(Current::Static(value.and_then(|mut values| values.pop())))
            }
            Condition::Absent { key } | Condition::Value { key, .. } => {
                let columns = partition.table.0.values;
                let values = self.get(&keys::row(partition, key), |bytes| cells::decode(columns, bytes))?;
                Ok(Current::Row(values.map(|values| Row { key: key.clone(), values })))
            }
        }
    }

    fn get(&self, key: &[u8], decode: impl Fn(&[u8]) -> Option<Vec<Value>>) -> Result<Option<Vec<Value>>, StoreError> {
        let decoded = match self.changes.get(key) {
            Some(None) => return Ok(None),
            Some(Some(bytes)) => decode(bytes),
            None => match self.view.get(key)? {
                Some(bytes) => decode(&bytes),
                None => return Ok(None),
            },
        };
        decoded.map(Some).ok_or_else(|| StoreError::Corrupt(format!("the value of key {key:x?}")))
    }

    fn find_doomed(&self, batch: &Batch) -> Result<Doomed, StoreError> {
        let mut doomed = Doomed::default();
        for range in batch.all_range_deletes() {
            let span = keys::span(&batch.partition, range);
            let room = SWEEP_ROWS.saturating_sub(doomed.keys.len());
            let found: Vec<Vec<u8>> = self
                .view
                .range(&span)
                .take(room + 1)
                .map(|entry| entry.map(|(key, _)| key.to_vec()))
                .collect::<Result<_, _>>()?;
            if found.len() > room {
                doomed.sweeps.push(span.clone());
            } else {
                doomed.keys.extend(found);
            }
            doomed.spans.push(span);
        }
        Ok(doomed)
    }

    fn delete_doomed(&mut self, doomed: Doomed) {
        for span in doomed.spans.iter().filter(|span| !span.is_empty()) {
            for (_, value) in self.changes.range_mut(span.from.clone()..span.to.clone()) {
                *value = None;
            }
        }
        for key in doomed.keys {
            self.change(key, None);
        }
        self.sweeps.extend(doomed.sweeps);
    }
}
