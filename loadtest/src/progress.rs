//! Progress of a run in its script: folded from its events, as an SDK's replay does. Pure.

use bytes::Bytes;
use proto::temporal::api::command::v1::Command;
use proto::temporal::api::common::v1::Payloads;
use proto::temporal::api::history::v1::HistoryEvent;
use proto::temporal::api::history::v1::history_event::Attributes;

use crate::script::{self, Script, Step};
use crate::{commands, payload};

/// A signal of this name ends `Gather`; any other adds its value.
pub(crate) const END_SIGNAL: &str = "end";

#[derive(Debug, Default)]
pub(crate) struct Progress {
    script: Script,
    /// The current step, and whether its commands were issued.
    step: usize,
    is_issued: bool,
    /// Pending activities, timers or children of this step.
    n_open: u32,
    is_end_requested: bool,
    last_event_id: i64,
    /// Started event of the task that was last completed here.
    answered: i64,
}

/// Context of the commands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) workflow_id: &'a str,
    pub(crate) task_queue: &'a str,
    pub(crate) padding: &'a Bytes,
}

impl Progress {
    /// The sum so far, which queries return.
    pub(crate) fn sum(&self) -> u64 {
        self.script.sum
    }

    /// Whether the last completion closed the run.
    pub(crate) fn is_over(&self) -> bool {
        let step = self.script.steps.get(self.step);
        step.is_none_or(|step| *step == Step::ContinueAsNew && self.is_issued)
    }

    /// Whether these events directly follow those applied.
    pub(crate) fn is_continued_by(&self, events: &[HistoryEvent]) -> bool {
        events.first().is_none_or(|event| event.event_id == self.last_event_id + 1)
    }

    pub(crate) fn apply(&mut self, events: &[HistoryEvent], place: Place<'_>) {
        for event in events {
            self.last_event_id = event.event_id;
            self.apply_one(event.attributes.as_ref(), place);
        }
    }

    fn apply_one(&mut self, attributes: Option<&Attributes>, place: Place<'_>) {
        match attributes {
            Some(Attributes::WorkflowExecutionStartedEventAttributes(started)) => {
                let text: String = payload::read(started.input.as_ref()).unwrap_or_default();
                // An unreadable script does nothing, and its result shows that.
                self.script = text.parse().unwrap_or_default();
            }
            // A task that another worker completed: its commands were issued then.
            Some(Attributes::WorkflowTaskCompletedEventAttributes(completed))
                if completed.started_event_id > self.answered =>
            {
                self.advance(place);
            }
            Some(Attributes::ActivityTaskCompletedEventAttributes(completed)) => {
                self.one_over(completed.result.as_ref())
            }
            Some(Attributes::ChildWorkflowExecutionCompletedEventAttributes(completed)) => {
                self.one_over(completed.result.as_ref());
            }
            Some(Attributes::TimerFiredEventAttributes(_)) => {
                self.script.sum += 1;
                self.n_open = self.n_open.saturating_sub(1);
            }
            Some(Attributes::WorkflowExecutionSignaledEventAttributes(signal)) if signal.signal_name == END_SIGNAL => {
                self.is_end_requested = true;
            }
            Some(Attributes::WorkflowExecutionSignaledEventAttributes(signal)) => self.add(signal.input.as_ref()),
            Some(Attributes::WorkflowExecutionUpdateAcceptedEventAttributes(accepted)) => {
                let input = accepted.accepted_request.as_ref().and_then(|request| request.input.as_ref());
                self.add(input.and_then(|input| input.args.as_ref()));
            }
            _ => {}
        }
    }

    fn add(&mut self, value: Option<&Payloads>) {
        self.script.sum += payload::read::<u64>(value).unwrap_or_default();
    }

    fn one_over(&mut self, result: Option<&Payloads>) {
        self.add(result);
        self.n_open = self.n_open.saturating_sub(1);
    }

    /// Completes the task with this started event; returns the commands that are due now.
    pub(crate) fn answer(&mut self, started_event_id: i64, place: Place<'_>) -> Vec<Command> {
        self.answered = started_event_id;
        self.advance(place)
    }

    fn advance(&mut self, place: Place<'_>) -> Vec<Command> {
        let mut given = Vec::new();
        loop {
            let Some(step) = self.script.steps.get(self.step).cloned() else {
                given.push(commands::complete(self.script.sum));
                return given;
            };
            if !self.is_issued {
                self.is_issued = true;
                self.issue(&step, place, &mut given);
            }
            let is_done = match step {
                Step::Activities(_) | Step::Timers { .. } | Step::Children(_) => self.n_open == 0,
                Step::Gather => self.is_end_requested,
                Step::ContinueAsNew => false,
            };
            if !is_done {
                return given;
            }
            self.step += 1;
            self.is_issued = false;
        }
    }

    fn issue(&mut self, step: &Step, place: Place<'_>, given: &mut Vec<Command>) {
        let name = |number: u64| format!("{}-{number}", self.step);
        match step {
            Step::Activities(n) => {
                self.n_open = *n;
                let one = |n| commands::schedule_activity(name(n), n, place.task_queue, place.padding);
                given.extend((1..=u64::from(*n)).map(one));
            }
            Step::Timers { n, after } => {
                self.n_open = *n;
                given.extend((1..=u64::from(*n)).map(|n| commands::start_timer(name(n), *after)));
            }
            Step::Children(n) => {
                self.n_open = *n;
                let id = |n| format!("{}/{}", place.workflow_id, name(n));
                let one = |n| commands::start_child(id(n), &script::of_child(), place.task_queue);
                given.extend((1..=u64::from(*n)).map(one));
            }
            Step::Gather => {}
            Step::ContinueAsNew => {
                let rest = Script { sum: self.script.sum, steps: self.script.steps[self.step + 1..].to_vec() };
                given.push(commands::continue_as_new(&rest, place.task_queue));
            }
        }
    }
}

#[cfg(test)]
mod tests;
