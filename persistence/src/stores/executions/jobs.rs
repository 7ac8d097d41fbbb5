//! Jobs: requested background work of a shard. Two rows each, so that a progress update does not rewrite the request.

use std::collections::BTreeMap;
use std::sync::Arc;

use prost::Message;
use proto::everrow::record;
use tracing::error;
use workflow::NamespaceId;

use super::ExecutionStore;
use super::commit::ROW_OVERHEAD;
use super::keys::{self, JobPart};
use crate::engine::{Batch, KeyRange, Row, Slice};
use crate::error::StoreError;
use crate::stores::rows::{self, Decoded, Malformed};
use crate::stores::shards::{self, ShardId};
use crate::table::Value;

/// Rows per read.
const PAGE: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobKey {
    pub namespace_id: NamespaceId,
    /// Unique within the namespace.
    pub job_id: Arc<str>,
}

/// A change of a job. The same job may appear several times in a commit.
#[derive(Debug, Clone)]
pub struct JobWrite {
    pub key: JobKey,
    /// Only for a new job.
    pub job: Option<Arc<record::Job>>,
    /// `None`: deletes the job.
    pub progress: Option<record::JobProgress>,
}

impl JobWrite {
    /// How many bytes it adds to a batch.
    #[must_use]
    pub fn size_estimate(&self) -> usize {
        let job = self.job.as_ref().map_or(0, |job| job.encoded_len());
        2 * (ROW_OVERHEAD + self.key.job_id.len()) + job + self.progress.as_ref().map_or(0, Message::encoded_len)
    }
}

impl ExecutionStore {
    /// Progress of each job of the shard. A job whose row is damaged is left out: it stays where it is, and no work is
    /// repeated.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn load_progress(&self, shard: ShardId) -> Result<BTreeMap<JobKey, record::JobProgress>, StoreError> {
        let mut slice = Slice::new(shards::partition(shard), keys::all_jobs(), PAGE);
        let mut jobs = BTreeMap::new();
        loop {
            let page = self.engine.read(slice.clone()).await?;
            for row in page.rows {
                let key = row.key.clone();
                match decode_progress(row) {
                    Ok(progress) => jobs.extend(progress),
                    Err(problem) => error!(%shard, ?key, %problem, "job row does not decode; the job does not run"),
                }
            }
            if page.next.is_none() {
                return Ok(jobs);
            }
            slice.after = page.next;
        }
    }

    /// A job as it was requested.
    ///
    /// # Errors
    /// `Corrupt` if its row does not decode.
    pub async fn load_job(&self, shard: ShardId, key: &JobKey) -> Result<Option<record::Job>, StoreError> {
        let range = KeyRange::prefix(keys::job(key.namespace_id, &key.job_id, JobPart::Job));
        let row = self.engine.read(Slice::new(shards::partition(shard), range, 1)).await?.rows.into_iter().next();
        row.map(|row| rows::versioned(row.values).and_then(|(_, data)| rows::from_value(data)))
            .transpose()
            .map_err(|bad| bad.at(format_args!("{shard}, job {}/{}", key.namespace_id, key.job_id)))
    }
}

fn decode_progress(row: Row) -> Decoded<Option<(JobKey, record::JobProgress)>> {
    let [_, Value::Uuid(namespace_id), Value::Text(job_id), _, Value::Bigint(part), _] = row.key.as_slice() else {
        return Err(Malformed::new("a row without all columns"));
    };
    if *part != JobPart::Progress as i64 {
        return Ok(None);
    }
    let key = JobKey { namespace_id: NamespaceId(*namespace_id), job_id: Arc::clone(job_id) };
    let (_, data) = rows::versioned(row.values)?;
    Ok(Some((key, rows::from_value(data)?)))
}

/// The last write of a job wins; the request is in its first.
pub(super) fn put_jobs(batch: &mut Batch, writes: &[JobWrite]) {
    let mut newest: BTreeMap<&JobKey, (Option<&Arc<record::Job>>, Option<&record::JobProgress>)> = BTreeMap::new();
    for JobWrite { key, job, progress } in writes {
        let merged = newest.entry(key).or_default();
        *merged = (job.as_ref().or(merged.0), progress.as_ref());
    }
    for (JobKey { namespace_id, job_id }, (job, progress)) in newest {
        let key = |part| keys::job(*namespace_id, job_id, part);
        let Some(progress) = progress else {
            batch.deletes.extend([key(JobPart::Progress), key(JobPart::Job)]);
            continue;
        };
        let put = |part, data| Row { key: key(part), values: vec![Value::Bigint(0), data] };
        batch.puts.push(put(JobPart::Progress, rows::to_value(progress)));
        batch.puts.extend(job.map(|job| put(JobPart::Job, rows::to_value(job.as_ref()))));
    }
}
