//! Measurements: latencies and errors, in total and over time.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;
use tonic::Code;

use crate::histogram::Histogram;

const INTERVAL_FIRST: Duration = Duration::from_secs(1);
/// Intervals at most: beyond that, pairs are merged, so that a plot of any length has a bounded number of points.
const INTERVALS_MAX: usize = 512;

/// Measurements of one interval.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interval {
    pub(crate) latencies: Histogram,
    pub(crate) n_errors: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Measured {
    pub(crate) interval: Duration,
    pub(crate) intervals: Vec<Interval>,
    pub(crate) all: Histogram,
    /// By the name of their code, including retried ones.
    pub(crate) errors: BTreeMap<String, u64>,
    /// Failed operations, and the first few reasons.
    pub(crate) n_failed: u64,
    pub(crate) failures: Vec<String>,
    /// From the start of the clock to the last operation.
    pub(crate) elapsed: Duration,
}

const FAILURES_KEPT: usize = 20;

/// Recorder shared by the client, the load and the view.
#[derive(Debug)]
pub(crate) struct Recorder {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    began_at: Instant,
    measured: Measured,
}

impl Default for Recorder {
    fn default() -> Self {
        Self { inner: Mutex::new(Inner { began_at: Instant::now(), measured: Measured::default() }) }
    }
}

impl Default for Measured {
    fn default() -> Self {
        Self {
            interval: INTERVAL_FIRST,
            intervals: Vec::new(),
            all: Histogram::default(),
            errors: BTreeMap::new(),
            n_failed: 0,
            failures: Vec::new(),
            elapsed: Duration::ZERO,
        }
    }
}

impl Recorder {
    /// Starts the clock, and discards the measurements of the warm-up.
    pub(crate) fn restart(&self) -> Instant {
        let mut inner = self.lock();
        *inner = Inner { began_at: Instant::now(), measured: Measured::default() };
        inner.began_at
    }

    pub(crate) fn done(&self, latency: Duration) {
        let mut inner = self.lock();
        inner.measured.all.record(latency);
        inner.now().latencies.record(latency);
        inner.measured.elapsed = inner.began_at.elapsed();
    }

    pub(crate) fn error(&self, code: Code) {
        let mut inner = self.lock();
        *inner.measured.errors.entry(format!("{code:?}")).or_default() += 1;
        inner.now().n_errors += 1;
    }

    pub(crate) fn failed(&self, reason: String) {
        let mut inner = self.lock();
        inner.measured.n_failed += 1;
        if inner.measured.failures.len() < FAILURES_KEPT {
            inner.measured.failures.push(reason);
        }
        inner.measured.elapsed = inner.began_at.elapsed();
    }

    pub(crate) fn measured(&self) -> Measured {
        self.lock().measured.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().expect("nobody panics while holding it")
    }
}

impl Inner {
    fn now(&mut self) -> &mut Interval {
        let at = self.began_at.elapsed();
        self.measured.interval_at(at)
    }
}

impl Measured {
    fn interval_at(&mut self, at: Duration) -> &mut Interval {
        while at.as_nanos() / self.interval.as_nanos() >= INTERVALS_MAX as u128 {
            self.halve();
        }
        let index = usize::try_from(at.as_nanos() / self.interval.as_nanos()).unwrap_or(INTERVALS_MAX - 1);
        if self.intervals.len() <= index {
            self.intervals.resize_with(index + 1, Interval::default);
        }
        &mut self.intervals[index]
    }

    fn halve(&mut self) {
        self.interval *= 2;
        let merged = self.intervals.chunks(2).map(|pair| {
            let mut one = pair[0].clone();
            if let Some(other) = pair.get(1) {
                one.latencies.merge(&other.latencies);
                one.n_errors += other.n_errors;
            }
            one
        });
        self.intervals = merged.collect();
    }

    /// Operations in a second, from the start of the clock to the last of them.
    pub(crate) fn rate(&self) -> f64 {
        let n = self.all.n() as f64;
        if self.elapsed.is_zero() { 0.0 } else { n / self.elapsed.as_secs_f64() }
    }
}

#[cfg(test)]
mod tests {
    //! A long run keeps its whole count in a bounded number of intervals.

    use super::*;

    #[test]
    fn a_run_longer_than_there_are_intervals_has_wider_ones_and_loses_no_count() {
        let mut measured = Measured::default();
        for second in 0..3000 {
            measured.interval_at(Duration::from_secs(second)).latencies.record(Duration::from_millis(1));
        }
        assert!(measured.intervals.len() <= INTERVALS_MAX);
        assert_eq!(measured.interval, Duration::from_secs(8));
        assert_eq!(measured.intervals.iter().map(|interval| interval.latencies.n()).sum::<u64>(), 3000);
    }
}
