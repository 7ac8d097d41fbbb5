//! The wide-row contract on Cassandra and ScyllaDB: slices are SELECTs on one partition, batches are unlogged batches on
//! one partition, conditional ones a single Paxos round.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use persistence::engine::{
    Batch, Condition, Consistency, Continuation, Current, Engine, KeyRange, Outcome, Page, Partition, Row, Slice,
    Statics, TableRef,
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
use crate::session::{self, ConnectError};
use crate::statements::{RangeShape, Shape};

/// The most bytes of values that a batch may have.
pub const MAX_BATCH_BYTES: usize = 4 * 1024 * 1024;

/// The protocol counts the statements of a batch in 16 bits.
const MAX_BATCH_STATEMENTS: usize = u16::MAX as usize;

pub struct CqlEngine {
    session: Session,
    prepared: Prepared,
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

    async fn load_page(&self, slice: &Slice) -> Result<Page, StoreError> {
        let Some(range) = Range::of_slice(slice) else { return Ok(Page::default()) };
        let table = slice.partition.table;
        let shape = match slice.order {
            persistence::engine::Order::Ascending => Shape::Ascending(RangeShape::new(&range)),
            persistence::engine::Order::Descending => Shape::Descending(RangeShape::new(&range)),
        };
        let limit = Value::Int(i32::try_from(slice.limit).unwrap_or(i32::MAX));
        let step = Step::new(shape, plan::range_values(&slice.partition, &range).chain([&limit]));
        let rows = self.select(table, step, slice.consistency).await?;
        let rows = rows.into_iter().filter_map(|columns| cells::read_row(table.0, columns).transpose());
        let rows = rows.collect::<Result<Vec<Row>, _>>()?;
        let next = match rows.last() {
            Some(last) if rows.len() == slice.limit => Some(Continuation(last.key.clone())),
            _ => None,
        };
        Ok(Page { rows, next })
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
        let steps = plan::steps(batch);
        if steps.is_empty() {
            return Ok(Outcome::Applied);
        }
        check_size(&steps)?;
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
        Ok(self.load_page(&slice).await?.rows.pop())
    }
}

impl Engine for CqlEngine {
    fn statics(&self, partition: Partition, consistency: Consistency) -> BoxFuture<'_, Result<Statics, StoreError>> {
        async move { self.load_statics(&partition, consistency).await }.boxed()
    }

    fn read(&self, slice: Slice) -> BoxFuture<'_, Result<Page, StoreError>> {
        async move { self.load_page(&slice).await }.boxed()
    }

    fn write(&self, batch: Batch) -> BoxFuture<'_, Result<Outcome, StoreError>> {
        async move { self.apply(&batch).await }.boxed()
    }
}

fn check_size(steps: &[Step]) -> Result<(), StoreError> {
    let n_bytes: usize = steps.iter().flat_map(|step| &step.values).map(|value| value.0.size()).sum();
    if n_bytes > MAX_BATCH_BYTES || steps.len() > MAX_BATCH_STATEMENTS {
        let n_steps = steps.len();
        return Err(StoreError::Unavailable(format!(
            "a batch of {n_steps} statements and {n_bytes} bytes is too large"
        )));
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
