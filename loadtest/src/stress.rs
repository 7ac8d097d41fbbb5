//! A whole run of the driver: connect, prepare, warm up, load, finish, verify.

use std::sync::Arc;

use anyhow::{Context, Result};
use futures_util::stream::{self, StreamExt};
use proto::temporal::api::workflowservice::v1 as api;
use serde::Serialize;
use tonic::Code;

use crate::bench::{Bench, SharedBench};
use crate::client::{Client, Service};
use crate::load::{self, Operations, Stretch};
use crate::plan::{Extent, Load, Plan};
use crate::record::{Measured, Recorder};
use crate::view::View;
use crate::{commands, scenarios, verify, worker};

/// Histories that are read at once.
const VERIFYING_AT_ONCE: usize = 16;
const FLAWS_KEPT: usize = 20;
/// Namespaces that are made here are for tests.
const RETENTION: std::time::Duration = std::time::Duration::from_secs(24 * 3600);

/// Result of a run of the driver.
pub struct Outcome {
    pub plan: Plan,
    pub(crate) measured: Measured,
    pub verified: Verified,
    /// Workflows that were started, without children and further runs.
    pub n_workflows: u64,
    /// This process's own processor time while the clock ran.
    pub driver_cpu: Option<std::time::Duration>,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct Verified {
    /// Workflows whose end and result were seen; one that was not is among the failures.
    pub workflows_completed: u64,
    /// Workflows of which every event was read and checked.
    pub histories_checked: u64,
    /// The first few flaws.
    pub flaws: Vec<String>,
    pub n_flaws: u64,
}

impl Outcome {
    /// Nothing was lost, nothing was doubled, nothing failed.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.verified.n_flaws == 0 && self.measured.n_failed == 0
    }
}

/// # Errors
/// If the server cannot be reached, or what the scenario needs cannot be made.
pub async fn run(plan: Plan) -> Result<Outcome> {
    let recorder = Arc::new(Recorder::default());
    let client = Client::connect(&plan.address, plan.place.connections, Arc::clone(&recorder)).await?;
    // Polls have connections of their own: they would fill those that are measured.
    let poll_client = Client::connect(&plan.address, plan.place.connections, Arc::clone(&recorder)).await?;
    for namespace in &plan.place.namespaces {
        ensure_namespace(&client, namespace).await?;
    }
    let bench = Arc::new(Bench::new(client, plan));
    let _workers = worker::start_all(&bench, &poll_client);
    let operations = Operations {
        bench: Arc::clone(&bench),
        scenario: scenarios::of(&bench.plan).into(),
        recorder: Arc::clone(&recorder),
        next: Arc::default(),
    };
    operations.scenario.prepare(&bench).await.context("cannot prepare the scenario")?;
    warm_up(&operations).await;
    let driver_cpu = drive(&operations).await;
    let measured = recorder.measured();
    let mut verified = Verified::default();
    if let Err(error) = operations.scenario.finish(&bench).await {
        verified.flaw(format!("{error:#}"));
    }
    verify_sample(&bench, &mut verified).await;
    Ok(Outcome { plan: bench.plan.clone(), measured, verified, n_workflows: bench.n_workflows(), driver_cpu })
}

async fn warm_up(operations: &Operations) {
    let plan = &operations.bench.plan;
    if plan.warm_up == 0 {
        return;
    }
    let concurrency = plan.load.at_once().min(64);
    let load = Load::Closed { concurrency };
    let began_at = operations.recorder.restart();
    let extent = Extent::Count(plan.warm_up);
    load::run(operations, &load, Stretch { extent, ramp: std::time::Duration::ZERO, began_at }).await;
}

/// The measured part; returns the CPU time of this process.
async fn drive(operations: &Operations) -> Option<std::time::Duration> {
    let plan = &operations.bench.plan;
    let cpu_before = crate::cpu::of_this_process();
    let began_at = operations.recorder.restart();
    let view = View::start(plan, Arc::clone(&operations.recorder), began_at);
    load::run(operations, &plan.load, Stretch { extent: plan.extent, ramp: plan.ramp, began_at }).await;
    view.end().await;
    Some(crate::cpu::of_this_process()?.saturating_sub(cpu_before?))
}

async fn verify_sample(bench: &SharedBench, verified: &mut Verified) {
    let (n_completed, sample) = bench.sample.take();
    verified.workflows_completed = n_completed;
    let mut checks = stream::iter(sample)
        .map(|finished| {
            let bench = Arc::clone(bench);
            async move { verify::workflow(&bench, &finished).await }
        })
        .buffer_unordered(VERIFYING_AT_ONCE);
    while let Some(checked) = checks.next().await {
        verified.histories_checked += 1;
        if let Err(error) = checked {
            verified.flaw(format!("{error:#}"));
        }
    }
}

impl Verified {
    fn flaw(&mut self, flaw: String) {
        self.n_flaws += 1;
        if self.flaws.len() < FLAWS_KEPT {
            self.flaws.push(flaw);
        }
    }
}

/// Registers the namespace if it is missing, and waits until it is usable.
async fn ensure_namespace(client: &Client, namespace: &str) -> Result<()> {
    let describe = api::DescribeNamespaceRequest { namespace: namespace.into(), ..Default::default() };
    let ask = |mut service: Service, request| async move { service.describe_namespace(request).await };
    match client.call(&describe, ask).await {
        Ok(_) => return Ok(()),
        Err(status) if status.code() == Code::NotFound => {}
        Err(status) => return Err(status).context(format!("cannot describe the namespace {namespace}")),
    }
    let register = api::RegisterNamespaceRequest {
        namespace: namespace.into(),
        workflow_execution_retention_period: commands::span(RETENTION),
        ..Default::default()
    };
    let make = |mut service: Service, request| async move { service.register_namespace(request).await };
    match client.call(&register, make).await {
        Ok(_) => {}
        Err(status) if status.code() == Code::AlreadyExists => {}
        Err(status) => return Err(status).context(format!("cannot register the namespace {namespace}")),
    }
    wait_until_usable(client, namespace).await
}

/// A new namespace may take a while to reach all parts of a server.
async fn wait_until_usable(client: &Client, namespace: &str) -> Result<()> {
    const TRIES: u32 = 150;
    const PAUSE: std::time::Duration = std::time::Duration::from_millis(200);
    let probe = api::DescribeTaskQueueRequest {
        namespace: namespace.into(),
        task_queue: commands::queue("stress-probe"),
        ..Default::default()
    };
    let ask = |mut service: Service, request| async move { service.describe_task_queue(request).await };
    for _ in 0..TRIES {
        match client.call(&probe, ask).await {
            Err(status) if status.code() == Code::NotFound => tokio::time::sleep(PAUSE).await,
            _ => return Ok(()),
        }
    }
    anyhow::bail!("the namespace {namespace} was registered, but the server does not know it")
}
