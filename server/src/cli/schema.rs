//! `everrow schema`: creates, updates, checks or prints the schema on Cassandra or ScyllaDB.

use clap::Subcommand;
use cluster::env::Env;
use persistence_cql::schema::{self, Report};

use super::output::say;
use super::{ConfigFile, Failure, load};
use crate::config::{Config, EngineKind};
use crate::node::engine::lock_terms;
use crate::telemetry;

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// Creates the keyspace if missing, and the schema in it.
    Setup(ConfigFile),
    /// Updates the schema of an existing keyspace to this binary's version. May be repeated.
    Update(ConfigFile),
    /// Checks whether this binary can run on the schema as it is. Changes nothing.
    Check(ConfigFile),
    /// Prints the CQL that `setup` would run.
    Print(ConfigFile),
}

pub(super) fn run(action: Action) -> Result<(), Failure> {
    let (Action::Setup(file) | Action::Update(file) | Action::Check(file) | Action::Print(file)) = &action;
    let config = load(&file.config)?;
    if config.store.engine != EngineKind::Cassandra {
        let message = "store.engine is not \"cassandra\": the other engines have no schema to look after";
        return Err(Failure::Usage(message.into()));
    }
    if let Action::Print(_) = action {
        say(schema::print(&config.store.cassandra));
        return Ok(());
    }
    telemetry::install(&config.log).map_err(Failure::Usage)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Runtime(format!("cannot start the runtime: {error}")))?;
    let report = runtime.block_on(change(&action, &config)).map_err(|error| Failure::Store(error.to_string()))?;
    for warning in &report.warnings {
        say(format_args!("warning: {warning}"));
    }
    say(format_args!("keyspace {} is at schema version {}", config.store.cassandra.keyspace, report.version));
    Ok(())
}

async fn change(action: &Action, config: &Config) -> Result<Report, schema::SchemaError> {
    let terms = lock_terms(&Env::system());
    match action {
        Action::Setup(_) => schema::setup(&config.store.cassandra, &terms).await,
        Action::Update(_) => schema::update(&config.store.cassandra, &terms).await,
        Action::Check(_) | Action::Print(_) => schema::check(&config.store.cassandra).await,
    }
}
