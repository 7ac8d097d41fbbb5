//! Prepared statements, each prepared once.

use std::collections::HashMap;
use std::sync::Mutex;

use persistence::engine::TableRef;
use persistence::error::StoreError;
use scylla::client::session::Session;
use scylla::statement::prepared::PreparedStatement;

use crate::classify;
use crate::statements::{self, Shape};

/// Many times the number of shapes that the stores use. If it is ever reached, shapes depend on data somewhere, and
/// clearing the cache keeps memory bounded until that is fixed.
const MAX_PREPARED: usize = 1024;

#[derive(Debug, Default)]
pub(crate) struct Prepared {
    statements: Mutex<HashMap<(TableRef, Shape), PreparedStatement>>,
}

impl Prepared {
    pub(crate) async fn get(
        &self,
        session: &Session,
        table: TableRef,
        shape: Shape,
    ) -> Result<PreparedStatement, StoreError> {
        let key = (table, shape);
        if let Some(statement) = self.lock().get(&key) {
            return Ok(statement.clone());
        }
        let text = statements::text(table.0, &key.1);
        // Two callers may prepare the same statement at once; the second result replaces an equal first.
        let mut statement = session.prepare(text).await.map_err(|error| classify::failed_prepare(&error))?;
        statement.set_is_idempotent(true);
        let mut statements = self.lock();
        if statements.len() >= MAX_PREPARED {
            tracing::warn!(n_statements = statements.len(), "prepared statement cache is full; clearing it");
            statements.clear();
        }
        statements.insert(key, statement.clone());
        Ok(statement)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<(TableRef, Shape), PreparedStatement>> {
        self.statements.lock().expect("no holder of this lock can panic")
    }
}
