//! The namespace registry of all services: cached by name and by id, read from the store on a miss.
//!
//! Own writes are visible at once. Nothing is refreshed in the background: an idle node sends no statements.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use moka::ops::compute::Op;
use moka::sync::Cache;
use persistence::error::StoreError;
use persistence::stores::namespaces::{NamespaceStore, StoredNamespace};
use persistence::stores::visibility::value::ValueType;
use prost::Message as _;
use proto::everrow::record;
use proto::temporal::api::enums::v1::{ArchivalState, NamespaceState};
use tokio::time::Instant;
use workflow::NamespaceId;

use crate::env::Env;
use crate::errors::ServiceError;
use crate::search_attributes::check::Defined;
use crate::search_attributes::custom::{self, CustomAttributes};

/// The namespace of the server's own workflows.
pub const SYSTEM_NAMESPACE: &str = "temporal-system";

/// Cache size by name, and the same again by id: tens of thousands of namespaces of the usual size.
const CACHED_BYTES: u64 = 32 << 20;
/// Size of the negative cache. Clients choose its names.
const MISSING_BYTES: u64 = 1 << 20;
/// Overhead of a cache entry beside its key and value.
const ENTRY_BYTES: usize = 256;
/// TTL of the negative cache: a worker with a wrong name polls several times a second, and a new namespace is usable
/// soon enough.
const MISSING_FOR: Duration = Duration::from_secs(1);
/// Namespaces per read of a list: few enough that large ones do not fill the memory.
const LIST_READ: usize = 64;
/// Attempts at a change under conflicts.
const CHANGE_TRIES: usize = 10;

/// Digits of the id that end a deleted namespace's name.
const RETIRED_DIGITS: usize = 5;

const SYSTEM_RETENTION_SECONDS: u32 = 7 * 24 * 60 * 60;
const DEFAULT_RETENTION_SECONDS: u32 = 24 * 60 * 60;
const DEFAULT_RETENTION: Duration = Duration::from_secs(DEFAULT_RETENTION_SECONDS as u64);

/// A namespace, as of the last time it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Namespace {
    pub id: NamespaceId,
    pub name: String,
    pub state: NamespaceState,
    /// How long closed runs are kept.
    pub retention: Duration,
    pub failover_version: i64,
    pub custom_attributes: CustomAttributes,
    pub record: record::Namespace,
    /// Version of its row.
    version: i64,
}

pub struct NamespaceRegistry {
    store: NamespaceStore,
    env: Env,
    by_id: Cache<NamespaceId, Arc<Namespace>>,
    by_name: Cache<String, Arc<Namespace>>,
    /// Negative cache: when a name, or the text of an id, was last not found.
    missing: Cache<String, Instant>,
    /// Serializes this node's changes, which would only conflict with each other.
    changing: tokio::sync::Mutex<()>,
}

impl NamespaceRegistry {
    #[must_use]
    pub fn new(store: NamespaceStore, env: Env) -> Self {
        Self {
            store,
            env,
            by_id: Cache::builder().weigher(|_, namespace| weight(namespace)).max_capacity(CACHED_BYTES).build(),
            by_name: Cache::builder().weigher(|_, namespace| weight(namespace)).max_capacity(CACHED_BYTES).build(),
            missing: Cache::builder()
                .weigher(|name: &String, _: &Instant| weight_of(name))
                .max_capacity(MISSING_BYTES)
                .build(),
            changing: tokio::sync::Mutex::default(),
        }
    }

    pub async fn by_name(&self, name: &str) -> Result<Arc<Namespace>, ServiceError> {
        if let Some(namespace) = self.by_name.get(name) {
            return Ok(namespace);
        }
        self.not_known_missing(name)?;
        self.read_by_name(name).await
    }

    pub async fn by_id(&self, id: NamespaceId) -> Result<Arc<Namespace>, ServiceError> {
        if let Some(namespace) = self.by_id.get(&id) {
            return Ok(namespace);
        }
        self.not_known_missing(&id.to_string())?;
        self.read_by_id(id).await
    }

    /// Retention of closed runs; the default for a deleted namespace.
    pub async fn retention(&self, id: NamespaceId) -> Result<Duration, ServiceError> {
        match self.by_id(id).await {
            Ok(namespace) => Ok(namespace.retention),
            Err(ServiceError::NamespaceNotFound { .. }) => Ok(DEFAULT_RETENTION),
            Err(error) => Err(error),
        }
    }

    /// Bypasses the cache, for callers that need the newest.
    pub async fn read_by_name(&self, name: &str) -> Result<Arc<Namespace>, ServiceError> {
        let stored = self.store.get_by_name(name).await?;
        self.keep_or_miss(stored, name)
    }

    /// Bypasses the cache, for callers that need the newest.
    pub async fn read_by_id(&self, id: NamespaceId) -> Result<Arc<Namespace>, ServiceError> {
        let stored = self.store.get_by_id(id).await?;
        self.keep_or_miss(stored, &id.to_string())
    }

    /// Creates a namespace. A retry uses the same id, and finds what the first attempt may have created.
    pub async fn register(&self, id: NamespaceId, record: record::Namespace) -> Result<Arc<Namespace>, ServiceError> {
        let name = record.name.clone();
        match self.store.create(id, record).await {
            Ok(stored) => Ok(self.keep(stored)),
            Err(StoreError::Refused(_)) => Err(ServiceError::NamespaceAlreadyExists { namespace: name }),
            Err(error) => Err(error.into()),
        }
    }

    /// Changes a namespace by `decide`, which gets the newest record, and runs again after a conflicting change. It
    /// returns `None` if nothing changes.
    pub async fn change(
        &self,
        name: &str,
        mut decide: impl FnMut(&record::Namespace) -> Result<Option<record::Namespace>, ServiceError>,
    ) -> Result<Arc<Namespace>, ServiceError> {
        let _one_at_a_time = self.changing.lock().await;
        for _ in 0..CHANGE_TRIES {
            let current = self.read_by_name(name).await?;
            let Some(changed) = decide(&current.record)? else { return Ok(current) };
            match self.store.update(current.id, current.version, changed).await {
                Ok(stored) => return Ok(self.keep(stored)),
                // Another change came first, or ours may have been applied: read again.
                Err(StoreError::Refused(_) | StoreError::OutcomeUnknown(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(ServiceError::Unavailable(format!("namespace {name} is being changed by other nodes; try again")))
    }

    /// Marks a namespace as deleted and renames it, which frees its name. Idempotent.
    pub async fn retire(&self, id: NamespaceId) -> Result<Arc<Namespace>, ServiceError> {
        let _one_at_a_time = self.changing.lock().await;
        for _ in 0..CHANGE_TRIES {
            let current = self.read_by_id(id).await?;
            let name = retired_name(&current.name, id);
            if name == current.name && current.state == NamespaceState::Deleted {
                return Ok(current);
            }
            let mut retired = record::Namespace { name, ..current.record.clone() };
            retired.set_state(NamespaceState::Deleted);
            match self.store.update(id, current.version, retired).await {
                Ok(stored) => {
                    self.by_name.invalidate(&current.name);
                    return Ok(self.keep(stored));
                }
                Err(StoreError::Refused(_) | StoreError::OutcomeUnknown(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(ServiceError::Unavailable(format!("namespace {id} is being changed by other nodes; try again")))
    }

    /// Deletes a namespace, whose contents are gone.
    pub async fn remove(&self, id: NamespaceId) -> Result<(), ServiceError> {
        let known = self.store.get_by_id(id).await?;
        self.store.delete(id).await?;
        self.by_id.invalidate(&id);
        if let Some(removed) = known {
            self.by_name.invalidate(&removed.record.name);
        }
        Ok(())
    }

    /// A page of all namespaces, and the next page token; empty if there is none. It ends at `page` namespaces or
    /// `bytes_max`, and has at least one.
    pub async fn list(
        &self,
        page: usize,
        bytes_max: usize,
        token: &[u8],
    ) -> Result<(Vec<Arc<Namespace>>, Bytes), ServiceError> {
        let (mut listed, mut bytes): (Vec<Arc<Namespace>>, _) = (Vec::new(), 0);
        let mut token = Bytes::copy_from_slice(token);
        loop {
            let (stored, next) = self.store.list(LIST_READ.min(page - listed.len()), &token).await?;
            for stored in stored {
                bytes += stored.record.encoded_len();
                if let Some(last) = listed.last().filter(|_| bytes > bytes_max) {
                    // The next page continues after this id.
                    let token = last.id.to_string().into();
                    return Ok((listed, token));
                }
                listed.push(self.keep(stored));
            }
            if next.is_empty() || listed.len() >= page {
                return Ok((listed, next));
            }
            token = next;
        }
    }

    /// Creates the system namespace and these, where missing.
    pub async fn ensure(&self, names: &[String], cluster: &str) -> Result<(), ServiceError> {
        let system = (SYSTEM_NAMESPACE, SYSTEM_RETENTION_SECONDS);
        let others = names.iter().map(|name| (name.as_str(), DEFAULT_RETENTION_SECONDS));
        for (name, retention) in std::iter::once(system).chain(others) {
            match self.read_by_name(name).await {
                Err(ServiceError::NamespaceNotFound { .. }) => {}
                found => {
                    found?;
                    continue;
                }
            }
            let id = NamespaceId(self.env.new_uuid());
            match self.register(id, initial_record(name, retention, cluster)).await {
                // Another node of the cluster is starting too.
                Ok(_) | Err(ServiceError::NamespaceAlreadyExists { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Defines search attributes of a namespace, where missing.
    pub async fn define(&self, name: &str, attributes: &BTreeMap<String, ValueType>) -> Result<(), ServiceError> {
        let change = |record: &record::Namespace| {
            let attributes = attributes.iter().map(|(name, value_type)| (name.as_str(), *value_type));
            let aliases = custom::with_added(&record.custom_search_attribute_aliases, attributes)
                .map_err(|too_many| ServiceError::InvalidArgument(too_many.to_string()))?;
            let changed = |aliases| record::Namespace {
                custom_search_attribute_aliases: aliases,
                config_version: record.config_version + 1,
                ..record.clone()
            };
            Ok(aliases.map(changed))
        };
        self.change(name, change).await.map(|_| ())
    }

    fn not_known_missing(&self, key: &str) -> Result<(), ServiceError> {
        match self.missing.get(key) {
            Some(since) if since.elapsed() < MISSING_FOR => {
                Err(ServiceError::NamespaceNotFound { namespace: key.to_owned() })
            }
            Some(_) | None => Ok(()),
        }
    }

    fn keep_or_miss(&self, stored: Option<StoredNamespace>, key: &str) -> Result<Arc<Namespace>, ServiceError> {
        if let Some(stored) = stored {
            return Ok(self.keep(stored));
        }
        self.missing.insert(key.to_owned(), Instant::now());
        Err(ServiceError::NamespaceNotFound { namespace: key.to_owned() })
    }

    /// Caches the newer of the cached and the read version: a slow read must not undo a change.
    fn keep(&self, stored: StoredNamespace) -> Arc<Namespace> {
        let read = Arc::new(Namespace::from(stored));
        self.missing.invalidate(&read.name);
        self.missing.invalidate(&read.id.to_string());
        self.by_id.entry(read.id).and_compute_with(|entry| newer(entry, &read));
        let kept = self.by_name.entry(read.name.clone()).and_compute_with(|entry| newer(entry, &read));
        kept.into_entry().map_or(read, moka::Entry::into_value)
    }
}

fn weight(namespace: &Arc<Namespace>) -> u32 {
    bytes_of(namespace.record.encoded_len() + namespace.name.len())
}

fn weight_of(name: &str) -> u32 {
    bytes_of(name.len())
}

fn bytes_of(bytes: usize) -> u32 {
    u32::try_from(bytes + ENTRY_BYTES).unwrap_or(u32::MAX)
}

fn newer<K>(cached: Option<moka::Entry<K, Arc<Namespace>>>, read: &Arc<Namespace>) -> Op<Arc<Namespace>> {
    match cached {
        Some(cached) if cached.value().version > read.version => Op::Nop,
        Some(_) | None => Op::Put(Arc::clone(read)),
    }
}

impl Namespace {
    /// Search attributes of its runs.
    #[must_use]
    pub fn search_attributes(&self) -> Defined<'_> {
        Defined { namespace: &self.name, custom: &self.custom_attributes }
    }

    /// Whether a worker may poll with this build.
    pub fn check_binary(&self, checksum: &str) -> Result<(), ServiceError> {
        let bad = self.record.bad_binaries.as_ref().is_some_and(|bad| bad.binaries.contains_key(checksum));
        if bad {
            let message = format!("Binary {checksum} already marked as bad deployment.");
            return Err(ServiceError::InvalidArgument(message));
        }
        Ok(())
    }
}

impl From<StoredNamespace> for Namespace {
    fn from(stored: StoredNamespace) -> Self {
        let record = stored.record;
        Self {
            id: stored.id,
            name: record.name.clone(),
            state: record.state(),
            retention: record.retention.and_then(|retention| retention.try_into().ok()).unwrap_or_default(),
            failover_version: record.failover_version,
            custom_attributes: CustomAttributes::of_aliases(&record.custom_search_attribute_aliases),
            version: stored.version,
            record,
        }
    }
}

/// The name of a deleted namespace: another may have the old one.
#[must_use]
pub fn retired_name(name: &str, id: NamespaceId) -> String {
    let suffix = format!("-deleted-{}", &id.to_string()[..RETIRED_DIGITS]);
    if name.ends_with(&suffix) { name.to_owned() } else { format!("{name}{suffix}") }
}

fn initial_record(name: &str, retention_seconds: u32, cluster: &str) -> record::Namespace {
    record::Namespace {
        name: name.to_owned(),
        state: NamespaceState::Registered.into(),
        retention: Some(prost_types::Duration { seconds: retention_seconds.into(), nanos: 0 }),
        history_archival_state: ArchivalState::Disabled.into(),
        visibility_archival_state: ArchivalState::Disabled.into(),
        active_cluster: cluster.to_owned(),
        clusters: vec![cluster.to_owned()],
        ..record::Namespace::default()
    }
}

#[cfg(test)]
mod tests;
