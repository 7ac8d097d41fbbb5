//! Checks of a closed workflow: it completed once, its runs form one chain, and each history records every step of its
//! script, once. The checks are pure; `Sample` selects the workflows to check.

use std::collections::BTreeMap;
use std::sync::Mutex;

use anyhow::{Context, Result, bail, ensure};
use proto::temporal::api::common::v1::WorkflowExecution;
use proto::temporal::api::enums::v1::WorkflowExecutionStatus;
use proto::temporal::api::history::v1::HistoryEvent;
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::workflowservice::v1 as api;

use crate::bench::{Bench, Started};
use crate::client::Service;
use crate::payload;
use crate::script::{Script, Step};

mod pairs;

/// A workflow that ended as it should, judging by its close events.
#[derive(Debug, Clone)]
pub(crate) struct Finished {
    pub(crate) started: Started,
    /// In their order.
    pub(crate) runs: Vec<String>,
    pub(crate) result: u64,
    /// What was sent to a workflow that gathers; `None` for one that does not.
    pub(crate) gathered: Option<Gathered>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Gathered {
    pub(crate) n_signals: u64,
    pub(crate) n_updates: u64,
}

/// A bounded uniform sample of the workflows that ended.
pub(crate) struct Sample {
    size: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    n_seen: u64,
    finished: Vec<Finished>,
}

impl Sample {
    pub(crate) fn new(size: usize) -> Self {
        Self { size, kept: Mutex::default() }
    }

    pub(crate) fn see(&self, finished: Finished) {
        let mut kept = self.kept.lock().expect("nobody panics while holding it");
        kept.n_seen += 1;
        if kept.finished.len() < self.size {
            kept.finished.push(finished);
            return;
        }
        // Vitter's algorithm R; the hash of the position is random enough here.
        let chosen = usize::try_from(scattered(kept.n_seen) % kept.n_seen).unwrap_or(usize::MAX);
        if let Some(place) = kept.finished.get_mut(chosen) {
            *place = finished;
        }
    }

    /// Number of workflows seen, and the sample.
    pub(crate) fn take(&self) -> (u64, Vec<Finished>) {
        let mut kept = self.kept.lock().expect("nobody panics while holding it");
        (kept.n_seen, std::mem::take(&mut kept.finished))
    }
}

/// Pseudo-random number, deterministic for `n` (splitmix64).
pub(crate) fn scattered(n: u64) -> u64 {
    let mut z = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Reads the histories and the description of a workflow, and checks them.
pub(crate) async fn workflow(bench: &Bench, finished: &Finished) -> Result<()> {
    let mut script = finished.started.script.clone();
    let mut n_events_of_last = 0;
    for (n, run_id) in finished.runs.iter().enumerate() {
        let events = whole_history(bench, &finished.started, run_id).await?;
        let end = match finished.runs.get(n + 1) {
            Some(next) => End::ContinuedAsNew { run_id: next },
            None => End::Completed { result: finished.result },
        };
        let gathered = finished.gathered.unwrap_or_default();
        let run = format!("{} run {run_id}", finished.started.workflow_id);
        script = history(&events, &script, end, gathered).with_context(|| run)?;
        n_events_of_last = events.len();
    }
    is_the_newest(bench, finished, n_events_of_last).await
}

async fn whole_history(bench: &Bench, started: &Started, run_id: &str) -> Result<Vec<HistoryEvent>> {
    let execution = WorkflowExecution { workflow_id: started.workflow_id.clone(), run_id: run_id.into() };
    let mut request = api::GetWorkflowExecutionHistoryRequest {
        namespace: started.namespace.clone(),
        execution: Some(execution),
        ..Default::default()
    };
    let mut events = Vec::new();
    loop {
        let page = bench.history_page(&request).await?;
        events.extend(page.history.unwrap_or_default().events);
        if page.next_page_token.is_empty() {
            return Ok(events);
        }
        request.next_page_token = page.next_page_token;
    }
}

/// No other run of the workflow's id came after the last one, and the server's summary agrees with the history.
async fn is_the_newest(bench: &Bench, finished: &Finished, n_events: usize) -> Result<()> {
    let request = api::DescribeWorkflowExecutionRequest {
        namespace: finished.started.namespace.clone(),
        execution: Some(WorkflowExecution { workflow_id: finished.started.workflow_id.clone(), run_id: String::new() }),
    };
    let send = |mut service: Service, request| async move { service.describe_workflow_execution(request).await };
    let described = bench.client.call(&request, send).await.context("describe")?;
    let info = described.workflow_execution_info.context("described without a word about the execution")?;
    let id = &finished.started.workflow_id;
    let newest = info.execution.clone().unwrap_or_default().run_id;
    ensure!(Some(&newest) == finished.runs.last(), "{id} has another run, {newest}");
    ensure!(info.status() == WorkflowExecutionStatus::Completed, "{id} is described as {:?}", info.status());
    let n_described = usize::try_from(info.history_length).unwrap_or_default();
    ensure!(n_described == n_events, "{id} has {n_events} events, but is described with {n_described}");
    Ok(())
}

/// Expected end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End<'a> {
    Completed { result: u64 },
    ContinuedAsNew { run_id: &'a str },
}

/// Checks the history of one run; returns the script left for the next.
fn history(events: &[HistoryEvent], script: &Script, end: End<'_>, gathered: Gathered) -> Result<Script> {
    for (expected_id, event) in (1..).zip(events) {
        ensure!(event.event_id == expected_id, "event {expected_id} is missing, {} came", event.event_id);
    }
    let mut rest = script.clone();
    begins_with(events, script)?;
    let here = steps_of_this_run(&mut rest);
    let next = ends_with(events, end)?;
    let found = pairs::count(events)?;
    let expected = Expected::of(&here, gathered);
    for (name, wanted) in expected.counts {
        let n = found.get(name).copied().unwrap_or_default();
        ensure!(n == wanted, "{n} events {name} instead of {wanted}");
    }
    if let Some(next) = next {
        ensure!(next.steps == rest.steps, "the next run got the script {next}");
        return Ok(next);
    }
    Ok(rest)
}

fn begins_with(events: &[HistoryEvent], script: &Script) -> Result<()> {
    let first = events.first().and_then(|event| event.attributes.as_ref());
    let Some(Attributes::WorkflowExecutionStartedEventAttributes(started)) = first else {
        bail!("the history does not begin with a start")
    };
    let text: String = payload::read(started.input.as_ref()).context("the start has no script")?;
    ensure!(text.parse::<Script>()? == *script, "the run was started with the script {text}");
    Ok(())
}

/// Splits off the steps of one run.
fn steps_of_this_run(rest: &mut Script) -> Vec<Step> {
    let end = rest.steps.iter().position(|step| *step == Step::ContinueAsNew);
    let here: Vec<Step> = rest.steps.drain(..end.unwrap_or(rest.steps.len())).collect();
    if end.is_some() {
        rest.steps.remove(0);
    }
    here
}

/// The last event closes the run, no other does. Returns the script of the next run, if there is one.
fn ends_with(events: &[HistoryEvent], end: End<'_>) -> Result<Option<Script>> {
    let (last, before) = events.split_last().context("the history is empty")?;
    ensure!(!before.iter().any(closes), "the run closed before its last event");
    match (end, last.attributes.as_ref()) {
        (End::Completed { result }, Some(Attributes::WorkflowExecutionCompletedEventAttributes(completed))) => {
            let told: Option<u64> = payload::read(completed.result.as_ref());
            ensure!(told == Some(result), "the run returned {told:?} instead of {result}");
            Ok(None)
        }
        (
            End::ContinuedAsNew { run_id },
            Some(Attributes::WorkflowExecutionContinuedAsNewEventAttributes(continued)),
        ) => {
            ensure!(continued.new_execution_run_id == run_id, "the run continued as another one");
            let text: String = payload::read(continued.input.as_ref()).context("the next run has no script")?;
            Ok(Some(text.parse()?))
        }
        _ => bail!("the run ended with {:?} instead of {end:?}", last.event_type()),
    }
}

fn closes(event: &HistoryEvent) -> bool {
    matches!(
        event.attributes,
        Some(
            Attributes::WorkflowExecutionCompletedEventAttributes(_)
                | Attributes::WorkflowExecutionFailedEventAttributes(_)
                | Attributes::WorkflowExecutionTimedOutEventAttributes(_)
                | Attributes::WorkflowExecutionCanceledEventAttributes(_)
                | Attributes::WorkflowExecutionTerminatedEventAttributes(_)
                | Attributes::WorkflowExecutionContinuedAsNewEventAttributes(_)
        )
    )
}

/// Number of events of each kind in a history.
type Counts = BTreeMap<&'static str, u64>;

struct Expected {
    counts: Counts,
}

impl Expected {
    fn of(steps: &[Step], gathered: Gathered) -> Self {
        let (mut activities, mut timers, mut children) = (0, 0, 0);
        for step in steps {
            match step {
                Step::Activities(n) => activities += u64::from(*n),
                Step::Timers { n, .. } => timers += u64::from(*n),
                Step::Children(n) => children += u64::from(*n),
                Step::Gather | Step::ContinueAsNew => {}
            }
        }
        let does_gather = steps.contains(&Step::Gather);
        // The end signal counts, too.
        let signals = if does_gather { gathered.n_signals + 1 } else { 0 };
        let updates = if does_gather { gathered.n_updates } else { 0 };
        Self {
            counts: BTreeMap::from([
                (pairs::ACTIVITY, activities),
                (pairs::TIMER, timers),
                (pairs::CHILD, children),
                (pairs::SIGNAL, signals),
                (pairs::UPDATE, updates),
            ]),
        }
    }
}

#[cfg(test)]
mod tests;
