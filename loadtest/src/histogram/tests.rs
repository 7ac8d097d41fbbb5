//! Quantiles against values that were sorted by hand.

use super::*;

fn us(us: u64) -> Duration {
    Duration::from_micros(us)
}

#[test]
fn every_value_falls_into_a_bucket_that_ends_at_most_a_sixty_fourth_above_it() {
    for power in 0..POWER_MAX {
        for offset in [0, 1, 17, 1 << (power / 2)] {
            let value = ((1_u64 << power) + offset).min((1 << POWER_MAX) - 1);
            let highest = highest_in(bucket_of(value));
            assert!(highest >= value && highest - value <= value / SPLIT, "{value} is told as {highest}");
        }
    }
}

#[test]
fn quantiles_of_a_thousand_values_are_those_of_the_sorted_list() {
    let mut histogram = Histogram::default();
    for value in 1..=1000 {
        histogram.record(us(value * 100));
    }
    for (share, exact) in [(0.5, 50_000), (0.99, 99_000), (1.0, 100_000)] {
        let told = u64::try_from(histogram.quantile(share).as_micros()).expect("small");
        assert!(told >= exact && told - exact <= exact / SPLIT, "{share}: {told} for {exact}");
    }
    assert_eq!(histogram.mean(), us(50_050));
    assert_eq!(histogram.max(), us(100_000));
}

#[test]
fn two_merged_are_as_one_that_saw_all() {
    let (mut one, mut other, mut both) = (Histogram::default(), Histogram::default(), Histogram::default());
    for value in 0..500 {
        one.record(us(value));
        other.record(us(value * 1000));
        both.record(us(value));
        both.record(us(value * 1000));
    }
    one.merge(&other);
    assert_eq!((one.n(), one.quantile(0.9), one.max()), (both.n(), both.quantile(0.9), both.max()));
}

#[test]
fn nothing_recorded_has_no_latency() {
    assert_eq!(Histogram::default().quantile(0.5), Duration::ZERO);
    assert_eq!(Histogram::default().mean(), Duration::ZERO);
}
