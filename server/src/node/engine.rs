//! Opens the store that the configuration names.

use std::sync::Arc;
use std::time::Duration;

use cluster::env::Env;
use persistence::embedded::{Durability, Embedded, Options};
use persistence::engine::Engine;
use persistence::error::StoreError;
use persistence::model::Model;
use persistence_cql::CqlEngine;
use persistence_cql::schema::{self, LockTerms};

use super::StartError;
use crate::config::{EmbeddedConfig, EngineKind, StoreConfig};

pub(super) struct Opened {
    pub(super) engine: Arc<dyn Engine>,
    /// Reported to clients.
    pub(super) kind: &'static str,
    /// Reported to the operator.
    pub(super) place: String,
}

/// Lease of the schema lock: longer than one change on a busy cluster; a crashed applier blocks others this long.
const LOCK_HOLDS_FOR: Duration = Duration::from_secs(60);

/// Terms of the schema lock of this process.
#[must_use]
pub(crate) fn lock_terms(env: &Env) -> LockTerms {
    LockTerms { owner: env.new_uuid(), now_ms: env.now().0 / 1_000_000, holds_for: LOCK_HOLDS_FOR }
}

pub(super) async fn open(config: &StoreConfig, env: &Env) -> Result<Opened, StartError> {
    match config.engine {
        EngineKind::Embedded => embedded(&config.embedded).await,
        // Boxed: the futures of the driver and of the schema are large, and every start of a node would carry them.
        EngineKind::Cassandra => Box::pin(cassandra(config, env)).await,
        EngineKind::Memory => Ok(Opened { engine: Model::new(), kind: "memory", place: "memory".into() }),
    }
}

async fn embedded(config: &EmbeddedConfig) -> Result<Opened, StartError> {
    let place = config.data.display().to_string();
    let durability = if config.fsync { Durability::Fsync } else { Durability::None };
    let options = Options { durability, cache_bytes: config.cache_bytes };
    let directory = config.data.clone();
    let opened = tokio::task::spawn_blocking(move || Embedded::open(directory, options))
        .await
        .unwrap_or_else(|error| Err(StoreError::Unavailable(format!("opening it broke off: {error}"))));
    match opened {
        Ok(engine) => Ok(Opened { engine, kind: "embedded", place }),
        Err(error) => Err(StartError::Store { place, error }),
    }
}

async fn cassandra(config: &StoreConfig, env: &Env) -> Result<Opened, StartError> {
    let StoreConfig { apply_schema, cassandra: config, .. } = config;
    let checked = match schema::check(config).await {
        // Missing or old; a schema newer than this binary stays an error.
        Err(_) if *apply_schema => schema::setup(config, &lock_terms(env)).await,
        checked => checked,
    };
    let report = checked.map_err(|error| StartError::Schema(error.to_string()))?;
    for warning in report.warnings {
        tracing::warn!("{warning}");
    }
    let engine = CqlEngine::connect(config).await.map_err(|error| StartError::Schema(error.to_string()))?;
    Ok(Opened { engine: Arc::new(engine), kind: "cassandra", place: config.contact_points.join(", ") })
}
