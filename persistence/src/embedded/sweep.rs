//! Deletes of very large ranges, in bounded memory.
//!
//! The commit that deletes the range only notes its span and hides its rows: that is the delete, durable and atomic.
//! Then the rows are removed in pieces and the note last, so that a sweep interrupted by a crash resumes when the
//! directory is opened. The writer does nothing else during a sweep, so no row is written into the span.

use std::sync::Arc;

use bytes::Bytes;

use super::cells;
use super::disk::{Changes, CommitError, Disk};
use super::group::SWEEP_ROWS;
use super::keys::{self, Span};
use crate::error::StoreError;
use crate::table::{Column, Kind, Value};

const SPAN: [Column; 2] = [Column::new("from", Kind::Blob), Column::new("to", Kind::Blob)];

/// Commits the changes together with the deletion of the spans.
pub(super) fn commit(disk: &Disk, mut changes: Changes, spans: &[Span]) -> Result<(), CommitError> {
    for (number, span) in spans.iter().enumerate() {
        let cells = [span.from.clone(), span.to.clone()].map(|key| Value::Blob(Bytes::from(key)));
        changes.insert(note(number), Some(cells::encode(&cells)));
    }
    disk.commit_hiding(changes, spans.into())
}

/// Removes the rows of spans that were deleted by `commit`.
pub(super) fn finish(disk: &Disk, spans: &[Span]) -> Result<(), CommitError> {
    if spans.is_empty() {
        return Ok(());
    }
    for span in spans {
        remove(disk, span)?;
    }
    let notes = (0..spans.len()).map(|number| (note(number), None)).collect();
    disk.commit_hiding(notes, Arc::new([]))
}

/// Finishes sweeps that a crash interrupted. Called before any read.
pub(super) fn resume(disk: &Arc<Disk>) -> Result<(), StoreError> {
    let notes = Span { from: keys::SWEEPS.to_vec(), to: note(usize::MAX) };
    let mut spans = Vec::new();
    for entry in disk.view().range(&notes) {
        let (_, value) = entry?;
        let cells = cells::decode(&SPAN, &value);
        let Some([Value::Blob(from), Value::Blob(to)]) = cells.as_deref() else {
            return Err(StoreError::Corrupt("the note of an unfinished range delete".into()));
        };
        spans.push(Span { from: from.to_vec(), to: to.to_vec() });
    }
    finish(disk, &spans).map_err(|error| StoreError::Unavailable(format!("cannot finish a range delete: {error}")))
}

/// Removes the rows of one span. One iterator for all pieces: a new one would step over all tombstones so far.
fn remove(disk: &Disk, span: &Span) -> Result<(), CommitError> {
    let mut keys = disk.hidden_keys(span);
    loop {
        let piece: Changes = keys
            .by_ref()
            .take(SWEEP_ROWS)
            .map(|key| Ok((key?, None)))
            .collect::<Result<_, fjall::Error>>()
            .map_err(CommitError::NotApplied)?;
        if piece.is_empty() {
            return Ok(());
        }
        disk.commit_unsynced(piece)?;
    }
}

fn note(number: usize) -> Vec<u8> {
    [keys::SWEEPS, &(number as u64).to_be_bytes()].concat()
}

#[cfg(test)]
mod tests;
