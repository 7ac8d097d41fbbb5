//! How fast the machine is while something is measured. Its processors may be shared with others, and then everything takes
//! longer for minutes or seconds: a thread that now and then does the same piece of work tells by how much.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};

/// About a millisecond of work for each of these: a fortieth of two processors.
const PAUSE: Duration = Duration::from_millis(20);
/// Larger than a processor's own caches, so that a crowded memory is felt, too: 4 MiB.
const TABLE: usize = 1 << 19;
const STEPS: usize = 8_000;
const MULTIPLICATIONS: usize = 500_000;

pub(super) struct Gauge {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Result<f64>>,
}

impl Gauge {
    pub(super) fn start() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let watched = Arc::clone(&is_over);
        Self { is_over, thread: std::thread::spawn(move || measure(&watched)) }
    }

    /// Pieces of work that a second of processor time was enough for.
    pub(super) fn stop(self) -> Result<f64> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().ok().context("the gauge broke")?
    }
}

fn measure(is_over: &AtomicBool) -> Result<f64> {
    let mut table: Vec<usize> = (0..TABLE).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % TABLE).collect();
    let mut n_pieces = 0.0;
    std::thread::sleep(PAUSE);
    let before = processor_seconds()?;
    loop {
        piece(&mut table);
        n_pieces += 1.0;
        // What the kernel tells is up to date when a thread has just slept.
        std::thread::sleep(PAUSE);
        if is_over.load(Ordering::Relaxed) {
            return Ok(n_pieces / (processor_seconds()? - before));
        }
    }
}

/// Each step needs the one before it, so that it takes the time that it takes.
fn piece(table: &mut [usize]) {
    let mut place = 0;
    for n in 0..STEPS {
        place = (table[place] + n) % TABLE;
    }
    let mut product = place;
    for _ in 0..MULTIPLICATIONS {
        product = product.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    }
    // Kept, or the compiler would leave the work out.
    table[place] = product % TABLE;
}

/// For which this thread has run.
fn processor_seconds() -> Result<f64> {
    let told = fs::read_to_string("/proc/thread-self/schedstat").context("the kernel does not tell a thread's time")?;
    let nanoseconds: f64 = told.split_whitespace().next().context("a schedstat without a time")?.parse()?;
    Ok(nanoseconds / 1e9)
}

#[cfg(test)]
mod tests {
    //! That it runs, and tells something.

    use super::*;

    #[test]
    fn a_gauge_tells_a_speed() {
        let gauge = Gauge::start();
        std::thread::sleep(5 * PAUSE);
        let speed = gauge.stop().expect("a speed");
        assert!(speed.is_finite() && speed > 0.0, "{speed}");
    }
}
