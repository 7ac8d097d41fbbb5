//! Opens the store that the configuration names.

use std::sync::Arc;

use persistence::embedded::{Durability, Embedded, Options};
use persistence::engine::Engine;
use persistence::error::StoreError;
use persistence::model::Model;
use persistence_cql::{CqlConfig, CqlEngine, schema};

use super::StartError;
use crate::config::{EmbeddedConfig, EngineKind, StoreConfig};

pub(super) struct Opened {
    pub(super) engine: Arc<dyn Engine>,
    /// What clients are told.
    pub(super) kind: &'static str,
    /// What the operator is told.
    pub(super) place: String,
}

pub(super) async fn open(config: &StoreConfig) -> Result<Opened, StartError> {
    match config.engine {
        EngineKind::Embedded => embedded(&config.embedded).await,
        EngineKind::Cassandra => cassandra(&config.cassandra).await,
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

async fn cassandra(config: &CqlConfig) -> Result<Opened, StartError> {
    let report = schema::check(config).await.map_err(|error| StartError::Schema(error.to_string()))?;
    for warning in report.warnings {
        tracing::warn!("{warning}");
    }
    let engine = CqlEngine::connect(config).await.map_err(|error| StartError::Schema(error.to_string()))?;
    Ok(Opened { engine: Arc::new(engine), kind: "cassandra", place: config.contact_points.join(", ") })
}
