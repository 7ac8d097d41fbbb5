//! One metric with all its series. Adding to a series takes a shared lock and an atomic; the lock is exclusive only for
//! a new series.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

/// Labels of a series.
pub(super) trait Labels: Copy + Ord {
    /// Writes `name="value"` pairs, separated by commas. Values need no escapes.
    fn write(&self, text: &mut String);
}

pub(super) struct Family<L> {
    name: &'static str,
    help: &'static str,
    kind: Kind,
    series: RwLock<BTreeMap<L, Series>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// Upper bounds in milliseconds: the reference's, because dashboards compute with them. One more bucket is unbounded.
const BUCKETS_MS: [u64; 19] = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000,
];

#[derive(Default)]
struct Series {
    value: AtomicI64,
    /// Histogram: samples per bucket (not cumulative), and their sum in microseconds.
    buckets: [AtomicU64; BUCKETS_MS.len() + 1],
    sum_us: AtomicU64,
}

impl<L: Labels> Family<L> {
    pub(super) const fn counter(name: &'static str, help: &'static str) -> Self {
        Self::new(name, help, Kind::Counter)
    }

    pub(super) const fn gauge(name: &'static str, help: &'static str) -> Self {
        Self::new(name, help, Kind::Gauge)
    }

    /// Of durations.
    pub(super) const fn histogram(name: &'static str, help: &'static str) -> Self {
        Self::new(name, help, Kind::Histogram)
    }

    const fn new(name: &'static str, help: &'static str, kind: Kind) -> Self {
        Self { name, help, kind, series: RwLock::new(BTreeMap::new()) }
    }

    pub(super) fn add(&self, labels: L, amount: i64) {
        assert!(self.kind != Kind::Histogram, "{} counts spans", self.name);
        assert!(amount >= 0 || self.kind == Kind::Gauge, "{} only grows", self.name);
        self.with(labels, |series| {
            series.value.fetch_add(amount, Ordering::Relaxed);
        });
    }

    pub(super) fn observe(&self, labels: L, span: Duration) {
        assert!(self.kind == Kind::Histogram, "{} counts no spans", self.name);
        let bucket = BUCKETS_MS.partition_point(|end| Duration::from_millis(*end) < span);
        let span_us = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        self.with(labels, |series| {
            series.buckets[bucket].fetch_add(1, Ordering::Relaxed);
            series.sum_us.fetch_add(span_us, Ordering::Relaxed);
        });
    }

    fn with(&self, labels: L, count: impl FnOnce(&Series)) {
        let known = self.series.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(series) = known.get(&labels) {
            return count(series);
        }
        drop(known);
        count(self.series.write().unwrap_or_else(PoisonError::into_inner).entry(labels).or_default());
    }

    pub(super) fn write(&self, text: &mut String) {
        let kind = match self.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let (name, help) = (self.name, self.help);
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, series) in self.series.read().unwrap_or_else(PoisonError::into_inner).iter() {
            let mut told = String::new();
            labels.write(&mut told);
            match self.kind {
                Kind::Counter | Kind::Gauge => {
                    let _ = writeln!(text, "{name}{{{told}}} {}", series.value.load(Ordering::Relaxed));
                }
                Kind::Histogram => series.write_histogram(text, name, &told),
            }
        }
    }
}

impl Series {
    fn write_histogram(&self, text: &mut String, name: &str, labels: &str) {
        let mut n_so_far = 0;
        let ends = BUCKETS_MS.iter().map(|end| seconds(end.saturating_mul(1000)));
        for (bucket, end) in self.buckets.iter().zip(ends.chain(["+Inf".to_owned()])) {
            n_so_far += bucket.load(Ordering::Relaxed);
            let _ = writeln!(text, "{name}_bucket{{{labels},le=\"{end}\"}} {n_so_far}");
        }
        let sum = seconds(self.sum_us.load(Ordering::Relaxed));
        let _ = writeln!(text, "{name}_sum{{{labels}}} {sum}\n{name}_count{{{labels}}} {n_so_far}");
    }
}

/// Without trailing zeros: 1, 0.5, 0.002.
fn seconds(us: u64) -> String {
    let text = format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
