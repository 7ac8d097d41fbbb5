//! Scenarios: one file each. Shared code is in `whole.rs` (workflows from start to end) and `targets.rs` (workflows
//! that stay open while they are signalled, updated, queried or listed).

use std::time::Duration;

use anyhow::Result;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use crate::bench::Bench;
use crate::plan::{Plan, ScenarioName};

mod whole;
mod targets;
mod no_op;
mod one_activity;
mod chain;
mod fan_out;
mod timers;
mod children;
mod continue_as_new;
mod signals_to_one;
mod signals_to_many;
mod updates;
mod queries;
mod lists;
mod listed;
mod backlog;
mod open_runs;
mod mixed;

/// An operation that is repeated.
pub(crate) trait Scenario: Send + Sync {
    /// Before the clock starts.
    fn prepare<'a>(&'a self, _bench: &'a Bench) -> BoxFuture<'a, Result<()>> {
        Box::pin(async { Ok(()) })
    }

    /// Runs the `n`-th operation, due at `due_at`; returns its latency.
    fn operate<'a>(&'a self, bench: &'a Bench, n: u64, due_at: Instant) -> BoxFuture<'a, Result<Duration>>;

    /// After the clock has stopped: ends open workflows, and checks their results.
    fn finish<'a>(&'a self, _bench: &'a Bench) -> BoxFuture<'a, Result<()>> {
        Box::pin(async { Ok(()) })
    }
}

pub(crate) fn of(plan: &Plan) -> Box<dyn Scenario> {
    let size = plan.size;
    match plan.scenario {
        ScenarioName::NoOp => Box::new(no_op::scenario()),
        ScenarioName::OneActivity => Box::new(one_activity::scenario()),
        ScenarioName::Chain => Box::new(chain::scenario(size)),
        ScenarioName::FanOut => Box::new(fan_out::scenario(size)),
        ScenarioName::Timers => Box::new(timers::scenario(size)),
        ScenarioName::Children => Box::new(children::scenario(size)),
        ScenarioName::ContinueAsNew => Box::new(continue_as_new::scenario(size)),
        ScenarioName::SignalsToOne => Box::new(signals_to_one::scenario()),
        ScenarioName::SignalsToMany => Box::new(signals_to_many::scenario(size)),
        ScenarioName::Updates => Box::new(updates::scenario(size)),
        ScenarioName::Queries => Box::new(queries::scenario(size)),
        ScenarioName::Lists => Box::new(lists::scenario(size)),
        ScenarioName::ListedOpen => Box::new(listed::scenario(listed::Since::Start)),
        ScenarioName::ListedClosed => Box::new(listed::scenario(listed::Since::End)),
        ScenarioName::Backlog => Box::new(backlog::scenario(plan)),
        ScenarioName::OpenRuns => Box::new(open_runs::scenario(size)),
        ScenarioName::Mixed => Box::new(mixed::scenario()),
    }
}
