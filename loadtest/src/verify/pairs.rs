//! Checks that what begins in a history ends in it once: activities, timers, children, updates, workflow tasks.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use proto::temporal::api::history::v1::HistoryEvent;
use proto::temporal::api::history::v1::history_event::Attributes;

use super::Counts;

pub(super) const ACTIVITY: &str = "ActivityTaskCompleted";
pub(super) const TIMER: &str = "TimerFired";
pub(super) const CHILD: &str = "ChildWorkflowExecutionCompleted";
pub(super) const SIGNAL: &str = "WorkflowExecutionSignaled";
pub(super) const UPDATE: &str = "WorkflowExecutionUpdateCompleted";
const WORKFLOW_TASK: &str = "WorkflowTaskCompleted";

/// Items that have begun and not ended, by kind and the event that began them.
#[derive(Default)]
struct Open<'a> {
    begun: BTreeMap<(&'static str, i64), &'a HistoryEvent>,
    ended: Counts,
    signals: BTreeMap<&'a str, i64>,
}

/// Number of successful ends of each kind.
pub(super) fn count(events: &[HistoryEvent]) -> Result<Counts> {
    let mut open = Open::default();
    for event in events {
        open.see(event).with_context(|| format!("event {}", event.event_id))?;
    }
    if let Some(((name, began), _)) = open.begun.first_key_value() {
        anyhow::bail!("what event {began} began has no {name}");
    }
    Ok(open.ended)
}

impl<'a> Open<'a> {
    fn see(&mut self, event: &'a HistoryEvent) -> Result<()> {
        use Attributes as A;
        let id = event.event_id;
        match event.attributes.as_ref() {
            Some(A::ActivityTaskScheduledEventAttributes(_)) => self.begin(ACTIVITY, event),
            Some(A::ActivityTaskCompletedEventAttributes(it)) => self.end(ACTIVITY, it.scheduled_event_id)?,
            Some(A::TimerStartedEventAttributes(_)) => self.begin(TIMER, event),
            Some(A::TimerFiredEventAttributes(it)) => self.fire(event, it.started_event_id)?,
            Some(A::StartChildWorkflowExecutionInitiatedEventAttributes(_)) => self.begin(CHILD, event),
            Some(A::ChildWorkflowExecutionCompletedEventAttributes(it)) => self.end(CHILD, it.initiated_event_id)?,
            Some(A::WorkflowExecutionUpdateAcceptedEventAttributes(_)) => self.begin(UPDATE, event),
            Some(A::WorkflowExecutionUpdateCompletedEventAttributes(it)) => self.end(UPDATE, it.accepted_event_id)?,
            Some(A::WorkflowTaskScheduledEventAttributes(_)) => self.begin(WORKFLOW_TASK, event),
            Some(A::WorkflowTaskCompletedEventAttributes(it)) => self.end(WORKFLOW_TASK, it.scheduled_event_id)?,
            // Another one is scheduled in its place.
            Some(A::WorkflowTaskFailedEventAttributes(it)) => self.drop_task(it.scheduled_event_id)?,
            Some(A::WorkflowTaskTimedOutEventAttributes(it)) => self.drop_task(it.scheduled_event_id)?,
            Some(A::WorkflowExecutionSignaledEventAttributes(signal)) => {
                *self.ended.entry(SIGNAL).or_default() += 1;
                // Servers before 1.25 do not record the id.
                let before = self.signals.insert(&signal.request_id, id).filter(|_| !signal.request_id.is_empty());
                ensure!(before.is_none(), "the signal of event {before:?} came twice");
            }
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, name: &'static str, event: &'a HistoryEvent) {
        self.begun.insert((name, event.event_id), event);
    }

    fn end(&mut self, name: &'static str, began: i64) -> Result<()> {
        self.close(name, began).map(|_| ())
    }

    /// The event that began what ends here.
    fn close(&mut self, name: &'static str, began: i64) -> Result<&'a HistoryEvent> {
        let begun = self.begun.remove(&(name, began));
        *self.ended.entry(name).or_default() += 1;
        begun.with_context(|| format!("{name} of event {began}, which did not begin it or had ended"))
    }

    fn drop_task(&mut self, began: i64) -> Result<()> {
        self.begun.remove(&(WORKFLOW_TASK, began)).context("a workflow task that was not scheduled")?;
        Ok(())
    }

    fn fire(&mut self, fired: &HistoryEvent, began: i64) -> Result<()> {
        let started = self.close(TIMER, began)?;
        let Some(Attributes::TimerStartedEventAttributes(timer)) = started.attributes.as_ref() else {
            return Ok(());
        };
        let (Some(from), Some(to), Some(after)) = (started.event_time, fired.event_time, timer.start_to_fire_timeout)
        else {
            anyhow::bail!("a timer without times");
        };
        let waited = nanos(to.seconds, to.nanos) - nanos(from.seconds, from.nanos);
        let wanted = nanos(after.seconds, after.nanos);
        ensure!(waited >= wanted, "a timer of {wanted} ns fired after {waited} ns");
        Ok(())
    }
}

fn nanos(seconds: i64, nanos: i32) -> i128 {
    i128::from(seconds) * 1_000_000_000 + i128::from(nanos)
}
