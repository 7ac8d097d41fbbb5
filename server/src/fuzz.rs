//! How many seeds a random test takes: a fixed number in CI, and as many as there is time for when somebody asks for more.

use std::time::{Duration, Instant};

/// Seconds for which each random test goes on with further seeds.
const SECONDS_VARIABLE: &str = "EVERROW_FUZZ_SECONDS";

/// Seeds from zero on: at least this many, and more until the time that the variable gives is over.
pub(crate) fn seeds(at_least: u64) -> impl Iterator<Item = u64> {
    let seconds = std::env::var(SECONDS_VARIABLE).ok().map(|text| text.parse().expect("a number of seconds"));
    let began_at = Instant::now();
    let has_time = move || seconds.is_some_and(|seconds| began_at.elapsed() < Duration::from_secs(seconds));
    (0..).take_while(move |seed| *seed < at_least || has_time())
}
