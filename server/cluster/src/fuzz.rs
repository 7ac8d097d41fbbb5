//! The number of inputs of a random test: fixed in CI, and as many as fit into a given time for a longer search.

use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

/// Seconds for which each random test continues with further inputs.
const SECONDS: &str = "EVERROW_FUZZ_SECONDS";
/// Replaces the usual number of rounds of every fuzz test.
const ROUNDS: &str = "EVERROW_FUZZ_ROUNDS";

/// Seeds from zero on: at least this many, and more until the time in `EVERROW_FUZZ_SECONDS` is over.
pub fn seeds(at_least: u64) -> Inputs {
    Inputs { next: 0, at_least, until: number(SECONDS).map(|seconds| Instant::now() + Duration::from_secs(seconds)) }
}

/// Rounds of a test with one fixed seed, continued like [`seeds`].
pub fn rounds(usual: u64) -> Inputs {
    seeds(number(ROUNDS).unwrap_or(usual))
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is a number, not {text:?}")))
}

pub struct Inputs {
    next: u64,
    at_least: u64,
    until: Option<Instant>,
}

impl Iterator for Inputs {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let input = self.next;
        let goes_on = input < self.at_least || self.until.is_some_and(|until| Instant::now() < until);
        self.next += u64::from(goes_on);
        goes_on.then_some(input)
    }
}

impl Drop for Inputs {
    /// A report of a search needs the number; it is shown with `--nocapture`.
    fn drop(&mut self) {
        eprintln!("{} inputs", self.next);
    }
}

/// Printed by a test that fails, which is then repeated exactly.
pub const SEED: u64 = 17;

pub fn random() -> SmallRng {
    SmallRng::seed_from_u64(SEED)
}

/// Some bytes changed, dropped, doubled or put in.
pub fn damaged(random: &mut SmallRng, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..random.random_range(1..4) {
        let at = random.random_range(0..=bytes.len());
        match random.random_range(0..5) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, random.random()),
            2 if at < bytes.len() => bytes[at] = random.random(),
            3 if at < bytes.len() => bytes[at] ^= 1 << random.random_range(0..8),
            4 => bytes.extend_from_within(at..),
            _ => {}
        }
    }
    bytes
}
