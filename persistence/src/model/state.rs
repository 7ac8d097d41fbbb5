//! All partitions, writes in flight, and the faults that strike.

use std::collections::{BTreeMap, VecDeque};

use super::faults::{Dice, Fault};
use super::partition::{Dead, Rows};
use super::versions::Grave;
use crate::engine::{Batch, Consistency, Current, Outcome, Page, Partition, Row, Slice, Statics};
use crate::error::StoreError;
use crate::table::Value;

/// Rows and tombstones scanned by reads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Scanned {
    pub rows: usize,
    /// Tombstones in the ranges that were read: an LSM store has to step over each.
    pub dead_rows: usize,
}

/// Tombstones of versioned deletes to keep, the latest ones. No write is in flight while this many others arrive.
const GRAVES_MAX: usize = 100_000;
/// Limit of late writes; one more delivers the oldest.
const LATE_MAX: usize = 64;

type Predicate = Box<dyn FnMut(&Batch) -> bool + Send>;
type Name = (&'static str, Vec<Value>);

pub(super) struct State {
    partitions: BTreeMap<Name, Held>,
    /// In the order of their deletion.
    graves: VecDeque<(Name, Grave)>,
    /// Late writes to versioned tables: reported as `OutcomeUnknown`, and not arrived.
    late: VecDeque<Flight>,
    pub(super) dice: Option<Dice>,
    pub(super) injected: Vec<(Predicate, Fault)>,
    pub(super) dead: Dead,
    pub(super) scanned: Scanned,
}

struct Held {
    rows: Rows,
    /// Accepted, not visible, reported as `OutcomeUnknown`.
    in_flight: Option<Flight>,
}

struct Flight {
    batch: Batch,
    fate: Fate,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Applied when it is settled, not before.
    Applied,
    ByChance,
}

impl State {
    pub(super) fn new(dice: Option<Dice>) -> Self {
        let (injected, scanned) = (Vec::new(), Scanned::default());
        let (graves, late) = (VecDeque::new(), VecDeque::new());
        Self { partitions: BTreeMap::new(), graves, late, dice, injected, dead: Dead::Forgotten, scanned }
    }

    pub(super) fn statics(&mut self, partition: &Partition, consistency: Consistency) -> Result<Statics, StoreError> {
        self.before_read(partition, consistency)?;
        Ok(self.dump(partition).0)
    }

    pub(super) fn read(&mut self, slice: &Slice) -> Result<Page, StoreError> {
        self.before_read(&slice.partition, slice.consistency)?;
        let Some(held) = self.partitions.get(&name(&slice.partition)) else { return Ok(Page::default()) };
        let (page, dead_rows) = held.rows.page(slice);
        self.scanned.rows += page.rows.len();
        self.scanned.dead_rows += dead_rows;
        Ok(page)
    }

    pub(super) fn write(&mut self, batch: Batch) -> Result<Outcome, StoreError> {
        self.deliver_by_chance();
        let injected = self.injected_fault(&batch);
        let fate = if injected.is_some() { Fate::Applied } else { Fate::ByChance };
        let fault = injected.or_else(|| self.dice.as_mut().and_then(|dice| dice.strike(&batch)));
        match fault {
            Some(Fault::Unavailable) => Err(StoreError::Unavailable("injected".into())),
            Some(Fault::TimeoutNotApplied) => Err(unknown()),
            Some(Fault::TimeoutApplied) => self.judge(batch, Self::apply).and(Err(unknown())),
            Some(Fault::AppliedLater) if batch.partition.table.0.is_versioned => {
                self.delay(Flight { batch, fate });
                Err(unknown())
            }
            Some(Fault::AppliedLater) => {
                self.judge(batch, |state, batch| state.accept(Flight { batch, fate })).and(Err(unknown()))
            }
            None => self.judge(batch, Self::apply),
        }
    }

    pub(super) fn dump(&self, partition: &Partition) -> (Statics, Vec<Row>) {
        match self.partitions.get(&name(partition)) {
            Some(held) => (held.rows.statics(), held.rows.all()),
            None => (Rows::no_statics(partition), Vec::new()),
        }
    }

    /// Settles the write in flight, then passes the batch on if its conditions hold.
    ///
    /// A plain write settles too. CQL would not do that, but there the write in flight has an older timestamp and loses
    /// against the plain one, so the result is the same.
    fn judge(&mut self, batch: Batch, pass: impl FnOnce(&mut Self, Batch)) -> Result<Outcome, StoreError> {
        self.settle(&batch.partition);
        let held = self.partitions.entry(name(&batch.partition)).or_insert_with(|| Held::new(&batch.partition));
        let current: Vec<Current> = batch.conditions.iter().map(|condition| held.rows.current(condition)).collect();
        if !batch.conditions.iter().zip(&current).all(|(condition, current)| condition.holds(current)) {
            self.forget_if_empty(&batch.partition);
            return Ok(Outcome::Refused(current));
        }
        pass(self, batch);
        Ok(Outcome::Applied)
    }

    fn apply(&mut self, batch: Batch) {
        let partition = batch.partition.clone();
        let held = self.partitions.entry(name(&partition)).or_insert_with(|| Held::new(&partition));
        let graves = held.rows.apply(batch, self.dead);
        self.graves.extend(graves.into_iter().map(|grave| (name(&partition), grave)));
        self.forget_if_empty(&partition);
        while self.graves.len() > GRAVES_MAX {
            self.forget_grave();
        }
    }

    fn forget_grave(&mut self) {
        let Some((name, grave)) = self.graves.pop_front() else { return };
        let Some(held) = self.partitions.get_mut(&name) else { return };
        held.rows.forget(&grave);
        if held.is_empty() {
            self.partitions.remove(&name);
        }
    }

    fn delay(&mut self, flight: Flight) {
        if self.late.len() == LATE_MAX {
            self.deliver(0);
        }
        self.late.push_back(flight);
    }

    fn deliver(&mut self, index: usize) {
        if let Some(flight) = self.late.remove(index) {
            self.apply(flight.batch);
        }
    }

    pub(super) fn deliver_all(&mut self) {
        while !self.late.is_empty() {
            self.deliver(0);
        }
    }

    pub(super) fn n_late(&self) -> usize {
        self.late.len()
    }

    /// Delivers the oldest write that is late by chance, with probability 1/8.
    fn deliver_by_chance(&mut self) {
        let by_chance = self.late.iter().position(|flight| flight.fate == Fate::ByChance);
        let (Some(index), Some(dice)) = (by_chance, &mut self.dice) else { return };
        if dice.flip() && dice.flip() && dice.flip() {
            self.deliver(index);
        }
    }

    fn accept(&mut self, flight: Flight) {
        let partition = &flight.batch.partition;
        let held = self.partitions.entry(name(partition)).or_insert_with(|| Held::new(partition));
        assert!(held.in_flight.is_none(), "whatever was in flight has been settled");
        held.in_flight = Some(flight);
    }

    /// Applies the write in flight, or drops it for good.
    fn settle(&mut self, partition: &Partition) {
        let Some(held) = self.partitions.get_mut(&name(partition)) else { return };
        let Some(flight) = held.in_flight.take() else { return };
        let is_applied = flight.fate == Fate::Applied || self.dice.as_mut().is_none_or(Dice::flip);
        if is_applied {
            self.apply(flight.batch);
        } else {
            self.forget_if_empty(partition);
        }
    }

    fn before_read(&mut self, partition: &Partition, consistency: Consistency) -> Result<(), StoreError> {
        if self.dice.as_mut().is_some_and(Dice::fails_read) {
            return Err(StoreError::Unavailable("injected".into()));
        }
        match consistency {
            Consistency::Serial => self.settle(partition),
            Consistency::Quorum => self.show_by_chance(partition),
        }
        Ok(())
    }

    /// The write in flight may become visible at any time.
    fn show_by_chance(&mut self, partition: &Partition) {
        let Some(held) = self.partitions.get_mut(&name(partition)) else { return };
        let Some(dice) = &mut self.dice else { return };
        let is_due = |flight: &mut Flight| flight.fate == Fate::ByChance && dice.flip() && dice.flip();
        if let Some(flight) = held.in_flight.take_if(is_due) {
            self.apply(flight.batch);
        }
    }

    fn injected_fault(&mut self, batch: &Batch) -> Option<Fault> {
        let mut struck = None;
        // Every predicate sees every write, as it may count them.
        self.injected.retain_mut(|(fits, fault)| {
            let is_hit = fits(batch);
            if is_hit {
                struck.get_or_insert(*fault);
            }
            !is_hit
        });
        struck
    }

    fn forget_if_empty(&mut self, partition: &Partition) {
        let name = name(partition);
        if self.partitions.get(&name).is_some_and(Held::is_empty) {
            self.partitions.remove(&name);
        }
    }
}

impl Held {
    fn new(partition: &Partition) -> Self {
        Self { rows: Rows::new(partition), in_flight: None }
    }

    /// It need not be kept.
    fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.in_flight.is_none()
    }
}

fn name(partition: &Partition) -> Name {
    (partition.table.0.name, partition.key.clone())
}

fn unknown() -> StoreError {
    StoreError::OutcomeUnknown("injected".into())
}
