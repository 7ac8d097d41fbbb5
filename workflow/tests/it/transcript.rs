//! Transcripts: what each input does to a run, written out in full and compared with a kept text. An event, a queue task,
//! a reply or a field of the state that changes shows as a line that differs.
//!
//! The texts lie beside the scenarios in `transcript/`. `EVERROW_TRANSCRIPTS=write` writes them instead of comparing.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write as _};
use std::path::PathBuf;

use workflow::{ExecutionState, Items, Rejection, Reply, Start, Task, Timestamp};

use crate::run::{Run, facts};

mod full;

mod activities;
mod children;
mod ends;
mod next_runs;
mod operations;
mod resets;
mod starts;
mod updates;
mod workflow_tasks;

/// Columns after which a line of a transcript is broken.
const WIDTH: usize = 140;

/// A run, and the text of what happened to it so far.
pub(crate) struct Transcript {
    pub(crate) run: Run,
    text: String,
}

impl Transcript {
    /// Begins with a run that starts.
    pub(crate) fn started(title: &str, start: Start) -> Self {
        Self::of(title, Run::started_as(start))
    }

    /// Begins with a run as it is.
    pub(crate) fn of(title: &str, run: Run) -> Self {
        let mut transcript = Self { run, text: String::new() };
        transcript.title(title);
        let before = Seen { next_event_id: 1, ..Seen::default() };
        transcript.write_changes(&before);
        transcript
    }

    /// Goes on with another run.
    pub(crate) fn follow(&mut self, title: &str, run: Run) {
        let next = Self::of(title, run);
        self.text.push_str(&next.text);
        self.run = next.run;
    }

    fn title(&mut self, title: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        writeln!(self.text, "# {title}").unwrap();
    }

    /// Does something to the run and writes down what came of it.
    pub(crate) fn step(&mut self, title: &str, act: impl FnOnce(&mut Run) -> Result<Reply, Rejection>) -> &mut Self {
        let before = Seen::of(&self.run);
        self.title(title);
        match act(&mut self.run) {
            Ok(reply) => self.line("reply", &reply),
            Err(rejection) => self.line("rejected", &rejection),
        }
        self.write_changes(&before);
        self
    }

    fn write_changes(&mut self, before: &Seen) {
        let after = Seen::of(&self.run);
        let events: Vec<_> =
            self.run.events().filter(|event| event.event_id >= before.next_event_id).cloned().collect();
        for event in events {
            self.line("event", &event);
        }
        let mut earlier = before.tasks.clone();
        for task in after.tasks {
            match earlier.iter().position(|known| *known == task) {
                Some(position) => drop(earlier.remove(position)),
                None => self.line("task", &task),
            }
        }
        let notices = self.run.notices[before.n_notices..].to_vec();
        for notice in &notices {
            self.line("notice", notice);
        }
        for (name, value) in &after.fields {
            if before.fields.get(name) != Some(value) {
                self.push_line(&format!("{name} = {value}"));
            }
        }
        for name in before.fields.keys().filter(|name| !after.fields.contains_key(*name)) {
            self.push_line(&format!("{name} is gone"));
        }
    }

    fn line(&mut self, label: &str, value: &impl Debug) {
        self.push_line(&format!("{label}: {}", shown(value)));
    }

    /// Breaks a long line after commas.
    fn push_line(&mut self, line: &str) {
        let mut column = 0;
        for word in line.split_inclusive(", ") {
            if column > 0 && column + word.len() > WIDTH {
                self.text.truncate(self.text.trim_end_matches(' ').len());
                self.text.push_str("\n    ");
                column = 4;
            }
            self.text.push_str(word);
            column += word.len();
        }
        self.text.push('\n');
    }

    /// Compares all that was written with the kept text of this name.
    pub(crate) fn check(&self, name: &str) {
        let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests/it/transcript", name].iter().collect();
        let path = path.with_extension("txt");
        if std::env::var_os("EVERROW_TRANSCRIPTS").is_some_and(|mode| mode == "write") {
            std::fs::write(&path, &self.text).unwrap();
            return;
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        for (n, (now, kept)) in self.text.lines().zip(kept.lines()).enumerate() {
            assert_eq!(now, kept, "line {} of {name}.txt; EVERROW_TRANSCRIPTS=write writes it", n + 1);
        }
        assert_eq!(self.text.lines().count(), kept.lines().count(), "{name}.txt; EVERROW_TRANSCRIPTS=write writes it");
    }
}

/// What there was of a run before a step.
#[derive(Default)]
struct Seen {
    next_event_id: i64,
    tasks: Vec<Task>,
    n_notices: usize,
    fields: BTreeMap<String, String>,
}

impl Seen {
    fn of(run: &Run) -> Self {
        Self {
            next_event_id: run.state.next_event_id.0,
            tasks: run.tasks.clone(),
            n_notices: run.notices.len(),
            fields: fields(&run.state),
        }
    }
}

/// Every field of a state and every pending item; the branch and the number of events follow from the events.
fn fields(state: &ExecutionState) -> BTreeMap<String, String> {
    let mut fields = BTreeMap::new();
    let mut put = |name: &str, value: &dyn Debug| drop(fields.insert(name.to_owned(), shown(&value)));
    put("started", &state.started);
    put("status", &state.status);
    put("closed", &state.closed);
    put("workflow_task", &state.workflow_task);
    put("workflow_task_attempt", &state.workflow_task_attempt);
    put("last_completed_started_event_id", &state.last_completed_started_event_id);
    put("cancel_requested", &state.cancel_requested);
    put("signal_request_ids", &state.signal_request_ids.iter().collect::<Vec<_>>());
    put("n_signals", &state.n_signals);
    put("history_size", &state.history_size);
    put("memo", &state.memo);
    put("search_attributes", &state.search_attributes);
    put("shown_search_attributes", &workflow::shown_search_attributes(state));
    put("priority", &state.priority);
    put("callbacks", &state.callbacks);
    put("known_requests", &state.known_requests);
    put("reset_points", &state.reset_points);
    put("pause", &state.pause);
    put("unwritten_events", &workflow::unwritten_events(state));
    let sizes = [state.state_row_size(), state.started_row_size(), state.mutable_state_size()];
    put("sizes of the state row, the started row and all but history", &sizes);
    put_unrecorded(state, &mut fields);
    put_items(&mut fields, "activity", &state.activities);
    put_items(&mut fields, "timer", &state.timers);
    put_items(&mut fields, "child", &state.children);
    put_items(&mut fields, "external signal", &state.external_signals);
    put_items(&mut fields, "external cancel request", &state.external_cancels);
    put_items(&mut fields, "update", &state.updates);
    put_items(&mut fields, "buffered event", &state.unrecorded.buffered_events);
    fields
}

/// What no event says, save the items and what every transition changes.
fn put_unrecorded(state: &ExecutionState, fields: &mut BTreeMap<String, String>) {
    let unrecorded = &state.unrecorded;
    let mut put = |name: &str, value: &dyn Debug| drop(fields.insert(name.to_owned(), shown(&value)));
    put("unrecorded.sticky", &unrecorded.sticky);
    put("unrecorded.start_request_id", &unrecorded.start_request_id);
    put("unrecorded.reset_request_id", &unrecorded.reset_request_id);
    put("unrecorded.cancel_request_id", &unrecorded.cancel_request_id);
    put("unrecorded.reset_run_id", &unrecorded.reset_run_id);
    put("unrecorded.is_closing", &unrecorded.is_closing);
    put("unrecorded.listing", &unrecorded.listing);
    put("unrecorded.schedule_id", &unrecorded.schedule_id);
}

fn put_items<V: Clone + Debug>(fields: &mut BTreeMap<String, String>, name: &str, items: &Items<V>) {
    for (id, item) in items.iter() {
        fields.insert(format!("{name} {id}"), shown(&item));
    }
}

/// As `Debug` writes it, without fields that are not set, and with times counted from the start of the run.
fn shown(value: &impl Debug) -> String {
    relative(&sorted_maps(&without_defaults(format!("{value:?}"))))
}

/// Puts the entries of hash maps in order. No text in a scenario has a brace or a bracket.
fn sorted_maps(text: &str) -> String {
    let Some(at) = text.find("{\"") else { return text.to_owned() };
    let (before, map) = text.split_at(at + 1);
    let (mut depth, mut entries) = (0, vec![String::new()]);
    for (position, letter) in map.char_indices() {
        depth += i32::from(matches!(letter, '{' | '[' | '(')) - i32::from(matches!(letter, '}' | ']' | ')'));
        if depth < 0 {
            let mut entries: Vec<String> = entries.iter().map(|entry| sorted_maps(entry.trim_start())).collect();
            entries.sort_unstable();
            return format!("{before}{}{}", entries.join(", "), sorted_maps(&map[position..]));
        }
        match letter {
            ',' if depth == 0 => entries.push(String::new()),
            _ => entries.last_mut().unwrap().push(letter),
        }
    }
    text.to_owned()
}

fn without_defaults(mut text: String) -> String {
    for default in ["None", "\"\"", "0", "false", "[]", "{}", "0.0", "b\"\"", "Unspecified", "0ns"] {
        for (tail, kept) in [(", ", 0), (" }", 2)] {
            let pattern = format!(": {default}{tail}");
            while let Some(at) = text.find(&pattern) {
                let is_name = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '#';
                let start = text[..at].rfind(|letter: char| !is_name(letter)).map_or(0, |before| before + 1);
                text.replace_range(start..at + pattern.len() - kept, "");
            }
        }
    }
    text.replace(",  }", " }").replace("{  }", "{}")
}

/// Writes moments of both kinds as seconds since the start of the run.
fn relative(text: &str) -> String {
    const SECOND: i64 = 1_000_000_000;
    let Timestamp(origin) = facts().now;
    let mut parts = text.split("Timestamp");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (moment, rest) = if let Some(ours) = part.strip_prefix('(') {
            let (nanos, rest) = ours.split_once(')').unwrap();
            (nanos.parse::<i64>().unwrap(), rest)
        } else {
            let (of_proto, rest) = part.split_once('}').unwrap();
            let number = |name: &str| {
                let (_, value) = of_proto.split_once(name)?;
                value.split([',', ' ']).find(|word| !word.is_empty())?.parse::<i64>().ok()
            };
            (number("seconds:").unwrap_or(0) * SECOND + number("nanos:").unwrap_or(0), rest)
        };
        let since = (moment - origin) as f64 / SECOND as f64;
        write!(out, "{since:+}s{rest}").unwrap();
    }
    out
}
