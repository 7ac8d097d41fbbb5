//! The live view: a progress bar, the rate, latencies as a sparkline, and errors, redrawn in place on a terminal; a line
//! now and then elsewhere. Written to the standard error output, so that results can be piped.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::plan::{Extent, Load, Plan};
use crate::record::{Measured, Recorder};

const REDRAW_EVERY: Duration = Duration::from_millis(250);
const LINE_EVERY: Duration = Duration::from_secs(5);
const BAR_WIDTH: usize = 30;
const SPARKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const SPARKS_SHOWN: usize = 40;

/// Runs until it is ended.
pub(crate) struct View {
    end: watch::Sender<bool>,
    task: JoinHandle<()>,
}

struct Scene {
    title: String,
    extent: Extent,
    began_at: Instant,
    recorder: Arc<Recorder>,
}

impl View {
    pub(crate) fn start(plan: &Plan, recorder: Arc<Recorder>, began_at: Instant) -> Self {
        let title = format!("{} on {}, {}", plan.scenario.name(), plan.address, load_text(&plan.load));
        let scene = Scene { title, extent: plan.extent, began_at, recorder };
        let (end, ended) = watch::channel(false);
        let is_terminal = std::io::stderr().is_terminal();
        Self { end, task: tokio::spawn(scene.show(ended, is_terminal)) }
    }

    /// Draws the last state and stops.
    pub(crate) async fn end(self) {
        self.end.send_replace(true);
        // A failed view must not fail the run.
        let _ = self.task.await;
    }
}

pub(crate) fn load_text(load: &Load) -> String {
    match load {
        Load::Closed { concurrency } => format!("{concurrency} at once"),
        Load::Stepped { steps, each } => format!("{steps:?} at once, {} s each", each.as_secs_f64()),
        Load::Open { rate, .. } => format!("{rate} a second"),
    }
}

impl Scene {
    async fn show(self, mut ended: watch::Receiver<bool>, is_terminal: bool) {
        let every = if is_terminal { REDRAW_EVERY } else { LINE_EVERY };
        eprintln!("{}", self.title);
        let mut is_first = true;
        loop {
            let is_last = tokio::time::timeout(every, ended.wait_for(|ended| *ended)).await.is_ok();
            let measured = self.recorder.measured();
            let done = share_done(self.extent, &measured, self.began_at.elapsed());
            if is_terminal {
                // Up over what was drawn before, and wipe it.
                let up = if is_first { "" } else { "\x1b[3A\x1b[J" };
                draw(&format!("{up}{}", picture(&measured, done, self.began_at.elapsed())));
                is_first = false;
            } else {
                draw(&format!("{}\n", line(&measured, done, self.began_at.elapsed())));
            }
            if is_last {
                return;
            }
        }
    }
}

fn draw(text: &str) {
    let mut output = std::io::stderr().lock();
    // A failed write to stderr cannot be reported.
    let _ = output.write_all(text.as_bytes()).and_then(|()| output.flush());
}

fn share_done(extent: Extent, measured: &Measured, elapsed: Duration) -> f64 {
    let share = match extent {
        Extent::Count(count) => (measured.all.n() + measured.n_failed) as f64 / count.max(1) as f64,
        Extent::Duration(duration) => elapsed.as_secs_f64() / duration.as_secs_f64(),
    };
    share.clamp(0.0, 1.0)
}

/// Three lines.
fn picture(measured: &Measured, done: f64, elapsed: Duration) -> String {
    let filled = ((done * BAR_WIDTH as f64) as usize).min(BAR_WIDTH);
    let bar = "█".repeat(filled) + &"░".repeat(BAR_WIDTH - filled);
    let mut text = format!("  {bar} {:3.0} %  {:.0} s\n", done * 100.0, elapsed.as_secs_f64());
    let _ = writeln!(text, "  {}", figures(measured, elapsed));
    let _ = writeln!(text, "  p99 {}  {}", sparkline(&recent_p99(measured)), errors(measured));
    text
}

fn line(measured: &Measured, done: f64, elapsed: Duration) -> String {
    format!(
        "  {:3.0} %  {:4.0} s  {}  {}",
        done * 100.0,
        elapsed.as_secs_f64(),
        figures(measured, elapsed),
        errors(measured)
    )
}

fn figures(measured: &Measured, elapsed: Duration) -> String {
    let recent = recent_rate(measured, elapsed);
    let all = &measured.all;
    let ms = |share| all.quantile(share).as_secs_f64() * 1000.0;
    format!(
        "{} done, {recent:.0}/s now, {:.0}/s in all, p50 {:.1} ms, p99 {:.1} ms",
        all.n(),
        measured.rate(),
        ms(0.5),
        ms(0.99)
    )
}

/// Of the last full interval.
fn recent_rate(measured: &Measured, elapsed: Duration) -> f64 {
    let current = usize::try_from(elapsed.as_nanos() / measured.interval.as_nanos()).unwrap_or_default();
    let last_full = current.checked_sub(1).and_then(|index| measured.intervals.get(index));
    last_full.map_or(0.0, |interval| interval.latencies.n() as f64 / measured.interval.as_secs_f64())
}

fn errors(measured: &Measured) -> String {
    let by_code: Vec<String> = measured.errors.iter().map(|(code, n)| format!("{code} {n}")).collect();
    match (measured.n_failed, by_code.is_empty()) {
        (0, true) => "no errors".into(),
        (0, false) => format!("tried again: {}", by_code.join(", ")),
        (n, _) => format!("{n} FAILED; errors: {}", by_code.join(", ")),
    }
}

fn recent_p99(measured: &Measured) -> Vec<Duration> {
    let skipped = measured.intervals.len().saturating_sub(SPARKS_SHOWN);
    measured.intervals.iter().skip(skipped).map(|interval| interval.latencies.quantile(0.99)).collect()
}

/// Each value as a bar, the largest as a full one.
fn sparkline(values: &[Duration]) -> String {
    let largest = values.iter().max().copied().unwrap_or_default().as_secs_f64().max(f64::MIN_POSITIVE);
    let spark = |value: &Duration| {
        let height = (value.as_secs_f64() / largest * 7.0).round() as usize;
        SPARKS[height.min(7)]
    };
    values.iter().map(spark).collect()
}

#[cfg(test)]
mod tests {
    //! What is drawn, without a terminal.

    use super::*;

    #[test]
    fn the_sparkline_is_as_high_as_its_values() {
        let ms = Duration::from_millis;
        assert_eq!(sparkline(&[ms(0), ms(50), ms(100)]), "▁▅█");
        assert_eq!(sparkline(&[]), "");
    }

    #[test]
    fn the_picture_has_the_three_lines_that_are_wiped_before_the_next() {
        let picture = picture(&Measured::default(), 0.5, Duration::from_secs(3));
        assert_eq!(picture.lines().count(), 3);
        assert!(picture.contains("███████████████░") && picture.contains("50 %"), "{picture}");
    }

    #[test]
    fn failures_are_shouted_and_retries_are_not() {
        let mut measured = Measured::default();
        measured.errors.insert("Unavailable".into(), 3);
        assert_eq!(errors(&measured), "tried again: Unavailable 3");
        measured.n_failed = 1;
        assert!(errors(&measured).contains("1 FAILED"));
    }
}
