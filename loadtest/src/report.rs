//! Reports of a run: figures as JSON, a page with plots, and a summary for the terminal.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::histogram::Histogram;
use crate::plan::Plan;
use crate::record::Measured;
use crate::stress::{Outcome, Verified};

mod html;
mod plot;

pub use html::page;

/// The figures of one run. Fields named `_ms` are in milliseconds, those named `_s` in seconds.
#[derive(Debug, Serialize)]
pub struct Figures {
    pub plan: Plan,
    pub is_good: bool,
    pub operations: u64,
    pub workflows: u64,
    pub elapsed_s: f64,
    pub operations_per_s: f64,
    pub latency: Latency,
    /// Failed operations.
    pub failed: u64,
    pub failures: Vec<String>,
    /// By their code, including retried calls.
    pub errors: BTreeMap<String, u64>,
    pub verified: Verified,
    pub driver_cpu_ms: Option<f64>,
    pub timeline: Vec<Point>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Latency {
    pub mean_ms: f64,
    pub p50_ms: f64,
    pub p90_ms: f64,
    pub p99_ms: f64,
    pub p999_ms: f64,
    pub max_ms: f64,
}

/// Figures of one interval.
#[derive(Debug, Clone, Serialize)]
pub struct Point {
    pub at_s: f64,
    pub operations_per_s: f64,
    pub errors_per_s: f64,
    pub latency: Latency,
}

impl Figures {
    #[must_use]
    pub fn of(outcome: &Outcome) -> Self {
        let measured = &outcome.measured;
        Self {
            plan: outcome.plan.clone(),
            is_good: outcome.is_good(),
            operations: measured.all.n(),
            workflows: outcome.n_workflows,
            elapsed_s: measured.elapsed.as_secs_f64(),
            operations_per_s: measured.rate(),
            latency: Latency::of(&measured.all),
            failed: measured.n_failed,
            failures: measured.failures.clone(),
            errors: measured.errors.clone(),
            verified: outcome.verified.clone(),
            driver_cpu_ms: outcome.driver_cpu.map(ms),
            timeline: timeline(measured),
        }
    }

    /// For the terminal.
    #[must_use]
    pub fn summary(&self) -> String {
        let Latency { p50_ms, p90_ms, p99_ms, p999_ms, max_ms, .. } = self.latency;
        let Verified { workflows_completed, histories_checked, n_flaws, .. } = self.verified;
        let mut text = format!(
            "{}: {} operations in {:.1} s, {:.1} a second\n\
             latency: p50 {p50_ms:.1}  p90 {p90_ms:.1}  p99 {p99_ms:.1}  p99.9 {p999_ms:.1}  max {max_ms:.1} ms\n\
             verified: {workflows_completed} workflows completed, {histories_checked} histories checked, {n_flaws} flaws, {} operations failed",
            self.plan.scenario.name(),
            self.operations,
            self.elapsed_s,
            self.operations_per_s,
            self.failed,
        );
        for flaw in self.verified.flaws.iter().chain(&self.failures) {
            text.push_str("\n  ");
            text.push_str(flaw);
        }
        text
    }
}

impl Latency {
    fn of(histogram: &Histogram) -> Self {
        let quantile = |share| ms(histogram.quantile(share));
        Self {
            mean_ms: ms(histogram.mean()),
            p50_ms: quantile(0.5),
            p90_ms: quantile(0.9),
            p99_ms: quantile(0.99),
            p999_ms: quantile(0.999),
            max_ms: ms(histogram.max()),
        }
    }
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

fn timeline(measured: &Measured) -> Vec<Point> {
    let width = measured.interval.as_secs_f64();
    let point = |(n, interval): (usize, &crate::record::Interval)| {
        let from = n as f64 * width;
        // The last interval ends where the run did.
        let seconds = (measured.elapsed.as_secs_f64() - from).clamp(width.min(0.1), width);
        Point {
            at_s: from,
            operations_per_s: interval.latencies.n() as f64 / seconds,
            errors_per_s: interval.n_errors as f64 / seconds,
            latency: Latency::of(&interval.latencies),
        }
    };
    measured.intervals.iter().enumerate().map(point).collect()
}
