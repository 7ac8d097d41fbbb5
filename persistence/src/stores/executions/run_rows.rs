//! Decodes the rows of one run into its state.

use proto::everrow::record;
use workflow::{ExecutionKey, ExecutionState};

use super::{ItemKind, place_of};
use crate::engine::Row;
use crate::stores::rows::{self, Decoded, Malformed};
use crate::table::Value;

/// The readable part of a damaged run.
#[derive(Debug)]
pub struct Salvaged {
    pub state: ExecutionState,
    /// Rows that do not decode. The next commit of the run deletes them.
    pub damaged: Vec<DamagedRow>,
}

/// A row that does not decode, by its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedRow(pub(super) Vec<Value>);

#[derive(Default)]
struct Read {
    state: Option<(i64, record::Run)>,
    parts: rows::run::Parts,
    newest_item: i64,
}

pub(super) fn decode(key: &ExecutionKey, rows: Vec<Row>) -> Decoded<ExecutionState> {
    let mut read = Read::default();
    for row in rows {
        read.take(row)?;
    }
    let (version, run) = rows::required(read.state, "the state row")?;
    if read.newest_item > version {
        let newest_item = read.newest_item;
        return Err(Malformed::new(format!("the state is of version {version}, an item of {newest_item}")));
    }
    rows::run::decode(key.clone(), version, run, read.parts)
}

/// Skips rows that do not decode, to end the run. Fails without its state and its start, which nothing replaces.
pub(super) fn salvage(key: &ExecutionKey, rows: Vec<Row>) -> Decoded<Salvaged> {
    let mut read = Read::default();
    let mut damaged = Vec::new();
    for row in rows {
        let place = DamagedRow(row.key.clone());
        if read.take(row).is_err() {
            damaged.push(place);
        }
    }
    let (version, run) = rows::required(read.state, "the state row")?;
    let state = rows::run::assemble(key.clone(), version.max(read.newest_item), run, read.parts)?;
    Ok(Salvaged { state, damaged })
}

impl Read {
    /// After an error nothing of the row is kept.
    fn take(&mut self, row: Row) -> Decoded<()> {
        let (sort_key, id) = place_of(&row)?;
        let (version, data) = rows::versioned(row.values)?;
        let parts = &mut self.parts;
        match ItemKind::from_sort_key(sort_key) {
            None => return Err(Malformed::new(format!("an item of unknown kind {sort_key}"))),
            Some(ItemKind::State) => self.state = Some((version, rows::from_value::<record::Run>(data)?)),
            Some(ItemKind::Started) => parts.started = Some(rows::started::decode(rows::from_value(data)?)?),
            Some(ItemKind::Activity) => {
                parts.activities.push((id, rows::items::decode_activity(id, rows::from_value(data)?)?));
            }
            Some(ItemKind::Timer) => parts.timers.push((id, rows::items::decode_timer(id, rows::from_value(data)?))),
            Some(ItemKind::SignalRequest) => {
                let requests: record::SignalRequests = rows::from_value(data)?;
                parts.signal_requests.extend((id..).zip(requests.request_ids));
            }
            Some(ItemKind::Child) => {
                parts.children.push((id, rows::items::decode_child(id, rows::from_value(data)?)?));
            }
            Some(ItemKind::ExternalSignal) => {
                parts.external_signals.push((id, rows::items::decode_external(id, rows::from_value(data)?)?));
            }
            Some(ItemKind::ExternalCancel) => {
                parts.external_cancels.push((id, rows::items::decode_external(id, rows::from_value(data)?)?));
            }
            Some(ItemKind::Properties) => parts.properties = rows::from_value(data)?,
            Some(ItemKind::BufferedEvent) => parts.buffered_events.push((id, rows::from_value(data)?)),
            Some(ItemKind::Update) => parts.updates.push((id, rows::items::decode_update(rows::from_value(data)?))),
        }
        self.newest_item = self.newest_item.max(version);
        Ok(())
    }
}
