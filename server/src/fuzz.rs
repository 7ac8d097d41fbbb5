//! How many seeds a random test takes: a fixed number in CI, and as many as there is time for when somebody asks for more.

use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

/// Seconds for which each random test goes on with further seeds.
const SECONDS_VARIABLE: &str = "EVERROW_FUZZ_SECONDS";

/// Seeds from zero on: at least this many, and more until the time that the variable gives is over.
pub(crate) fn seeds(at_least: u64) -> impl Iterator<Item = u64> {
    let seconds = std::env::var(SECONDS_VARIABLE).ok().map(|text| text.parse().expect("a number of seconds"));
    let began_at = Instant::now();
    let has_time = move || seconds.is_some_and(|seconds| began_at.elapsed() < Duration::from_secs(seconds));
    (0..).take_while(move |seed| *seed < at_least || has_time())
}

/// Replaces the usual number of rounds of every fuzz test.
const ROUNDS: &str = "EVERROW_FUZZ_ROUNDS";

pub(crate) fn rounds(usual: usize) -> usize {
    match std::env::var(ROUNDS) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{ROUNDS} is a number, not {text:?}")),
        Err(_) => usual,
    }
}

/// Printed by a test that fails, which is then repeated exactly.
pub(crate) const SEED: u64 = 17;

pub(crate) fn random() -> SmallRng {
    SmallRng::seed_from_u64(SEED)
}

/// Some bytes changed, dropped, doubled or put in.
pub(crate) fn damaged(random: &mut SmallRng, bytes: &[u8]) -> Vec<u8> {
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
