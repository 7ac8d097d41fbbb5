//! The stores: what rows mean. Written once, on the wide-row contract, so that every engine has all of them.

use std::sync::Arc;

use crate::engine::Engine;

pub mod shards;
pub mod executions;
pub mod history;
mod rows;

/// All stores of one engine. Cheap to clone: each holds the engine and nothing else.
#[derive(Clone)]
pub struct Stores {
    pub shards: shards::ShardStore,
    pub executions: executions::ExecutionStore,
    pub history: history::HistoryStore,
}

impl Stores {
    #[must_use]
    pub fn new(engine: Arc<dyn Engine>) -> Self {
        Self {
            shards: shards::ShardStore::new(Arc::clone(&engine)),
            executions: executions::ExecutionStore::new(Arc::clone(&engine)),
            history: history::HistoryStore::new(engine),
        }
    }
}
