//! The row of a shard's last closed runs.

use proto::everrow::record;
use uuid::Uuid;
use workflow::RunId;

use super::{Decoded, Malformed};

const RUN_ID_BYTES: usize = 16;

pub(crate) fn encode(run_ids: &[RunId]) -> record::ClosedRuns {
    let bytes: Vec<u8> = run_ids.iter().flat_map(|run_id| *run_id.0.as_bytes()).collect();
    record::ClosedRuns { run_ids: bytes.into() }
}

pub(crate) fn decode(closed: &record::ClosedRuns) -> Decoded<Vec<RunId>> {
    let (run_ids, rest) = closed.run_ids.as_chunks::<RUN_ID_BYTES>();
    if !rest.is_empty() {
        return Err(Malformed::new(format!("run ids of {} bytes", closed.run_ids.len())));
    }
    Ok(run_ids.iter().map(|bytes| RunId(Uuid::from_bytes(*bytes))).collect())
}
