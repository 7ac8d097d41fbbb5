//! The stores, on each engine of this machine; what a store does in trouble, on the model.

use std::sync::Arc;

use persistence::embedded::{Durability, Embedded, Options};
use persistence::engine::Engine;
use persistence::model::Model;
use persistence::stores::Stores;
use tempfile::TempDir;

mod sample;
mod shards;
mod executions;
mod wide_run;
mod damage;
mod jobs;
mod history;
mod task_queues;
mod namespaces;
mod cluster;
mod queues;
mod nexus;
mod visibility;

/// The stores on one engine, and what keeps it alive.
struct Bench {
    engine: Arc<dyn Engine>,
    stores: Stores,
    _directory: Option<TempDir>,
}

/// One for each engine.
fn benches() -> Vec<Bench> {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { durability: Durability::None, cache_bytes: 1 << 20 };
    let embedded: Arc<dyn Engine> = Embedded::open(directory.path(), options).unwrap();
    let model: Arc<dyn Engine> = Model::new();
    vec![
        Bench { engine: Arc::clone(&model), stores: Stores::new(model), _directory: None },
        Bench { engine: Arc::clone(&embedded), stores: Stores::new(embedded), _directory: Some(directory) },
    ]
}

fn on_model() -> (Arc<Model>, Stores) {
    let model = Model::new();
    let stores = Stores::new(Arc::clone(&model) as Arc<dyn Engine>);
    (model, stores)
}
