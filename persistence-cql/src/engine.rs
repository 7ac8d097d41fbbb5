//! The wide-row contract on Cassandra and ScyllaDB: slices are SELECTs on one partition, batches are unlogged batches on
//! one partition, conditional ones a single Paxos round.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use persistence::engine::{
    Batch, Condition, Consistency, Continuation, Current, Engine, KeyRange, Order, Outcome, PAGE_BYTES, Page,
    Partition, Row, Slice, Statics, TableRef,
};
use persistence::error::StoreError;
use persistence::table::Value;
use scylla::client::session::Session;
use scylla::policies::retry::{FallthroughRetryPolicy, RetryPolicy};
use scylla::response::query_result::QueryResult;
use scylla::statement::batch::{Batch as CqlBatch, BatchType};
use scylla::statement::prepared::PreparedStatement;
use scylla::value::{CqlValue, Row as CqlRow};

use crate::cells::{self, Bound};
use crate::classify::{self, RetryRefused, Write};
use crate::config::CqlConfig;
use crate::plan::{self, Step};
use crate::prepared::Prepared;
use crate::range::Range;
use crate::row_sizes::RowSizes;
use crate::session::{self, ConnectError};
use crate::statements::{RangeShape, Shape};

/// The most bytes that a request for a batch may have, values and framing together.
///
/// Tried on Cassandra 5.0 as it is delivered: batches of 15 MiB are applied, plain and conditional, although
/// `batch_size_fail_threshold` says 50 KiB (it is for batches of several partitions). 16 MiB is refused by
/// `native_transport_max_frame_size`, which does no harm. But half of `commitlog_segment_size` is 16 MiB as well, and
/// what that refuses within a conditional batch is reported as a failure of unknown outcome: so we refuse before it.
const REQUEST_BYTES_MAX: usize = 15 << 20;

/// What a statement of a batch takes beside its values (kind, id, count), and a value beside its bytes (length).
const STATEMENT_OVERHEAD: usize = 21;
const VALUE_OVERHEAD: usize = 4;

/// The protocol counts the statements of a batch in 16 bits.
const MAX_BATCH_STATEMENTS: usize = u16::MAX as usize;

pub struct CqlEngine {
    session: Session,
    prepared: Prepared,
    row_sizes: RowSizes,
    serial_reads: scylla::statement::Consistency,
    /// For conditional writes: sent once, whatever comes back.
    never_retry: Arc<dyn RetryPolicy>,
    retry_refused: Arc<dyn RetryPolicy>,
}

impl CqlEngine {
    pub async fn connect(config: &CqlConfig) -> Result<Self, ConnectError> {
        Ok(Self {
            session: session::connect(config).await?,
            prepared: Prepared::default(),
            row_sizes: RowSizes::default(),
            serial_reads: session::serial_reads(config),
            never_retry: Arc::new(FallthroughRetryPolicy::new()),
            retry_refused: Arc::new(RetryRefused),
        })
    }

    /// For the schema, which has statements of its own.
    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    async fn load_statics(&self, partition: &Partition, consistency: Consistency) -> Result<Statics, StoreError> {
        let table = partition.table;
        if table.0.statics.is_empty() {
            return Ok(Vec::new());
        }
        let step = Step::new(Shape::Statics, &partition.key);
        let rows = self.select(table, step, consistency).await?;
        match rows.into_iter().next() {
            None => Ok(vec![None; table.0.statics.len()]),
            Some(columns) => cells::read_statics(table.0, columns),
        }
    }

    /// Asks for rows until the limit, or the bytes of a page, are reached. Mostly that is once.
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
            let n_loaded = rows.len();
            let n_bytes_before = n_bytes;
            for row in rows {
                if page.rows.len() == slice.limit || n_bytes >= PAGE_BYTES {
                    break;
                }
                n_bytes += row.key.iter().chain(&row.values).map(Value::size).sum::<usize>();
                page.rows.push(row);
            }
            self.row_sizes.observe(table, n_loaded, n_bytes - n_bytes_before);
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
        let rows = self.select(table, step, slice.consistency).await?;
        rows.into_iter().filter_map(|columns| cells::read_row(table.0, columns).transpose()).collect()
    }

    async fn select(
        &self,
        table: TableRef,
        step: Step,
        consistency: Consistency,
    ) -> Result<Vec<Vec<Option<CqlValue>>>, StoreError> {
        let mut statement = self.prepared.get(&self.session, table, step.shape).await?;
        match consistency {
            Consistency::Quorum => {}
            Consistency::Serial => statement.set_consistency(self.serial_reads),
        }
        let result = self.session.execute_unpaged(&statement, step.values).await.map_err(classify::failed_read)?;
        let result = result.into_rows_result().map_err(classify::failed_read)?;
        let rows = result.rows::<CqlRow>().map_err(classify::failed_read)?;
        rows.map(|row| row.map(|row| row.columns)).collect::<Result<_, _>>().map_err(classify::failed_read)
    }

    async fn apply(&self, batch: &Batch) -> Result<Outcome, StoreError> {
        batch.check();
        batch.check_size()?;
        let Some(steps) = plan::steps(batch) else {
            return Ok(Outcome::Refused(self.load_current(batch).await?));
        };
        if steps.is_empty() {
            return Ok(Outcome::Applied);
        }
        check_request(&steps)?;
        let kind = if batch.is_conditional() { Write::Conditional } else { Write::Plain };
        let (statements, values) = self.prepare(batch.partition.table, steps).await?;
        let request = self.request(statements, kind);
        let result =
            self.session.batch(&request, values).await.map_err(|error| classify::failed_write(&error, kind))?;
        match kind {
            Write::Plain => Ok(Outcome::Applied),
            Write::Conditional if is_applied(result)? => Ok(Outcome::Applied),
            Write::Conditional => Ok(Outcome::Refused(self.load_current(batch).await?)),
        }
    }

    async fn prepare(
        &self,
        table: TableRef,
        steps: Vec<Step>,
    ) -> Result<(Vec<PreparedStatement>, Vec<Vec<Bound>>), StoreError> {
        let mut statements = Vec::with_capacity(steps.len());
        let mut values = Vec::with_capacity(steps.len());
        for step in steps {
            statements.push(self.prepared.get(&self.session, table, step.shape).await?);
            values.push(step.values);
        }
        Ok((statements, values))
    }

    fn request(&self, statements: Vec<PreparedStatement>, kind: Write) -> CqlBatch {
        // Unlogged, because a single partition needs no batch log to be atomic.
        let mut request = CqlBatch::new(BatchType::Unlogged);
        for statement in statements {
            request.append_statement(statement);
        }
        match kind {
            Write::Plain => {
                request.set_is_idempotent(true);
                request.set_retry_policy(Some(Arc::clone(&self.retry_refused)));
            }
            Write::Conditional => {
                request.set_is_idempotent(false);
                request.set_retry_policy(Some(Arc::clone(&self.never_retry)));
            }
        }
        request
    }

    /// What the conditions of a refused batch are about. Read anew: Cassandra and ScyllaDB return different rows with a
    /// refusal, in a different order.
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
        async move { self.apply(&batch).await }.boxed()
    }
}

fn check_request(steps: &[Step]) -> Result<(), StoreError> {
    let values = steps.iter().flat_map(|step| &step.values);
    let n_value_bytes: usize = values.map(|value| value.0.size() + VALUE_OVERHEAD).sum();
    let n_bytes = n_value_bytes + steps.len() * STATEMENT_OVERHEAD;
    if n_bytes > REQUEST_BYTES_MAX || steps.len() > MAX_BATCH_STATEMENTS {
        let n_steps = steps.len();
        let too_large = format!("a batch of {n_steps} statements and {n_bytes} bytes is too large for a request");
        return Err(StoreError::TooLarge(too_large));
    }
    Ok(())
}

/// The first column of the first row says it; further rows are the database's own affair.
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
