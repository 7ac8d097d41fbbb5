//! The node under test, and keyspaces on it.

use std::sync::Arc;

use persistence::engine::Engine;
use persistence::table::{Column, Kind, Table};
use persistence_cql::config::Replication;
use persistence_cql::{CqlConfig, CqlEngine};
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use uuid::Uuid;

/// The address that every test uses; there is no test without one.
fn address() -> String {
    std::env::var("EVERROW_TEST_CASSANDRA")
        .expect("EVERROW_TEST_CASSANDRA names no host:port; run these tests with `cargo xtask test`")
}

pub(crate) struct Keyspace {
    pub(crate) config: CqlConfig,
}

impl Keyspace {
    /// One that does not exist yet.
    pub(crate) fn unused() -> Self {
        let keyspace = format!("test_{}", Uuid::new_v4().simple());
        let replication = Some(Replication::Copies(1));
        Self { config: CqlConfig { contact_points: vec![address()], keyspace, replication, ..CqlConfig::default() } }
    }

    /// With these tables and nothing in them, whatever an earlier run left behind.
    pub(crate) async fn drop_and_create(&self, tables: &[&Table]) {
        self.drop().await;
        self.create().await;
        self.create_tables(tables).await;
    }

    async fn create(&self) {
        let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
        let text = format!("CREATE KEYSPACE IF NOT EXISTS {} WITH replication = {replication}", self.config.keyspace);
        self.session().await.query_unpaged(text, ()).await.expect("the node takes it");
    }

    async fn create_tables(&self, tables: &[&Table]) {
        let session = self.session().await;
        for table in tables {
            session.query_unpaged(create_table(&self.config.keyspace, table), ()).await.expect("the node takes it");
        }
    }

    pub(crate) async fn engine(&self) -> Arc<dyn Engine> {
        Arc::new(CqlEngine::connect(&self.config).await.expect("the keyspace is there"))
    }

    /// A session in no keyspace, for what only a test does.
    pub(crate) async fn session(&self) -> Session {
        SessionBuilder::new().known_nodes(&self.config.contact_points).build().await.expect("the node answers")
    }

    pub(crate) async fn drop(&self) {
        let text = format!("DROP KEYSPACE IF EXISTS {}", self.config.keyspace);
        self.session().await.query_unpaged(text, ()).await.expect("the node takes it");
    }
}

fn create_table(keyspace: &str, table: &Table) -> String {
    let names = |columns: &[Column]| columns.iter().map(|column| column.name).collect::<Vec<_>>().join(", ");
    let columns = [(table.partition, ""), (table.clustering, ""), (table.statics, " STATIC"), (table.values, "")];
    let columns = columns.iter().flat_map(|(columns, suffix)| {
        columns.iter().map(move |column| format!("{} {}{suffix}, ", column.name, kind(column.kind)))
    });
    let columns: String = columns.collect();
    let key = format!("PRIMARY KEY (({}), {})", names(table.partition), names(table.clustering));
    format!("CREATE TABLE IF NOT EXISTS {keyspace}.{} ({columns}{key})", table.name)
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Int => "int",
        Kind::Bigint => "bigint",
        Kind::Text => "text",
        Kind::Uuid => "uuid",
        Kind::Blob => "blob",
    }
}
