//! Clusters, and the nodes of this one.

use std::sync::Arc;

use proto::everrow::record;
use uuid::Uuid;
use workflow::Timestamp;

use crate::engine::{Batch, Condition, Consistency, Engine, KeyRange, Outcome, Partition, Row, Slice};
use crate::error::StoreError;
use crate::stores::rows::{self, Decoded, Malformed};
use crate::table::{Table, Value};
use crate::tables::{CLUSTER_MEMBERSHIP, CLUSTER_METADATA};

/// Index of the value column that conditions compare.
const VERSION: usize = 0;

/// Rows per read. All pages are read: there are few clusters, and a node is a row.
const PAGE: usize = 512;

#[derive(Debug, Clone, PartialEq)]
pub struct StoredCluster {
    pub name: String,
    /// Counts its changes, from 1.
    pub version: i64,
    pub record: record::Cluster,
}

/// A node, as of its last heartbeat.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredMember {
    pub host_id: Uuid,
    pub heartbeat_at: Timestamp,
    pub record: record::Member,
}

#[derive(Clone)]
pub struct ClusterStore {
    engine: Arc<dyn Engine>,
}

impl ClusterStore {
    pub(super) fn new(engine: Arc<dyn Engine>) -> Self {
        Self { engine }
    }

    /// # Errors
    /// `Corrupt` if its record does not decode.
    pub async fn get(&self, name: &str) -> Result<Option<StoredCluster>, StoreError> {
        let mut slice = Slice::new(partition(&CLUSTER_METADATA), KeyRange::prefix(vec![Value::from(name)]), 1);
        // Serial, so that a read after a write of unknown outcome settles it.
        slice.consistency = Consistency::Serial;
        let row = self.engine.read(slice).await?.rows.into_iter().next();
        row.map(decode_cluster).transpose().map_err(|bad| bad.at(format_args!("cluster {name}")))
    }

    /// The stored record, or else this one: of many nodes that start together one writes it, all get it.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn get_or_create(&self, name: &str, first: record::Cluster) -> Result<record::Cluster, StoreError> {
        if let Some(stored) = self.get(name).await? {
            return Ok(stored.record);
        }
        match self.update(name, None, &first).await {
            Ok(_) => return Ok(first),
            Err(StoreError::Refused(_) | StoreError::OutcomeUnknown(_)) => {}
            Err(error) => return Err(error),
        }
        let stored = self.get(name).await?;
        let missing = || StoreError::Unavailable(format!("cluster {name} could not be recorded; try again"));
        stored.map(|stored| stored.record).ok_or_else(missing)
    }

    /// Writes a cluster's record, and returns its new version.
    ///
    /// # Errors
    /// `Refused` if it is no longer at this version; with `None`, if it exists.
    pub async fn update(&self, name: &str, version: Option<i64>, record: &record::Cluster) -> Result<i64, StoreError> {
        let key = vec![Value::from(name)];
        let next = version.unwrap_or(0) + 1;
        let mut batch = Batch::new(partition(&CLUSTER_METADATA));
        batch.conditions.push(match version {
            Some(version) => Condition::Value { key: key.clone(), column: VERSION, equals: Value::Bigint(version) },
            None => Condition::Absent { key: key.clone() },
        });
        batch.puts.push(Row { key, values: vec![Value::Bigint(next), rows::to_value(record)] });
        match self.engine.write(batch).await? {
            Outcome::Applied => Ok(next),
            Outcome::Refused(_) => Err(StoreError::Refused(format!("cluster {name} was changed by others"))),
        }
    }

    /// All known clusters, this one too, by name.
    ///
    /// # Errors
    /// `Corrupt` if a record does not decode.
    pub async fn list(&self) -> Result<Vec<StoredCluster>, StoreError> {
        let rows = self.all(&CLUSTER_METADATA).await?;
        rows.into_iter().map(decode_cluster).collect::<Decoded<_>>().map_err(|bad| bad.at("cluster metadata"))
    }

    /// Deletes a cluster.
    ///
    /// # Errors
    /// `Refused` if it is no longer at this version.
    pub async fn remove(&self, name: &str, version: i64) -> Result<(), StoreError> {
        let key = vec![Value::from(name)];
        let mut batch = Batch::new(partition(&CLUSTER_METADATA));
        let equals = Value::Bigint(version);
        batch.conditions.push(Condition::Value { key: key.clone(), column: VERSION, equals });
        batch.deletes.push(key);
        match self.engine.write(batch).await? {
            Outcome::Applied => Ok(()),
            Outcome::Refused(_) => Err(StoreError::Refused(format!("cluster {name} was changed by others"))),
        }
    }

    /// Writes a node's heartbeat.
    ///
    /// # Errors
    /// If the store fails. An unknown outcome can be ignored: the next heartbeat overwrites it.
    pub async fn heartbeat(&self, host_id: Uuid, at: Timestamp, member: &record::Member) -> Result<(), StoreError> {
        let mut batch = Batch::new(partition(&CLUSTER_MEMBERSHIP));
        let values = vec![Value::Bigint(at.0), rows::to_value(member)];
        batch.puts.push(Row { key: vec![Value::Uuid(host_id)], values });
        self.engine.write(batch).await?;
        Ok(())
    }

    /// All nodes that did not leave, dead ones too: the caller decides by the heartbeat.
    ///
    /// # Errors
    /// `Corrupt` if a record does not decode.
    pub async fn members(&self) -> Result<Vec<StoredMember>, StoreError> {
        let rows = self.all(&CLUSTER_MEMBERSHIP).await?;
        rows.into_iter().map(decode_member).collect::<Decoded<_>>().map_err(|bad| bad.at("cluster membership"))
    }

    /// Deletes a membership row: a node's own when it leaves, or that of one long dead.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn leave(&self, host_id: Uuid) -> Result<(), StoreError> {
        let mut batch = Batch::new(partition(&CLUSTER_MEMBERSHIP));
        batch.deletes.push(vec![Value::Uuid(host_id)]);
        self.engine.write(batch).await?;
        Ok(())
    }

    async fn all(&self, table: &'static Table) -> Result<Vec<Row>, StoreError> {
        let mut slice = Slice::new(partition(table), KeyRange::all(), PAGE);
        let mut rows = Vec::new();
        loop {
            let page = self.engine.read(slice.clone()).await?;
            rows.extend(page.rows);
            if page.next.is_none() {
                return Ok(rows);
            }
            slice.after = page.next;
        }
    }
}

fn decode_cluster(row: Row) -> Decoded<StoredCluster> {
    let Some(Value::Text(name)) = row.key.first() else { return Err(Malformed::new("a row without a name")) };
    let name = name.to_string();
    let (version, data) = rows::versioned(row.values)?;
    Ok(StoredCluster { name, version, record: rows::from_value(data)? })
}

fn decode_member(row: Row) -> Decoded<StoredMember> {
    let Some(Value::Uuid(host_id)) = row.key.first() else { return Err(Malformed::new("a row without a host")) };
    let host_id = *host_id;
    let (heartbeat_at, data) = rows::versioned(row.values)?;
    Ok(StoredMember { host_id, heartbeat_at: Timestamp(heartbeat_at), record: rows::from_value(data)? })
}

fn partition(table: &'static Table) -> Partition {
    Partition::new(table, vec![Value::Int(0)])
}
