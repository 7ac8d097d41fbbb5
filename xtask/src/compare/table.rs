//! The medians of both servers, and their ratio.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Options;
use super::servers::{Home, Side};

pub(super) const THROUGHPUT: &str = "operations a second";
/// What the gauge told meanwhile.
pub(super) const SPEED: &str = "speed of the machine";
const AT_EQUAL_SPEED: &str = "operations a second, at equal speed";

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

    /// Adds what our server would have done if the machine had always had the speed that it mostly had: with all processors busy, one
    /// that is a tenth slower does a tenth less.
    pub(super) fn add_at_equal_speed(&mut self, scenarios: &[String]) {
        let of = |results: &Self, scenario: &str, name| {
            results.values(scenario, name, Side::Ours).map(<[f64]>::to_vec).unwrap_or_default()
        };
        let speeds = scenarios.iter().flat_map(|scenario| of(self, scenario, SPEED)).collect();
        let Some(usual) = median(speeds) else { return };
        for scenario in scenarios {
            let rounds = of(self, scenario, THROUGHPUT).into_iter().zip(of(self, scenario, SPEED));
            for (done, speed) in rounds {
                self.add(scenario, Side::Ours, AT_EQUAL_SPEED, done * usual / speed);
            }
        }
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
        options.rounds
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
    let told = |value: Option<f64>| value.map_or("–".to_owned(), figure);
    for name in measures {
        let medians = scenarios.iter().map(|scenario| told(results.median(scenario, name, Side::Ours)));
        let _ = writeln!(text, "| {name} | {} |", medians.collect::<Vec<_>>().join(" | "));
    }
    for name in [THROUGHPUT, AT_EQUAL_SPEED] {
        let ratios: Vec<Vec<f64>> =
            scenarios.windows(2).filter_map(|step| results.ratios(&step[1], &step[0], name)).collect();
        let medians: Vec<_> = ratios.iter().map(|ratios| told(median(ratios.clone()))).collect();
        let _ = writeln!(text, "| {name}, to the step before | – | {} |", medians.join(" | "));
        let spreads: Vec<_> = ratios.iter().map(|ratios| spread(ratios)).collect();
        let _ = writeln!(text, "| the same, least and most of the rounds | – | {} |", spreads.join(" | "));
    }
    text
}

fn spread(values: &[f64]) -> String {
    let least = values.iter().copied().reduce(f64::min);
    let most = values.iter().copied().reduce(f64::max);
    least.zip(most).map_or("–".to_owned(), |(least, most)| format!("{} … {}", figure(least), figure(most)))
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
        assert_eq!(median(ratios.clone()), Some(1.2));
        assert_eq!(spread(&ratios), "1.10 … 1.30");
        assert_eq!(results.ratios("after", "never", "m"), None);
    }

    #[test]
    fn a_slow_machine_is_made_up_for() {
        let mut results = Results::default();
        for (done, speed) in [(100.0, 1.0), (50.0, 0.5), (110.0, 1.0)] {
            results.add("s", Side::Ours, THROUGHPUT, done);
            results.add("s", Side::Ours, SPEED, speed);
        }
        results.add_at_equal_speed(&["s".to_owned()]);
        assert_eq!(results.values("s", AT_EQUAL_SPEED, Side::Ours), Some(&[100.0, 100.0, 110.0][..]));
    }

    #[test]
    fn figures_have_three_digits_that_count() {
        assert_eq!([123.4, 12.34, 1.234, 0.1234].map(figure), ["123", "12.3", "1.23", "0.123"]);
    }
}
