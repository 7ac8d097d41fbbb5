//! A schedule under test, with a clock that the test turns, and a history that does what it is asked.

use std::time::Duration;

use proto::temporal::api::common::v1::{Payload, Payloads, WorkflowExecution, WorkflowType};
use proto::temporal::api::enums::v1::{ScheduleOverlapPolicy as Policy, WorkflowExecutionStatus};
use proto::temporal::api::failure::v1::Failure;
use proto::temporal::api::schedule::v1 as public;
use proto::temporal::api::schedule::v1::schedule_action::Action;
use proto::temporal::api::workflow::v1::NewWorkflowExecutionInfo;
use uuid::Uuid;
use workflow::{NamespaceId, RunId, Timestamp};

use crate::decide::{Closed, Decision, Input, Outcome, Refusal, create, decide};
use crate::schedule::{Created, Key, Schedule, Stop};
use crate::stored;

/// 2024-01-01T00:00:00Z, a whole minute.
pub(super) const START: i64 = 1_704_067_200;
const SECOND: i64 = 1_000_000_000;

pub(super) fn at(second: i64) -> Timestamp {
    Timestamp((START + second) * SECOND)
}

/// Acts every ten seconds.
pub(super) fn every_ten_seconds(policy: Policy) -> public::Schedule {
    let interval = public::IntervalSpec { interval: Some(span(10)), phase: None };
    let start = NewWorkflowExecutionInfo {
        workflow_id: "run".into(),
        workflow_type: Some(WorkflowType { name: "Report".into() }),
        ..Default::default()
    };
    let policies = public::SchedulePolicies { overlap_policy: policy.into(), ..Default::default() };
    public::Schedule {
        spec: Some(public::ScheduleSpec { interval: vec![interval], ..Default::default() }),
        action: Some(public::ScheduleAction { action: Some(Action::StartWorkflow(start)) }),
        policies: Some(policies),
        state: None,
    }
}

pub(super) fn span(seconds: i64) -> prost_types::Duration {
    prost_types::Duration { seconds, nanos: 0 }
}

pub(super) struct Scene {
    pub(super) schedule: Schedule,
    /// Timers that were asked for and have not fired.
    pub(super) timers: Vec<Timestamp>,
    /// What history was asked to start, by nominal second, and to stop.
    pub(super) started: Vec<i64>,
    pub(super) stopped: Vec<(String, Stop)>,
}

impl Scene {
    pub(super) fn new(definition: public::Schedule) -> Self {
        Self::with_patch(definition, None)
    }

    pub(super) fn with_patch(definition: public::Schedule, patch: Option<public::SchedulePatch>) -> Self {
        let key = Key {
            namespace_id: NamespaceId(Uuid::nil()),
            schedule_id: "report".into(),
            run_id: RunId(Uuid::nil()),
            listed_in: 1,
        };
        let created = Created {
            key,
            definition,
            memo: Default::default(),
            search_attributes: Default::default(),
            request_id: "create".into(),
        };
        let Decision { schedule, timer } = create(created, patch, at(0));
        let mut scene = Self { schedule, timers: timer.into_iter().collect(), started: vec![], stopped: vec![] };
        scene.act(0);
        scene
    }

    /// Lets the timers fire that are due by then, each in its time.
    pub(super) fn run_until(&mut self, second: i64) {
        while let Some(next) = self.timers.iter().copied().filter(|timer| *timer <= at(second)).min() {
            self.timers.retain(|timer| *timer != next);
            self.wake((next.0 / SECOND) - START);
        }
    }

    /// A timer fires at this second, perhaps late.
    pub(super) fn wake(&mut self, second: i64) {
        if self.schedule.is_over || self.schedule.moments.wakes_at.is_none_or(|wakes_at| wakes_at > at(second)) {
            return;
        }
        self.input(second, Input::Woken).expect("a timer is never refused");
        self.act(second);
    }

    pub(super) fn patch(&mut self, second: i64, patch: public::SchedulePatch) {
        let request_id = format!("patch at {second}");
        self.input(second, Input::Patch { patch, request_id }).expect("it is new");
        self.act(second);
    }

    pub(super) fn close(&mut self, second: i64, nominal: i64, status: WorkflowExecutionStatus) {
        self.closed(second, nominal, (status, None, None)).expect("it is known");
        self.act(second);
    }

    pub(super) fn closed(
        &mut self,
        second: i64,
        nominal: i64,
        (status, result, failure): (WorkflowExecutionStatus, Option<Payloads>, Option<Failure>),
    ) -> Result<(), Refusal> {
        let closed = Closed { execution: execution(nominal), status, result, failure };
        self.input(second, Input::RunClosed(Box::new(closed)))
    }

    pub(super) fn input(&mut self, second: i64, input: Input) -> Result<(), Refusal> {
        if let Some(Decision { schedule, timer }) = decide(&self.schedule, input, at(second))? {
            self.timers.extend(timer);
            self.keep(schedule);
        }
        Ok(())
    }

    fn keep(&mut self, schedule: Schedule) {
        let key = (schedule.key.namespace_id, schedule.key.schedule_id.clone());
        let loaded = stored::decode(key, schedule.version, stored::encode(&schedule));
        assert_eq!(loaded.as_ref(), Some(&schedule), "what is stored is the same schedule");
        let wants = schedule.has_actions() || schedule.is_over;
        let is_due = schedule.moments.wakes_at.is_some_and(|wakes_at| wakes_at.0 / SECOND <= START + 1_000_000_000);
        assert!(!wants || is_due, "what is to be done has a timer");
        self.schedule = schedule;
    }

    /// Executes the decided actions, and reports their outcomes to the schedule.
    pub(super) fn act(&mut self, second: i64) {
        while self.schedule.has_actions() && !self.schedule.is_over {
            let mut outcomes = Vec::new();
            for start in &self.schedule.work.starting {
                let nominal = start.nominal_at.0 / SECOND - START;
                self.started.push(nominal);
                outcomes.push(Outcome::Started { id: start.id, execution: execution(nominal), at: at(second) });
            }
            for (run, stop) in self.schedule.stops() {
                self.stopped.push((run.run_id.clone(), stop));
                outcomes.push(Outcome::StopAsked { execution: run.clone(), stop });
            }
            self.input(second, Input::Acted(outcomes)).expect("outcomes are never refused");
        }
    }

    pub(super) fn running(&self) -> Vec<&str> {
        self.schedule.work.running.iter().map(|run| run.execution.run_id.as_str()).collect()
    }

    pub(super) fn waiting(&self) -> usize {
        self.schedule.work.buffer.len()
    }

    pub(super) fn wakes_at(&self) -> Option<i64> {
        self.schedule.moments.wakes_at.map(|moment| moment.0 / SECOND - START)
    }
}

/// The run that the schedule started for this second.
pub(super) fn execution(nominal: i64) -> WorkflowExecution {
    let time = prost_types::Timestamp::from(at(nominal));
    WorkflowExecution { workflow_id: format!("run-{time}"), run_id: nominal.to_string() }
}

pub(super) fn payloads(text: &str) -> Payloads {
    Payloads { payloads: vec![Payload { data: text.to_owned().into(), ..Default::default() }] }
}

pub(super) fn trigger(policy: Policy, second: i64) -> public::SchedulePatch {
    let trigger =
        public::TriggerImmediatelyRequest { overlap_policy: policy.into(), scheduled_time: Some(at(second).into()) };
    public::SchedulePatch { trigger_immediately: Some(trigger), ..Default::default() }
}

pub(super) fn backfill(policy: Policy, from: i64, to: i64) -> public::SchedulePatch {
    let backfill = public::BackfillRequest {
        start_time: Some(at(from).into()),
        end_time: Some(at(to).into()),
        overlap_policy: policy.into(),
    };
    public::SchedulePatch { backfill_request: vec![backfill], ..Default::default() }
}

pub(super) fn days(days: u64) -> i64 {
    i64::try_from(Duration::from_secs(days * 24 * 60 * 60).as_secs()).expect("a few days")
}
