//! What is larger than it should be: a list with reasons that may only shrink.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};

use super::Violation;

const LIST: &str = "xtask/tidy-exceptions.txt";

/// Sizes by name. A name that no check has asked for is left over.
pub(super) struct Exceptions(BTreeMap<String, usize>);

/// The size of a thing, and where it stands.
pub(super) struct Measured<'a> {
    pub(super) path: &'a str,
    pub(super) line: usize,
    /// A path, or a path and what is in it.
    pub(super) name: String,
    pub(super) size: usize,
    pub(super) allowed: usize,
    pub(super) unit: &'static str,
}

impl Exceptions {
    pub(super) fn read(root: &Path) -> Result<Self> {
        let list = std::fs::read_to_string(root.join(LIST)).with_context(|| format!("cannot read {LIST}"))?;
        Self::parse(&list)
    }

    /// Each line: the name, the size it has, and the reason.
    pub(super) fn parse(list: &str) -> Result<Self> {
        let lines = list.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
        let entries = lines.map(|line| {
            let mut words = line.split_whitespace();
            let name = words.next().with_context(|| format!("{LIST}: no name in {line:?}"))?;
            let size = words.next().and_then(|word| word.parse().ok());
            let size = size.with_context(|| format!("{LIST}: no number in {line:?}"))?;
            words.next().with_context(|| format!("{LIST}: no reason in {line:?}"))?;
            Ok((name.to_owned(), size))
        });
        entries.collect::<Result<_>>().map(Self)
    }

    pub(super) fn judge(&mut self, measured: &Measured<'_>) -> Option<Violation> {
        let Measured { path, line, name, size, allowed, unit } = measured;
        if size <= allowed {
            return None;
        }
        match self.0.remove(name) {
            None => Some(Violation::new(path, *line, format!("{name} has {size} {unit}, {allowed} are allowed"))),
            Some(listed) if *size > listed => {
                let message = format!("{name} has {size} {unit}, and must not grow beyond {listed}");
                Some(Violation::new(path, *line, message))
            }
            Some(listed) if *size < listed => {
                let message = format!("{name} has shrunk to {size} {unit}: lower it from {listed}");
                Some(Violation::new(LIST, 1, message))
            }
            Some(_) => None,
        }
    }

    /// Names that are on the list without need.
    pub(super) fn left_over(self) -> impl Iterator<Item = Violation> {
        let message = |name: String| format!("{name} is small enough or gone: take it off the list");
        self.0.into_keys().map(move |name| Violation::new(LIST, 1, message(name)))
    }
}
