//! Latencies, counted in buckets whose width grows with the value: any quantile is right to within 1.6 %.

use std::time::Duration;

/// Each power of two is split into 64 buckets; the width of one is then at most 1/64 of its value.
const SPLIT_BITS: u32 = 6;
const SPLIT: u64 = 1 << SPLIT_BITS;
/// Microseconds up to this power of two: 19 hours, longer than any operation is waited for.
const POWER_MAX: u32 = 36;
const BUCKETS: usize = ((POWER_MAX - SPLIT_BITS) as usize + 1) * SPLIT as usize;

#[derive(Debug, Clone)]
pub struct Histogram {
    counts: Vec<u32>,
    n: u64,
    sum_us: u64,
    max_us: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS], n: 0, sum_us: 0, max_us: 0 }
    }
}

impl Histogram {
    pub fn record(&mut self, latency: Duration) {
        let us = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX).min((1 << POWER_MAX) - 1);
        self.counts[bucket_of(us)] += 1;
        self.n += 1;
        self.sum_us += us;
        self.max_us = self.max_us.max(us);
    }

    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.n += other.n;
        self.sum_us += other.sum_us;
        self.max_us = self.max_us.max(other.max_us);
    }

    #[must_use]
    pub fn n(&self) -> u64 {
        self.n
    }

    #[must_use]
    pub fn max(&self) -> Duration {
        Duration::from_micros(self.max_us)
    }

    #[must_use]
    pub fn mean(&self) -> Duration {
        Duration::from_micros(self.sum_us.checked_div(self.n).unwrap_or(0))
    }

    /// The latency that this share of the operations did not exceed; zero if there were none.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Duration {
        assert!((0.0..=1.0).contains(&share), "{share} is not a share");
        let wanted = ((self.n as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += u64::from(*count);
            if seen >= wanted {
                return Duration::from_micros(highest_in(bucket).min(self.max_us));
            }
        }
        Duration::ZERO
    }
}

fn bucket_of(us: u64) -> usize {
    let power = us.max(1).ilog2();
    if power < SPLIT_BITS {
        return usize::try_from(us).unwrap_or(0);
    }
    let shift = power - SPLIT_BITS;
    let within = (us >> shift) - SPLIT;
    (shift as usize + 1) * SPLIT as usize + usize::try_from(within).unwrap_or(0)
}

/// The largest value that falls into a bucket.
fn highest_in(bucket: usize) -> u64 {
    let (row, within) = (bucket as u64 / SPLIT, bucket as u64 % SPLIT);
    if row == 0 { within } else { ((SPLIT + within + 1) << (row - 1)) - 1 }
}

#[cfg(test)]
mod tests;
