//! Reading: static columns, single rows and pages, from one view.
//!
//! A single key takes microseconds (2 to 10 measured, with tables), less than a handover to another thread (6 to 20),
//! so it is read on the caller's thread. A page may have to step over any number of tombstones (0.5 s for 200 000), so
//! it is read on a thread that may block.

use super::cells;
use super::disk::View;
use super::keys;
use crate::engine::{Continuation, KeyRange, Order, PAGE_BYTES, Page, Partition, Row, Slice, Statics};
use crate::error::StoreError;
use crate::table::Value;

pub(super) fn statics(view: &View, partition: &Partition) -> Result<Statics, StoreError> {
    let columns = partition.table.0.statics;
    let column = |place: usize| -> Result<Option<Value>, StoreError> {
        let Some(bytes) = view.get(&keys::static_column(partition, place))? else { return Ok(None) };
        let values = cells::decode(&columns[place..=place], &bytes).ok_or_else(|| corrupt(partition))?;
        Ok(values.into_iter().next())
    };
    (0..columns.len()).map(column).collect()
}

/// The only row that a slice can have, if its range is a whole key.
pub(super) fn single_key(slice: &Slice) -> Option<&[Value]> {
    let KeyRange { lower: std::ops::Bound::Included(lower), upper: std::ops::Bound::Included(upper) } = &slice.range
    else {
        return None;
    };
    let is_whole = lower == upper && lower.len() == slice.partition.table.0.clustering.len();
    (is_whole && slice.after.is_none()).then_some(lower)
}

/// A point read, without the iterator over all levels that a page needs.
pub(super) fn single_row(view: &View, partition: &Partition, key: &[Value]) -> Result<Page, StoreError> {
    let Some(bytes) = view.get(&keys::row(partition, key))? else { return Ok(Page::default()) };
    let values = cells::decode(partition.table.0.values, &bytes).ok_or_else(|| corrupt(partition))?;
    Ok(Page { rows: vec![Row { key: key.to_vec(), values }], next: None })
}

pub(super) fn page(view: &View, slice: &Slice) -> Result<Page, StoreError> {
    let mut span = keys::span(&slice.partition, &slice.range);
    if let Some(after) = &slice.after {
        span = span.continued(&slice.partition, after, slice.order);
    }
    let entries = view.range(&span);
    match slice.order {
        Order::Ascending => collect(entries, slice),
        Order::Descending => collect(entries.rev(), slice),
    }
}

fn collect(
    entries: impl Iterator<Item = Result<fjall::KvPair, StoreError>>,
    slice: &Slice,
) -> Result<Page, StoreError> {
    let partition = &slice.partition;
    let columns = partition.table.0.clustering;
    let prefix = keys::rows_prefix(partition);
    let mut page = Page::default();
    let mut bytes = 0;
    for entry in entries {
        let (key, value) = entry?;
        let key = key.strip_prefix(prefix.as_slice()).and_then(|key| keys::clustering(columns, key));
        let key = key.ok_or_else(|| corrupt(partition))?;
        let values = cells::decode(partition.table.0.values, &value).ok_or_else(|| corrupt(partition))?;
        bytes += value.len();
        page.rows.push(Row { key, values });
        if page.rows.len() == slice.limit || bytes >= PAGE_BYTES {
            page.next = page.rows.last().map(|row| Continuation(row.key.clone()));
            break;
        }
    }
    Ok(page)
}

fn corrupt(partition: &Partition) -> StoreError {
    StoreError::Corrupt(format!("a row of {} {:?}", partition.table.0.name, partition.key))
}
