//! CPU time of this process, where `/proc` reports it.

use std::time::Duration;

/// Clock tick of `/proc`: 10 ms on every Linux that has not been built otherwise.
const TICK: Duration = Duration::from_millis(10);

pub(crate) fn of_this_process() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    ticks(&stat).map(|ticks| TICK * ticks)
}

/// User and system time: the 14th and 15th field. The name, which may hold spaces, ends with the last bracket.
fn ticks(stat: &str) -> Option<u32> {
    let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace().skip(11);
    let (user, system): (u32, u32) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(user + system)
}

#[cfg(test)]
mod tests {
    //! A line as the kernel writes it.

    use super::*;

    #[test]
    fn both_times_are_found_behind_a_name_with_spaces_and_brackets() {
        let line = "42 (a (b) c) S 1 42 42 0 -1 4194560 100 0 0 0 250 30 0 0 20 0 9 0 100 1000 10";
        assert_eq!(ticks(line), Some(280));
    }
}
