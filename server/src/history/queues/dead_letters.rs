//! The dead-letter queue of a shard: queue tasks that cannot be done, and rows of its queues that do not decode. All
//! queues read through `read_page`.

use std::future::Future;

use cluster::errors::ServiceError;
use persistence::error::StoreError;
use persistence::stores::executions::{DamagedQueueRow, DeadLetter, QueuePage};
use persistence::stores::queues::{DEAD_LETTERS, QueueKey};
use tracing::error;

use crate::history::committer::Submission;
use crate::history::shard::Shard;
use crate::history::transact::TransactError;

/// Reads a page of a queue. Rows that do not decode are moved to the dead-letter queue first and the page is read
/// again, so that it has the tasks of all other rows.
pub(super) async fn read_page<T, F>(shard: &Shard, read: impl Fn() -> F) -> Result<QueuePage<T>, ServiceError>
where
    F: Future<Output = Result<QueuePage<T>, StoreError>>,
{
    loop {
        let page = read().await?;
        if page.damaged.is_empty() {
            return Ok(page);
        }
        quarantine(shard, page.damaged).await?;
    }
}

/// The rows are deleted once their dead letters are durable. A crash in between moves them once more.
async fn quarantine(shard: &Shard, damaged: Vec<DamagedQueueRow>) -> Result<(), ServiceError> {
    let mut rows = Vec::with_capacity(damaged.len());
    for row in damaged {
        rows.push(row.row());
        let (queue, sort_key, task_id, bytes) = (row.queue, row.sort_key, row.task_id, row.data.len());
        let (format, problem) = (row.format, row.problem.clone());
        enqueue(shard, &DeadLetter::Row(row)).await?;
        error!(
            shard = shard.id.0,
            ?queue,
            sort_key,
            task_id,
            format,
            bytes,
            problem,
            "queue row does not decode; moved to the shard's dead-letter queue, the queue goes on without its tasks"
        );
    }
    let permit = shard.committer.reserve().await.map_err(TransactError::from)?;
    let submitted = shard.committer.submit(permit, Submission { damaged: rows, ..Submission::default() });
    Ok(shard.committer.durable(submitted).await.map_err(TransactError::from)?)
}

/// Moves a task to the dead-letter queue for an operator, so that it does not block later tasks.
pub(super) async fn dead_letter_task(shard: &Shard, dead_letter: &DeadLetter) -> Result<(), ServiceError> {
    enqueue(shard, dead_letter).await?;
    error!(shard = shard.id.0, ?dead_letter, "queue task cannot be done; moved to the shard's dead-letter queue");
    Ok(())
}

async fn enqueue(shard: &Shard, dead_letter: &DeadLetter) -> Result<(), ServiceError> {
    let queue = QueueKey { queue_type: DEAD_LETTERS, name: format!("shard-{}", shard.id.0).into() };
    shard.stores.queues.create(&queue, shard.env.now()).await?;
    shard.stores.queues.enqueue(&queue, shard.env.new_uuid(), &[dead_letter.to_message()]).await?;
    Ok(())
}
