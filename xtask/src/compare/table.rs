//! The medians of both servers, and their ratio.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Options;
use super::servers::{Home, Side};

pub(super) const THROUGHPUT: &str = "operations a second";

/// What was measured, a value for each round: by scenario, then by name, in the order of their coming.
#[derive(Debug, Default)]
pub(super) struct Results {
    names: Vec<(String, &'static str)>,
    values: BTreeMap<(String, &'static str, Side), Vec<f64>>,
}

impl Results {
    pub(super) fn add(&mut self, scenario: &str, side: Side, name: &'static str, value: f64) {
        let place = (scenario.to_owned(), name);
        if !self.names.contains(&place) {
            self.names.push(place);
        }
        self.values.entry((scenario.to_owned(), name, side)).or_default().push(value);
    }

    fn median(&self, scenario: &str, name: &'static str, side: Side) -> Option<f64> {
        self.values(scenario, name, side).map(<[f64]>::to_vec).and_then(median)
    }

    /// Of our server, to what it was with another scenario in the same round: that was a moment before or after, so a machine that
    /// becomes faster or slower meanwhile changes both.
    fn ratios(&self, scenario: &str, other: &str, name: &'static str) -> Option<Vec<f64>> {
        let values = self.values(scenario, name, Side::Ours)?;
        let others = self.values(other, name, Side::Ours)?;
        Some(values.iter().zip(others).map(|(value, other)| value / other).collect())
    }

    /// One for each round.
    fn values(&self, scenario: &str, name: &'static str, side: Side) -> Option<&[f64]> {
        self.values.get(&(scenario.to_owned(), name, side)).map(Vec::as_slice)
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        Some(values[middle])
    } else {
        Some(f64::midpoint(*values.get(middle.checked_sub(1)?)?, values[middle]))
    }
}

/// As Markdown, so that it can go into a page as it is.
pub(super) fn text(home: Home, options: &Options, results: &Results) -> String {
    let mut text = format!(
        "\n{}: {} operations, {} at once, medians of {} rounds\n\n\
         | scenario | measure | Everrow | official | Everrow / official |\n|---|---|---|---|---|\n",
        home.name(),
        options.count,
        options.concurrency,
        options.rounds.unwrap_or(super::ROUNDS)
    );
    for (scenario, name) in &results.names {
        let ours = results.median(scenario, name, Side::Ours);
        let theirs = results.median(scenario, name, Side::Theirs);
        let (Some(ours), Some(theirs)) = (ours, theirs) else { continue };
        let ratio = if theirs == 0.0 { "–".to_owned() } else { figure(ours / theirs) };
        let _ = writeln!(text, "| {scenario} | {name} | {} | {} | {ratio} |", figure(ours), figure(theirs));
    }
    text
}

/// The medians of one server alone: a line for each measure, a column for each scenario.
pub(super) fn of_ours(results: &Results, scenarios: &[String]) -> String {
    let mut text = format!("| measure | {} |\n|---|{}\n", scenarios.join(" | "), "---|".repeat(scenarios.len()));
    let mut measures: Vec<&'static str> = Vec::new();
    for (_, name) in &results.names {
        if !measures.contains(name) {
            measures.push(name);
        }
    }
    for name in measures {
        let medians = scenarios.iter().map(|scenario| told_or_not(results.median(scenario, name, Side::Ours)));
        let _ = writeln!(text, "| {name} | {} |", medians.collect::<Vec<_>>().join(" | "));
    }
    text
}

/// Of one server alone: how the throughput of each step is to that of the step before.
pub(super) fn steps_of_ours(results: &Results, scenarios: &[String]) -> String {
    let mut text = of_ours(results, scenarios);
    let ratios: Vec<Vec<f64>> =
        scenarios.windows(2).filter_map(|step| results.ratios(&step[1], &step[0], THROUGHPUT)).collect();
    let _ =
        writeln!(text, "| to the step before | – | {} |", each(&ratios, |ratios| told_or_not(median(ratios.to_vec()))));
    let _ = writeln!(text, "| the same, 95 % interval | – | {} |", each(&ratios, between));
    let _ = writeln!(text, "| lower than the step before | – | {} |", each(&ratios, is_lower));
    text
}

fn told_or_not(value: Option<f64>) -> String {
    value.map_or("–".to_owned(), figure)
}

fn each(ratios: &[Vec<f64>], tell: impl Fn(&[f64]) -> String) -> String {
    ratios.iter().map(|ratios| tell(ratios)).collect::<Vec<_>>().join(" | ")
}

/// The 95 % confidence interval of the median, for any distribution: the number of values on one side of the median is
/// binomial, like the heads of a coin. `None` if there are too few values.
fn interval(values: &[f64]) -> Option<(f64, f64)> {
    const EACH_SIDE: f64 = 0.025;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n_values = sorted.len();
    // Of as many heads, and of as many or fewer.
    let mut exactly = 0.5_f64.powi(i32::try_from(n_values).ok()?);
    let mut at_most = exactly;
    let mut n_outside = 0;
    while at_most <= EACH_SIDE {
        n_outside += 1;
        exactly *= (n_values - n_outside + 1) as f64 / n_outside as f64;
        at_most += exactly;
    }
    let lower = n_outside.checked_sub(1)?;
    Some((sorted[lower], sorted[n_values - 1 - lower]))
}

fn between(values: &[f64]) -> String {
    interval(values).map_or("–".to_owned(), |(lower, upper)| format!("{} … {}", figure(lower), figure(upper)))
}

/// Chosen before anything was measured: a step is lower if the whole interval is, and not if the median is not.
fn is_lower(ratios: &[f64]) -> String {
    let (median, interval) = (median(ratios.to_vec()), interval(ratios));
    let told = match (median, interval) {
        (_, Some((_, upper))) if upper < 1.0 => "yes",
        (Some(median), Some(_)) if median >= 1.0 => "no",
        _ => "cannot be told",
    };
    told.to_owned()
}

/// Three digits that count.
fn figure(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    //! Medians by hand.

    use super::*;

    #[test]
    fn the_median_is_the_middle_value_or_lies_between_the_two_in_the_middle() {
        let mut results = Results::default();
        for value in [5.0, 1.0, 9.0] {
            results.add("s", Side::Ours, "m", value);
        }
        assert_eq!(results.median("s", "m", Side::Ours), Some(5.0));
        results.add("s", Side::Ours, "m", 7.0);
        assert_eq!(results.median("s", "m", Side::Ours), Some(6.0));
        assert_eq!(results.median("s", "m", Side::Theirs), None);
    }

    #[test]
    fn a_ratio_is_of_values_of_the_same_round() {
        let mut results = Results::default();
        // The machine is three times as fast in the second round, and half as fast in the third.
        for (before, after) in [(10.0, 11.0), (30.0, 36.0), (5.0, 6.5)] {
            results.add("before", Side::Ours, "m", before);
            results.add("after", Side::Ours, "m", after);
        }
        let ratios = results.ratios("after", "before", "m").expect("both were measured");
        assert_eq!(median(ratios), Some(1.2));
        assert_eq!(results.ratios("after", "never", "m"), None);
    }

    /// The ranks are those of published tables of the sign test.
    #[test]
    fn the_interval_leaves_out_as_many_values_as_chance_may_put_there() {
        let of = |n: u32| interval(&(1..=n).map(f64::from).collect::<Vec<_>>());
        assert_eq!([of(5), of(6), of(12), of(15)], [None, Some((1.0, 6.0)), Some((3.0, 10.0)), Some((4.0, 12.0))]);
        assert_eq!(of(0), None);
    }

    #[test]
    fn a_step_is_called_lower_only_if_the_whole_interval_is() {
        let of = |from: f64| is_lower(&(0..12).map(|n| from + f64::from(n) / 100.0).collect::<Vec<_>>());
        assert_eq!([of(0.8), of(0.93), of(0.95), of(1.1)], ["yes", "cannot be told", "no", "no"]);
    }

    #[test]
    fn figures_have_three_digits_that_count() {
        assert_eq!([123.4, 12.34, 1.234, 0.1234].map(figure), ["123", "12.3", "1.23", "0.123"]);
    }
}
