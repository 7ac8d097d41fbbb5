//! Workflow scripts: a list of steps in the workflow's input, so that one worker executes all scenarios.
//!
//! Every step adds to a sum that is the workflow's result; so the result shows whether each step happened once.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, bail};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// This many activities at once; continues when all are completed.
    Activities(u32),
    /// This many timers at once.
    Timers { n: u32, after: Duration },
    /// This many children at once, with one activity each.
    Children(u32),
    /// Receives signals and updates until the end signal.
    Gather,
    /// The run ends here, and another one does the rest.
    ContinueAsNew,
}

/// The steps that are left, and the sum of those that are done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Script {
    pub sum: u64,
    pub steps: Vec<Step>,
}

/// More commands than a server takes at once would fail every workflow task.
const AT_ONCE_MAX: u32 = 1000;

/// The script of every child.
#[must_use]
pub fn of_child() -> Script {
    Script { sum: 0, steps: vec![Step::Activities(1)] }
}

/// Result of the activity of this number (from 1).
#[must_use]
pub fn answer(number: u64) -> u64 {
    2 * number + 1
}

impl Script {
    #[must_use]
    pub fn of(steps: Vec<Step>) -> Self {
        Self { sum: 0, steps }
    }

    /// What the last run returns, if `Gather` adds nothing.
    #[must_use]
    pub fn expected(&self) -> u64 {
        self.sum + self.steps.iter().map(Step::worth).sum::<u64>()
    }

    /// How many runs the script takes, besides those of children.
    #[must_use]
    pub fn n_runs(&self) -> usize {
        1 + self.steps.iter().filter(|step| **step == Step::ContinueAsNew).count()
    }

    /// Total duration of its timers.
    #[must_use]
    pub fn waits(&self) -> Duration {
        let wait = |step: &Step| match step {
            Step::Timers { after, .. } => *after,
            Step::Activities(_) | Step::Children(_) | Step::Gather | Step::ContinueAsNew => Duration::ZERO,
        };
        self.steps.iter().map(wait).sum()
    }
}

impl Step {
    fn worth(&self) -> u64 {
        match self {
            Self::Activities(n) => (1..=u64::from(*n)).map(answer).sum(),
            Self::Timers { n, .. } => u64::from(*n),
            Self::Children(n) => u64::from(*n) * of_child().expected(),
            Self::Gather | Self::ContinueAsNew => 0,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Activities(n) => write!(f, "activities:{n}"),
            Self::Timers { n, after } => write!(f, "timers:{n}@{}ms", after.as_millis()),
            Self::Children(n) => write!(f, "children:{n}"),
            Self::Gather => f.write_str("gather"),
            Self::ContinueAsNew => f.write_str("continue-as-new"),
        }
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.sum)?;
        self.steps.iter().try_for_each(|step| write!(f, " {step}"))
    }
}

impl FromStr for Step {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (word, rest) = text.split_once(':').unwrap_or((text, ""));
        let number = |text: &str| -> anyhow::Result<u32> {
            let n = text.parse().with_context(|| format!("{text:?} is no number of things"))?;
            if n > AT_ONCE_MAX {
                bail!("{n} at once is more than {AT_ONCE_MAX}");
            }
            Ok(n)
        };
        Ok(match word {
            "activities" => Self::Activities(number(rest)?),
            "children" => Self::Children(number(rest)?),
            "gather" => Self::Gather,
            "continue-as-new" => Self::ContinueAsNew,
            "timers" => {
                let (n, after) = rest.split_once('@').context("timers need a moment: timers:3@500ms")?;
                let after = after.strip_suffix("ms").context("a moment ends in ms")?;
                Self::Timers { n: number(n)?, after: Duration::from_millis(after.parse()?) }
            }
            _ => bail!("no step is called {word:?}"),
        })
    }
}

impl FromStr for Script {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let mut words = text.split_whitespace();
        let sum = words.next().context("a script begins with a sum")?.parse()?;
        Ok(Self { sum, steps: words.map(str::parse).collect::<Result<_, _>>()? })
    }
}

#[cfg(test)]
mod tests;
