//! The schema: numbered files, applied in order by the binary itself, under a lock in the store.
//!
//! Several nodes may set up at the same time. A version is recorded only while the lock is held, and every statement is
//! idempotent, so an applier that lost the lock does no harm.

mod lock;
mod migrations;

use std::time::Duration;

use persistence::engine::{Batch, Consistency, Engine as _, KeyRange, Order, Outcome, Partition, Row, Slice};
use persistence::error::StoreError;
use persistence::table::{Column, Kind, Table};
use scylla::client::session::Session;
use scylla::errors::ExecutionError;
use scylla::statement::Statement;
use scylla::value::Row as CqlRow;
use thiserror::Error;

use self::lock::Lock;
pub use self::lock::LockTerms;
use self::migrations::{BOOKKEEPING, MIGRATIONS, Migration, split};
use crate::config::CqlConfig;
use crate::engine::CqlEngine;
use crate::session::{self, ConnectError};
use crate::statements;

/// Timeout of a schema change, which waits for every node.
const CHANGE_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(60);

static SCHEMA_VERSION: Table = Table {
    name: "schema_version",
    partition: &[Column::new("bucket", Kind::Int)],
    clustering: &[Column::new("version", Kind::Int)],
    statics: &[Column::new("lock_owner", Kind::Uuid), Column::new("lock_expires_at", Kind::Bigint)],
    values: &[Column::new("name", Kind::Text)],
    is_versioned: false,
};

#[derive(Debug, Error)]
pub enum SchemaError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("keyspace {0} does not exist, and `replication` in the configuration does not say how to make it")]
    NoReplication(String),
    #[error("keyspace {0} has no schema: run `everrow schema setup`")]
    Missing(String),
    #[error("the schema is at version {found}, this binary needs {wanted}: run `everrow schema update`")]
    Older { found: i32, wanted: i32 },
    #[error("the schema is at version {found}, this binary knows up to {known}: use a newer binary")]
    Newer { found: i32, known: i32 },
    #[error("another node is changing the schema and did not finish in time; try again")]
    Locked,
    #[error("the lock on the schema was lost while version {0} was applied; try again")]
    LockLost(i32),
    #[error("cannot apply {name}: {reason}")]
    Statement { name: String, reason: Box<ExecutionError> },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Result of a check or update that lets the server run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub version: i32,
    /// Settings that an operator should change, each with the reason.
    pub warnings: Vec<String>,
}

/// Retries while a schema change settles, which takes seconds.
const SETTLE_TRIES: u32 = 20;
const SETTLE_PAUSE: Duration = Duration::from_millis(250);

/// Creates the keyspace if there is none, then does what `update` does.
pub async fn setup(config: &CqlConfig, terms: &LockTerms) -> Result<Report, SchemaError> {
    let session = session::connect_outside_keyspace(config).await?;
    if !exists(&session, statements::FIND_KEYSPACE, &[&config.keyspace]).await? {
        let no_replication = || SchemaError::NoReplication(config.keyspace.clone());
        let replication = config.replication.as_ref().ok_or_else(no_replication)?;
        change(&session, "the keyspace", statements::create_keyspace(&config.keyspace, replication)).await?;
    }
    // A keyspace that another node is creating is in the system tables shortly before it can be used.
    for _ in 0..SETTLE_TRIES {
        match update(config, terms).await {
            Err(SchemaError::Store(StoreError::Unavailable(_)) | SchemaError::Connect(ConnectError::NoKeyspace(_))) => {
                tokio::time::sleep(SETTLE_PAUSE).await;
            }
            updated => return updated,
        }
    }
    update(config, terms).await
}

/// Brings the schema of an existing keyspace to the version of this binary.
pub async fn update(config: &CqlConfig, terms: &LockTerms) -> Result<Report, SchemaError> {
    let engine = CqlEngine::connect(config).await?;
    if !has_bookkeeping(&engine, config).await? {
        for statement in split(BOOKKEEPING.text) {
            change(engine.session(), BOOKKEEPING.name, statement).await?;
        }
    }
    let wanted = newest();
    if known_version(&engine).await? < wanted {
        let lock = Lock::take(&engine, terms).await?;
        let applied = apply_missing(&engine, &lock).await;
        // Released after a failure too, so that a retry need not wait.
        let released = lock.release(&engine).await;
        applied.and(released)?;
    }
    Ok(Report { version: wanted, warnings: warnings(&engine).await })
}

/// Whether this binary can run on the schema as it is. Changes nothing.
pub async fn check(config: &CqlConfig) -> Result<Report, SchemaError> {
    let engine = CqlEngine::connect(config).await?;
    if !has_bookkeeping(&engine, config).await? {
        return Err(SchemaError::Missing(config.keyspace.clone()));
    }
    let (found, wanted) = (known_version(&engine).await?, newest());
    match found {
        0 => Err(SchemaError::Missing(config.keyspace.clone())),
        _ if found < wanted => Err(SchemaError::Older { found, wanted }),
        version => Ok(Report { version, warnings: warnings(&engine).await }),
    }
}

/// All statements of `setup`, for operators who run them by hand.
#[must_use]
pub fn print(config: &CqlConfig) -> String {
    let keyspace = match &config.replication {
        Some(replication) => format!("{};\n", statements::create_keyspace(&config.keyspace, replication)),
        None => String::new(),
    };
    let files = [&BOOKKEEPING].into_iter().chain(&MIGRATIONS);
    let files: Vec<_> = files.map(|file| format!("-- {}\n{}", file.name, file.text)).collect();
    format!("{keyspace}USE {};\n\n{}", config.keyspace, files.join("\n"))
}

fn newest() -> i32 {
    MIGRATIONS.last().map_or(0, |migration| migration.version)
}

async fn apply_missing(engine: &CqlEngine, lock: &Lock) -> Result<(), SchemaError> {
    // Read under the lock: its previous holder may have done the work.
    let found = known_version(engine).await?;
    for migration in MIGRATIONS.iter().filter(|migration| migration.version > found) {
        apply(engine, lock, migration).await?;
    }
    Ok(())
}

async fn apply(engine: &CqlEngine, lock: &Lock, migration: &Migration) -> Result<(), SchemaError> {
    for statement in split(migration.text) {
        let changed = lock.while_held(engine, change(engine.session(), migration.name, statement)).await?;
        changed.ok_or(SchemaError::LockLost(migration.version))??;
    }
    let mut record = Batch::new(bookkeeping());
    record.conditions = lock.conditions();
    record.puts = vec![Row { key: vec![migration.version.into()], values: vec![migration.name.into()] }];
    match engine.write(record).await? {
        Outcome::Applied => Ok(()),
        Outcome::Refused(_) => Err(SchemaError::LockLost(migration.version)),
    }
}

/// The version that was applied last, 0 if none. One that this binary does not know is an error.
async fn known_version(engine: &CqlEngine) -> Result<i32, SchemaError> {
    let mut slice = Slice::new(bookkeeping(), KeyRange::all(), 1);
    slice.order = Order::Descending;
    slice.consistency = Consistency::Serial;
    let page = engine.read(slice).await?;
    let found = match page.rows.first().map(|row| row.key.as_slice()) {
        None => 0,
        Some([persistence::table::Value::Int(version)]) => *version,
        Some(key) => return Err(StoreError::Corrupt(format!("{key:?} is not a version of the schema")).into()),
    };
    if found > newest() {
        return Err(SchemaError::Newer { found, known: newest() });
    }
    Ok(found)
}

async fn has_bookkeeping(engine: &CqlEngine, config: &CqlConfig) -> Result<bool, SchemaError> {
    exists(engine.session(), statements::FIND_TABLE, &[&config.keyspace, SCHEMA_VERSION.name]).await
}

fn bookkeeping() -> Partition {
    Partition::new(&SCHEMA_VERSION, vec![0.into()])
}

async fn exists(session: &Session, query: &str, names: &[&str]) -> Result<bool, SchemaError> {
    let failed = |reason: String| SchemaError::Store(StoreError::Unavailable(reason));
    let result = session.query_unpaged(query, names).await.map_err(|error| failed(error.to_string()))?;
    let rows = result.into_rows_result().map_err(|error| failed(error.to_string()))?;
    Ok(rows.rows_num() > 0)
}

/// Changes the schema, and returns when all nodes agree on it.
async fn change(session: &Session, name: &str, text: String) -> Result<(), SchemaError> {
    let mut statement = Statement::new(text);
    statement.set_request_timeout(Some(CHANGE_TIMEOUT));
    let failed = |reason| SchemaError::Statement { name: name.to_owned(), reason: Box::new(reason) };
    session.query_unpaged(statement, ()).await.map(drop).map_err(failed)
}

/// Only Cassandra has this table, and only one node is queried: a result is a hint, its absence means nothing.
async fn warnings(engine: &CqlEngine) -> Vec<String> {
    let ask = async || -> Option<String> {
        let result = engine.session().query_unpaged(statements::PAXOS_VARIANT, ()).await.ok()?;
        let row = result.into_rows_result().ok()?.first_row::<CqlRow>().ok()?;
        row.columns.into_iter().next()??.into_string()
    };
    match ask().await.as_deref() {
        Some("v1") => vec![
            "paxos_variant is v1 on the node that was asked: v2 saves a round trip per conditional write and times out \
             less under contention (set it in cassandra.yaml on every node)"
                .to_owned(),
        ],
        Some(_) | None => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
