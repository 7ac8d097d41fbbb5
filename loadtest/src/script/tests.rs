//! Scripts survive their journey through a payload, and their sums are those of a pencil.

use super::*;

#[track_caller]
fn check(text: &str, expected: u64, n_runs: usize) {
    let script: Script = text.parse().expect("the text is a script");
    assert_eq!(script.to_string(), text);
    assert_eq!((script.expected(), script.n_runs()), (expected, n_runs));
}

#[test]
fn a_script_is_read_as_it_was_written() {
    check("0", 0, 1);
    check("5 activities:1", 8, 1);
    check("0 activities:1 activities:1", 6, 1);
    check("0 activities:3", 15, 1);
    check("0 timers:4@1500ms children:2", 10, 1);
    check("0 continue-as-new continue-as-new gather", 0, 3);
}

#[test]
fn what_is_no_script_is_refused() {
    for text in ["", "x", "0 dance", "0 activities:1001", "0 timers:3", "0 timers:3@5s"] {
        assert!(text.parse::<Script>().is_err(), "{text:?} was taken");
    }
}

#[test]
fn a_script_waits_as_long_as_its_timers_together() {
    let script: Script = "0 timers:9@700ms activities:1 timers:1@300ms".parse().expect("a script");
    assert_eq!(script.waits(), Duration::from_secs(1));
}
