//! Sends statements, prepared once each, and reads the results.

use std::sync::Arc;

use persistence::engine::{Consistency, Partition, TableRef};
use persistence::error::StoreError;
use scylla::client::session::Session;
use scylla::policies::retry::{FallthroughRetryPolicy, RetryPolicy};
use scylla::response::query_result::QueryResult;
use scylla::statement::batch::{Batch as CqlBatch, BatchType};
use scylla::value::{CqlValue, Row as CqlRow};

use crate::cells::Bound;
use crate::classify::{self, RetryRefused, Write};
use crate::config::CqlConfig;
use crate::lanes::NodeId;
use crate::nodes::Nodes;
use crate::plan::Step;
use crate::prepared::Prepared;
use crate::session::{self, ConnectError};

/// Size limit of a batch request in bytes, values and framing together.
///
/// Tested on Cassandra 5.0 with default settings: batches of 15 MiB are applied, plain and conditional, although
/// `batch_size_fail_threshold` is 50 KiB (it applies to batches of several partitions). 16 MiB is refused by
/// `native_transport_max_frame_size`, which does no harm. But half of `commitlog_segment_size` is 16 MiB as well, and a
/// conditional batch refused by that limit is reported as of unknown outcome: so we refuse it first.
const REQUEST_BYTES_MAX: usize = 15 << 20;

/// Framing bytes of a statement of a batch (kind, id, count), and of a value (length).
const STATEMENT_OVERHEAD: usize = 21;
const VALUE_OVERHEAD: usize = 4;

/// The protocol counts the statements of a batch in 16 bits.
const MAX_BATCH_STATEMENTS: usize = u16::MAX as usize;

pub(crate) struct Requests {
    session: Session,
    prepared: Prepared,
    nodes: Nodes,
    serial_reads: scylla::statement::Consistency,
    /// For conditional writes: sent once, whatever the result.
    never_retry: Arc<dyn RetryPolicy>,
    retry_refused: Arc<dyn RetryPolicy>,
}

impl Requests {
    pub(crate) async fn connect(config: &CqlConfig) -> Result<Self, ConnectError> {
        Ok(Self {
            session: session::connect(config).await?,
            prepared: Prepared::default(),
            nodes: Nodes::new(config),
            serial_reads: session::serial_reads(config),
            never_retry: Arc::new(FallthroughRetryPolicy::new()),
            retry_refused: Arc::new(RetryRefused),
        })
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    pub(crate) async fn select(
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

    /// A replica of the partition, the same one while it is connected. `None` if none is known.
    pub(crate) fn node_of(&self, partition: &Partition) -> Option<NodeId> {
        self.nodes.first_of(&self.session.get_cluster_state(), partition)
    }

    /// Statements on one partition: all are applied, or none.
    pub(crate) async fn write(&self, steps: Vec<(TableRef, Step)>, kind: Write) -> Result<QueryResult, StoreError> {
        let (mut request, values) = self.batch(steps).await?;
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
        self.session.batch(&request, values).await.map_err(|error| classify::failed_write(&error, kind))
    }

    /// Independent plain statements on several partitions of one node.
    pub(crate) async fn write_to(&self, node: NodeId, steps: Vec<(TableRef, Step)>) -> Result<(), StoreError> {
        let (mut request, values) = self.batch(steps).await?;
        request.set_is_idempotent(true);
        request.set_retry_policy(Some(Arc::clone(&self.retry_refused)));
        request.set_load_balancing_policy(Some(self.nodes.towards(node)));
        let result = self.session.batch(&request, values).await;
        // Refused for one partition, it may have been applied to those before it.
        result.map(drop).map_err(|error| StoreError::OutcomeUnknown(error.to_string()))
    }

    /// Unlogged: a batch of one partition is atomic without a batch log, and one of several need not be.
    async fn batch(&self, steps: Vec<(TableRef, Step)>) -> Result<(CqlBatch, Vec<Vec<Bound>>), StoreError> {
        check_size(&steps)?;
        let mut request = CqlBatch::new(BatchType::Unlogged);
        let mut values = Vec::with_capacity(steps.len());
        for (table, step) in steps {
            request.append_statement(self.prepared.get(&self.session, table, step.shape).await?);
            values.push(step.values);
        }
        Ok((request, values))
    }
}

fn check_size(steps: &[(TableRef, Step)]) -> Result<(), StoreError> {
    let values = steps.iter().flat_map(|(_, step)| &step.values);
    let n_value_bytes: usize = values.map(|value| value.0.size() + VALUE_OVERHEAD).sum();
    let n_bytes = n_value_bytes + steps.len() * STATEMENT_OVERHEAD;
    if n_bytes > REQUEST_BYTES_MAX || steps.len() > MAX_BATCH_STATEMENTS {
        let n_steps = steps.len();
        let too_large = format!("a batch of {n_steps} statements and {n_bytes} bytes is too large for a request");
        return Err(StoreError::TooLarge(too_large));
    }
    Ok(())
}
