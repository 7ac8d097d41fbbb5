//! The wide-row contract on Cassandra and ScyllaDB: slices are SELECTs on one partition, batches are unlogged batches
//! on one partition, conditional ones a single Paxos round. `shared` coalesces small plain ones.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use persistence::engine::{
    Batch, Condition, Consistency, Continuation, Current, Engine, KeyRange, Order, Outcome, PAGE_BYTES, Page,
    Partition, Row, Slice, Statics,
};
use persistence::error::StoreError;
use persistence::table::Value;
use scylla::client::session::Session;
use scylla::response::query_result::QueryResult;
use scylla::value::Row as CqlRow;

use crate::cells;
use crate::classify::Write;
use crate::config::CqlConfig;
use crate::lanes;
use crate::plan::{self, Step};
use crate::range::Range;
use crate::requests::Requests;
use crate::row_sizes::RowSizes;
use crate::session::ConnectError;
use crate::shared::Shared;
use crate::statements::{RangeShape, Shape};

pub struct CqlEngine {
    requests: Arc<Requests>,
    shared: Shared,
    row_sizes: RowSizes,
}

impl CqlEngine {
    pub async fn connect(config: &CqlConfig) -> Result<Self, ConnectError> {
        let requests = Arc::new(Requests::connect(config).await?);
        Ok(Self { shared: Shared::new(Arc::clone(&requests)), requests, row_sizes: RowSizes::default() })
    }

    /// For the schema, which has statements of its own.
    pub(crate) fn session(&self) -> &Session {
        self.requests.session()
    }

    async fn load_statics(&self, partition: &Partition, consistency: Consistency) -> Result<Statics, StoreError> {
        let table = partition.table;
        if table.0.statics.is_empty() {
            return Ok(Vec::new());
        }
        let step = Step::new(Shape::Statics, &partition.key);
        let rows = self.requests.select(table, step, consistency).await?;
        match rows.into_iter().next() {
            None => Ok(vec![None; table.0.statics.len()]),
            Some(columns) => cells::read_statics(table.0, columns),
        }
    }

    /// Reads rows until the limit or `PAGE_BYTES` is reached, mostly with one request.
    async fn load_page(&self, mut slice: Slice) -> Result<Page, StoreError> {
        let table = slice.partition.table;
        let mut page = Page::default();
        if slice.is_beyond_keys() {
            return Ok(page);
        }
        let mut n_bytes = 0;
        loop {
            let wanted = self.row_sizes.rows_for(table, PAGE_BYTES - n_bytes, slice.limit - page.rows.len());
            let rows = self.load_rows(&slice, wanted).await?;
            let (n_loaded, mut n_loaded_bytes) = (rows.len(), 0);
            for row in rows {
                let size = row.key.iter().chain(&row.values).map(Value::size).sum::<usize>();
                // Rows beyond the page are observed too, or every page of large rows would load as many in excess.
                n_loaded_bytes += size;
                if page.rows.len() < slice.limit && n_bytes < PAGE_BYTES {
                    n_bytes += size;
                    page.rows.push(row);
                }
            }
            self.row_sizes.observe(table, n_loaded, n_loaded_bytes);
            let last = page.rows.last().map(|row| Continuation(row.key.clone()));
            if page.rows.len() == slice.limit || n_bytes >= PAGE_BYTES {
                page.next = last;
                return Ok(page);
            }
            if n_loaded < wanted {
                return Ok(page);
            }
            slice.after = last;
        }
    }

    async fn load_rows(&self, slice: &Slice, limit: usize) -> Result<Vec<Row>, StoreError> {
        let Some(range) = Range::of_slice(slice) else { return Ok(Vec::new()) };
        let table = slice.partition.table;
        let shape = match slice.order {
            Order::Ascending => Shape::Ascending(RangeShape::new(&range)),
            Order::Descending => Shape::Descending(RangeShape::new(&range)),
        };
        let limit = Value::Int(i32::try_from(limit).unwrap_or(i32::MAX));
        let step = Step::new(shape, plan::range_values(&slice.partition, &range).chain([&limit]));
        let rows = self.requests.select(table, step, slice.consistency).await?;
        rows.into_iter().filter_map(|columns| cells::read_row(table.0, columns).transpose()).collect()
    }

    async fn apply(&self, batch: Batch) -> Result<Outcome, StoreError> {
        batch.check();
        batch.check_size()?;
        if lanes::may_share(&batch) {
            return self.shared.write(batch).await.map(|()| Outcome::Applied);
        }
        let Some(steps) = plan::steps(&batch) else {
            return Ok(Outcome::Refused(self.load_current(&batch).await?));
        };
        if steps.is_empty() {
            return Ok(Outcome::Applied);
        }
        let kind = if batch.is_conditional() { Write::Conditional } else { Write::Plain };
        let steps = steps.into_iter().map(|step| (batch.partition.table, step)).collect();
        let result = self.requests.write(steps, kind).await?;
        match kind {
            Write::Plain => Ok(Outcome::Applied),
            Write::Conditional if is_applied(result)? => Ok(Outcome::Applied),
            Write::Conditional => Ok(Outcome::Refused(self.load_current(&batch).await?)),
        }
    }

    /// Current values of the conditions of a refused batch. Read again: Cassandra and ScyllaDB return different rows
    /// with a refusal, in a different order.
    async fn load_current(&self, batch: &Batch) -> Result<Vec<Current>, StoreError> {
        let partition = &batch.partition;
        let names_static = |condition: &Condition| matches!(condition, Condition::Static { .. });
        let statics = if batch.conditions.iter().any(names_static) {
            self.load_statics(partition, Consistency::Serial).await?
        } else {
            Vec::new()
        };
        let mut current = Vec::with_capacity(batch.conditions.len());
        for condition in &batch.conditions {
            current.push(match condition {
                Condition::Static { column, .. } => Current::Static(statics[*column].clone()),
                Condition::Absent { key } | Condition::Value { key, .. } => {
                    Current::Row(self.load_row(partition, key).await?)
                }
            });
        }
        Ok(current)
    }

    async fn load_row(&self, partition: &Partition, key: &[Value]) -> Result<Option<Row>, StoreError> {
        let mut slice = Slice::new(partition.clone(), KeyRange::prefix(key.to_vec()), 1);
        slice.consistency = Consistency::Serial;
        Ok(self.load_rows(&slice, 1).await?.pop())
    }
}

impl Engine for CqlEngine {
    fn statics(&self, partition: Partition, consistency: Consistency) -> BoxFuture<'_, Result<Statics, StoreError>> {
        async move { self.load_statics(&partition, consistency).await }.boxed()
    }

    fn read(&self, slice: Slice) -> BoxFuture<'_, Result<Page, StoreError>> {
        self.load_page(slice).boxed()
    }

    fn write(&self, batch: Batch) -> BoxFuture<'_, Result<Outcome, StoreError>> {
        self.apply(batch).boxed()
    }
}

/// Reads the first column of the first row; further rows differ between databases.
fn is_applied(result: QueryResult) -> Result<bool, StoreError> {
    let read = || -> Option<bool> {
        let rows = result.into_rows_result().ok()?;
        let first = rows.first_row::<CqlRow>().ok()?;
        first.columns.first()?.as_ref()?.as_boolean()
    };
    read().ok_or_else(|| {
        StoreError::OutcomeUnknown("the answer to a conditional batch does not say if it was applied".to_owned())
    })
}
