//! Namespaces, by id and by name. Both rows and the notification version are one partition, so they change together.
//!
//! The notification version counts all changes of all namespaces; a namespace has the one of its last change as its
//! version.

use std::sync::Arc;

use bytes::Bytes;
use proto::everrow::record;
use tracing::error;
use uuid::Uuid;
use workflow::NamespaceId;

use crate::engine::{
    Batch, Condition, Consistency, Continuation, Current, Engine, KeyRange, Outcome, Partition, Row, Slice,
};
use crate::error::StoreError;
use crate::stores::rows::{self, Decoded, Malformed};
use crate::table::Value;
use crate::tables::NAMESPACES;

/// Index of the static column.
const NOTIFICATION_VERSION: usize = 0;
/// Index of the value column that conditions compare.
const VERSION: usize = 0;

/// Attempts of a change while other namespaces change concurrently.
const TRIES: usize = 10;

/// Kind of a row: the first clustering column. The numbers are stored.
#[derive(Clone, Copy)]
enum RowKind {
    ById = 1,
    ByName = 2,
}

#[derive(Debug, Clone, PartialEq)]
pub struct StoredNamespace {
    pub id: NamespaceId,
    /// The notification version of its last change.
    pub version: i64,
    pub record: record::Namespace,
}

#[derive(Clone)]
pub struct NamespaceStore {
    engine: Arc<dyn Engine>,
}

impl NamespaceStore {
    pub(super) fn new(engine: Arc<dyn Engine>) -> Self {
        Self { engine }
    }

    /// Creates a namespace. `id` is new: it identifies this call's write after an unknown outcome.
    ///
    /// # Errors
    /// `Refused` only if a namespace has this name or id, or this one is already deleted.
    pub async fn create(&self, id: NamespaceId, record: record::Namespace) -> Result<StoredNamespace, StoreError> {
        let mut failure = contended();
        for _ in 0..TRIES {
            let version = self.notification_version().await?;
            let created = StoredNamespace { id, version: version + 1, record: record.clone() };
            let mut batch = change(version);
            let (by_id, by_name) = (created.id_row(), created.name_row());
            batch.conditions.push(Condition::Absent { key: by_id.key.clone() });
            batch.conditions.push(Condition::Absent { key: by_name.key.clone() });
            batch.puts.extend([by_id, by_name]);
            match self.engine.write(batch).await {
                Ok(Outcome::Applied) => return Ok(created),
                Ok(Outcome::Refused(current)) => match holder_of_name(&current)? {
                    Some(holder) if holder == id => return self.created(id).await,
                    Some(_) => return Err(StoreError::Refused(format!("namespace {} exists", record.name))),
                    None if self.get_by_id(id).await?.is_some() => {
                        return Err(StoreError::Refused(format!("namespace {id} exists")));
                    }
                    None => failure = contended(),
                },
                Err(error @ StoreError::OutcomeUnknown(_)) => failure = error,
                Err(error) => return Err(error),
            }
        }
        Err(failure)
    }

    /// # Errors
    /// `Corrupt` if its record does not decode.
    pub async fn get_by_id(&self, id: NamespaceId) -> Result<Option<StoredNamespace>, StoreError> {
        let row = self.row(id_key(id)).await?;
        row.map(StoredNamespace::decode).transpose().map_err(|bad| bad.at(format_args!("namespace {id}")))
    }

    /// # Errors
    /// `Corrupt` if its record does not decode.
    pub async fn get_by_name(&self, name: &str) -> Result<Option<StoredNamespace>, StoreError> {
        let Some(row) = self.row(name_key(name)).await? else { return Ok(None) };
        let id = decode_name_row(&row).map_err(|bad| bad.at(format_args!("namespace {name}")))?;
        // It may be renamed between the two reads: then no namespace has this name.
        Ok(self.get_by_id(id).await?.filter(|found| found.record.name == name))
    }

    /// A page of all namespaces in the order of their ids, and the token of the next page: empty if there is none.
    /// One whose record is damaged is left out.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn list(&self, limit: usize, token: &[u8]) -> Result<(Vec<StoredNamespace>, Bytes), StoreError> {
        let range = KeyRange::prefix(vec![Value::Int(RowKind::ById as i32)]);
        let mut slice = Slice::new(partition(), range, limit);
        if !token.is_empty() {
            // A token that we did not make is a position like any other.
            let place = String::from_utf8_lossy(token).into_owned();
            slice.after = Some(Continuation(vec![Value::Int(RowKind::ById as i32), Value::Text(place.into())]));
        }
        let page = self.engine.read(slice).await?;
        let next = match page.next.map(|Continuation(key)| key).as_deref() {
            Some([_, Value::Text(place)]) => Bytes::copy_from_slice(place.as_bytes()),
            Some(_) | None => Bytes::new(),
        };
        let namespaces = page.rows.into_iter().filter_map(|row| {
            let key = row.key.clone();
            let decoded = StoredNamespace::decode(row);
            decoded
                .inspect_err(|problem| error!(?key, %problem, "namespace row does not decode; it is not listed"))
                .ok()
        });
        Ok((namespaces.collect(), next))
    }

    /// Replaces a namespace's record, and its name if that changed.
    ///
    /// # Errors
    /// `Refused` if it is no longer at this version, is gone, or the new name is taken.
    pub async fn update(
        &self,
        id: NamespaceId,
        version: i64,
        record: record::Namespace,
    ) -> Result<StoredNamespace, StoreError> {
        for _ in 0..TRIES {
            let stored = self.at_version(id, version).await?;
            let notification_version = self.notification_version().await?;
            let updated = StoredNamespace { id, version: notification_version + 1, record: record.clone() };
            let mut batch = change(notification_version);
            batch.conditions.push(stored.unchanged());
            batch.puts.push(updated.id_row());
            if stored.record.name != record.name {
                let by_name = updated.name_row();
                batch.conditions.push(Condition::Absent { key: by_name.key.clone() });
                batch.puts.push(by_name);
                batch.deletes.push(name_key(&stored.record.name));
            }
            match self.engine.write(batch).await? {
                Outcome::Applied => return Ok(updated),
                Outcome::Refused(current) => {
                    if holder_of_name(&current)?.is_some() {
                        return Err(StoreError::Refused(format!("namespace {} exists", record.name)));
                    }
                }
            }
        }
        Err(contended())
    }

    /// Deletes a namespace. Idempotent.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn delete(&self, id: NamespaceId) -> Result<(), StoreError> {
        for _ in 0..TRIES {
            let Some(stored) = self.get_by_id(id).await? else { return Ok(()) };
            let mut batch = change(self.notification_version().await?);
            batch.conditions.push(stored.unchanged());
            batch.deletes.extend([id_key(id), name_key(&stored.record.name)]);
            if self.engine.write(batch).await? == Outcome::Applied {
                return Ok(());
            }
        }
        Err(contended())
    }

    /// Counts all changes of all namespaces: a reader at this version has seen them all.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn notification_version(&self) -> Result<i64, StoreError> {
        // Serial, because it becomes a condition: a stale value would be refused.
        let statics = self.engine.statics(partition(), Consistency::Serial).await?;
        let version = statics.into_iter().next().flatten();
        let version = rows::optional_bigint(version, "notification_version").map_err(|bad| bad.at("namespaces"))?;
        Ok(version.unwrap_or(0))
    }

    async fn at_version(&self, id: NamespaceId, version: i64) -> Result<StoredNamespace, StoreError> {
        let stored = self.get_by_id(id).await?;
        stored
            .filter(|stored| stored.version == version)
            .ok_or_else(|| StoreError::Refused(format!("namespace {id} is no longer at version {version}")))
    }

    async fn created(&self, id: NamespaceId) -> Result<StoredNamespace, StoreError> {
        let stored = self.get_by_id(id).await?;
        stored.ok_or_else(|| StoreError::Refused(format!("namespace {id} was created and deleted")))
    }

    async fn row(&self, key: Vec<Value>) -> Result<Option<Row>, StoreError> {
        let page = self.engine.read(Slice::new(partition(), KeyRange::prefix(key), 1)).await?;
        Ok(page.rows.into_iter().next())
    }
}

impl StoredNamespace {
    fn id_row(&self) -> Row {
        Row { key: id_key(self.id), values: vec![Value::Bigint(self.version), rows::to_value(&self.record)] }
    }

    fn name_row(&self) -> Row {
        let id = Value::Blob(rows::uuid_bytes(self.id.0));
        Row { key: name_key(&self.record.name), values: vec![Value::Bigint(self.version), id] }
    }

    fn unchanged(&self) -> Condition {
        Condition::Value { key: id_key(self.id), column: VERSION, equals: Value::Bigint(self.version) }
    }

    fn decode(row: Row) -> Decoded<Self> {
        let Some(Value::Text(id)) = row.key.get(1) else { return Err(Malformed::new("its row has no id")) };
        let id = Uuid::parse_str(id).map_err(|_| Malformed::new(format!("{id} is not a UUID")))?;
        let (version, data) = rows::versioned(row.values)?;
        Ok(Self { id: NamespaceId(id), version, record: rows::from_value(data)? })
    }
}

/// A batch that increments the notification version, if it is still this one.
fn change(notification_version: i64) -> Batch {
    let mut batch = Batch::new(partition());
    let equals = (notification_version > 0).then_some(Value::Bigint(notification_version));
    batch.conditions.push(Condition::Static { column: NOTIFICATION_VERSION, equals });
    batch.statics.push((NOTIFICATION_VERSION, Value::Bigint(notification_version + 1)));
    batch
}

/// The namespace that has the name whose absence is the last condition.
fn holder_of_name(current: &[Current]) -> Result<Option<NamespaceId>, StoreError> {
    match current.last() {
        Some(Current::Row(Some(row))) if is_name_row(row) => {
            decode_name_row(row).map(Some).map_err(|bad| bad.at(format_args!("namespace {:?}", row.key)))
        }
        Some(Current::Row(_) | Current::Static(_)) | None => Ok(None),
    }
}

fn is_name_row(row: &Row) -> bool {
    row.key.first() == Some(&Value::Int(RowKind::ByName as i32))
}

fn decode_name_row(row: &Row) -> Decoded<NamespaceId> {
    let (_, data) = rows::versioned(row.values.clone())?;
    Ok(NamespaceId(rows::uuid(&rows::blob(data)?, "id")?))
}

fn id_key(id: NamespaceId) -> Vec<Value> {
    vec![Value::Int(RowKind::ById as i32), Value::Text(id.to_string().into())]
}

fn name_key(name: &str) -> Vec<Value> {
    vec![Value::Int(RowKind::ByName as i32), Value::from(name)]
}

fn contended() -> StoreError {
    StoreError::Unavailable("namespaces are being changed by others; try again".to_owned())
}

fn partition() -> Partition {
    Partition::new(&NAMESPACES, vec![Value::Int(0)])
}
