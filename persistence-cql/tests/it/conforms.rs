//! The conformance suite of `persistence`.

use std::sync::Arc;

use persistence::engine::Engine;
use persistence_cql::CqlConfig;
use tokio::sync::OnceCell;

use crate::cluster::Keyspace;

/// One keyspace for all claims: they use partitions of their own, and making tables takes seconds. It has a fixed name
/// because the last claim is not known.
static CONFIG: OnceCell<CqlConfig> = OnceCell::const_new();

async fn engine() -> (Arc<dyn Engine>, ()) {
    let config = CONFIG.get_or_init(|| async {
        let mut keyspace = Keyspace::unused();
        keyspace.config.keyspace = "test_conformance".to_owned();
        keyspace.drop_and_create(persistence::conformance::tables()).await;
        keyspace.config
    });
    let keyspace = Keyspace { config: config.await.clone() };
    (keyspace.engine().await, ())
}

persistence::conformance_suite!(engine());
persistence::shared_conformance_suite!(engine());
