//! Nexus endpoints. All are one partition with one table version, so that a new name that was checked against all
//! endpoints is still unique when the endpoint is written.

use std::sync::Arc;

use proto::everrow::record;
use tracing::error;
use uuid::Uuid;

use crate::engine::{Batch, Condition, Consistency, Continuation, Engine, KeyRange, Outcome, Partition, Row, Slice};
use crate::error::StoreError;
use crate::stores::rows::{self, Decoded, Malformed};
use crate::table::Value;
use crate::tables::NEXUS_ENDPOINTS;

/// Index of the static column.
const TABLE_VERSION: usize = 0;
/// Index of the value column that conditions compare.
const VERSION: usize = 0;

#[derive(Debug, Clone, PartialEq)]
pub struct StoredEndpoint {
    pub id: Uuid,
    /// Counts its changes, from 1.
    pub version: i64,
    pub record: record::NexusEndpoint,
}

#[derive(Debug, Clone, PartialEq)]
pub struct EndpointPage {
    /// Read before the page: the endpoints may be newer, never older.
    pub table_version: i64,
    pub endpoints: Vec<StoredEndpoint>,
    /// There may be more after the last endpoint.
    pub has_more: bool,
}

#[derive(Clone)]
pub struct NexusEndpointStore {
    engine: Arc<dyn Engine>,
}

impl NexusEndpointStore {
    pub(super) fn new(engine: Arc<dyn Engine>) -> Self {
        Self { engine }
    }

    /// Counts all changes of all endpoints; zero if there was none.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn table_version(&self) -> Result<i64, StoreError> {
        // Serial, because it becomes a condition: a stale value would be refused.
        let statics = self.engine.statics(partition(), Consistency::Serial).await?;
        let version = statics.into_iter().next().flatten();
        let version = rows::optional_bigint(version, "table_version").map_err(|bad| bad.at("nexus endpoints"))?;
        Ok(version.unwrap_or(0))
    }

    /// # Errors
    /// `Corrupt` if its record does not decode.
    pub async fn get(&self, id: Uuid) -> Result<Option<StoredEndpoint>, StoreError> {
        let range = KeyRange::prefix(vec![Value::Uuid(id)]);
        let row = self.engine.read(Slice::new(partition(), range, 1)).await?.rows.into_iter().next();
        row.map(decode).transpose().map_err(|bad| bad.at(format_args!("nexus endpoint {id}")))
    }

    /// Endpoints after this one, by id. One whose record is damaged is left out.
    ///
    /// # Errors
    /// `Corrupt` if the version of the table does not decode.
    pub async fn list(&self, after: Option<Uuid>, limit: usize) -> Result<EndpointPage, StoreError> {
        let table_version = self.table_version().await?;
        let mut slice = Slice::new(partition(), KeyRange::all(), limit);
        slice.after = after.map(|id| Continuation(vec![Value::Uuid(id)]));
        let page = self.engine.read(slice).await?;
        let endpoints = page.rows.into_iter().filter_map(|row| {
            let key = row.key.clone();
            let decoded = decode(row);
            decoded.inspect_err(|problem| error!(?key, %problem, "endpoint row does not decode; it is not listed")).ok()
        });
        Ok(EndpointPage { table_version, endpoints: endpoints.collect(), has_more: page.next.is_some() })
    }

    /// Creates an endpoint. `table_version` is the one at which the caller validated it.
    ///
    /// # Errors
    /// `Refused` if any endpoint was changed since, or this one exists.
    pub async fn create(
        &self,
        table_version: i64,
        id: Uuid,
        record: record::NexusEndpoint,
    ) -> Result<StoredEndpoint, StoreError> {
        let endpoint = StoredEndpoint { id, version: 1, record };
        let mut batch = change(table_version);
        batch.conditions.push(Condition::Absent { key: vec![Value::Uuid(id)] });
        batch.puts.push(endpoint.row());
        self.write(batch).await?;
        Ok(endpoint)
    }

    /// Replaces an endpoint's record.
    ///
    /// # Errors
    /// `Refused` if any endpoint was changed since, or this one is no longer at this version.
    pub async fn update(
        &self,
        table_version: i64,
        id: Uuid,
        version: i64,
        record: record::NexusEndpoint,
    ) -> Result<StoredEndpoint, StoreError> {
        let endpoint = StoredEndpoint { id, version: version + 1, record };
        let mut batch = change(table_version);
        batch.conditions.push(at_version(id, version));
        batch.puts.push(endpoint.row());
        self.write(batch).await?;
        Ok(endpoint)
    }

    /// # Errors
    /// `Refused` if any endpoint was changed since, or this one is no longer at this version.
    pub async fn delete(&self, table_version: i64, id: Uuid, version: i64) -> Result<(), StoreError> {
        let mut batch = change(table_version);
        batch.conditions.push(at_version(id, version));
        batch.deletes.push(vec![Value::Uuid(id)]);
        self.write(batch).await
    }

    async fn write(&self, batch: Batch) -> Result<(), StoreError> {
        match self.engine.write(batch).await? {
            Outcome::Applied => Ok(()),
            Outcome::Refused(_) => Err(StoreError::Refused("nexus endpoints were changed by others".to_owned())),
        }
    }
}

impl StoredEndpoint {
    fn row(&self) -> Row {
        let values = vec![Value::Bigint(self.version), rows::to_value(&self.record)];
        Row { key: vec![Value::Uuid(self.id)], values }
    }
}

/// A batch that increments the table version, if it is still this one.
fn change(table_version: i64) -> Batch {
    let mut batch = Batch::new(partition());
    let equals = (table_version > 0).then_some(Value::Bigint(table_version));
    batch.conditions.push(Condition::Static { column: TABLE_VERSION, equals });
    batch.statics.push((TABLE_VERSION, Value::Bigint(table_version + 1)));
    batch
}

fn at_version(id: Uuid, version: i64) -> Condition {
    Condition::Value { key: vec![Value::Uuid(id)], column: VERSION, equals: Value::Bigint(version) }
}

fn decode(row: Row) -> Decoded<StoredEndpoint> {
    let Some(Value::Uuid(id)) = row.key.first() else { return Err(Malformed::new("a row without an id")) };
    let id = *id;
    let (version, data) = rows::versioned(row.values)?;
    Ok(StoredEndpoint { id, version, record: rows::from_value(data)? })
}

fn partition() -> Partition {
    Partition::new(&NEXUS_ENDPOINTS, vec![Value::Int(0)])
}
