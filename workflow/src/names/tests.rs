//! What many commands look at, counted.

use std::cell::Cell;

use super::{Names, SCANS_MAX};
use crate::ids::EventId;

/// Starts things under names of their own, and says how many names were looked at.
fn looked_at(n_started: usize) -> usize {
    let n_looked_at = Cell::new(0);
    let mut names = Names::default();
    let mut pending: Vec<(String, EventId)> = Vec::new();
    for n in 0..n_started {
        let name = n.to_string();
        let all = pending.iter().map(|(name, id)| {
            n_looked_at.set(n_looked_at.get() + 1);
            (name.as_str(), *id)
        });
        assert_eq!(names.find(&name, all, |_| false), None);
        let id = EventId(i64::try_from(n).expect("a small number"));
        names.begun(&name, id);
        pending.push((name, id));
        assert_eq!(names.find("0", pending.iter().map(|(name, id)| (name.as_str(), *id)), |_| false), Some(EventId(0)));
    }
    n_looked_at.get()
}

#[test]
fn a_completion_of_many_commands_looks_at_what_is_pending_a_few_times() {
    assert!(looked_at(10_000) <= SCANS_MAX * SCANS_MAX);
    assert_eq!(looked_at(10_000), looked_at(20_000));
}

#[test]
fn what_ended_or_waits_to_is_not_found() {
    let mut names = Names::default();
    let all = [("a", EventId(1)), ("a", EventId(2)), ("b", EventId(3))];
    let is_over = |id: EventId| id == EventId(1) || id == EventId(3);
    for _ in 0..2 * SCANS_MAX {
        assert_eq!(names.find("a", all.into_iter(), is_over), Some(EventId(2)));
        assert_eq!(names.find("b", all.into_iter(), is_over), None);
    }
    names.ended("a");
    assert_eq!(names.find("a", all.into_iter(), is_over), None);
    names.begun("a", EventId(4));
    assert_eq!(names.find("a", all.into_iter(), is_over), Some(EventId(4)));
}
