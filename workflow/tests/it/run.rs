//! A run under test: it takes inputs one after another, keeps what a store would, and asserts after each that the state
//! is sound, that a replay of the events gives it again, and that the changed rows are all that changed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proto::temporal::api::command::v1::command::Attributes as CommandAttributes;
use proto::temporal::api::command::v1::{
    CancelTimerCommandAttributes, CancelWorkflowExecutionCommandAttributes, Command,
    CompleteWorkflowExecutionCommandAttributes, ContinueAsNewWorkflowExecutionCommandAttributes,
    FailWorkflowExecutionCommandAttributes, RecordMarkerCommandAttributes, RequestCancelActivityTaskCommandAttributes,
    ScheduleActivityTaskCommandAttributes, StartTimerCommandAttributes,
};
use proto::temporal::api::common::v1::{ActivityType, Payload, Payloads, RetryPolicy};
use proto::temporal::api::enums::v1::{CommandType, ResetReapplyType};
use proto::temporal::api::failure::v1::failure::FailureInfo;
use proto::temporal::api::failure::v1::{ApplicationFailureInfo, Failure};
use proto::temporal::api::history::v1::HistoryEvent;
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::taskqueue::v1::TaskQueue;
use proto::temporal::api::update::v1::Request;
use uuid::Uuid;
use workflow::{
    Activity, ActivityRef, CompleteActivity, CompleteWorkflowTask, Decision, EventId, ExecutionKey, ExecutionState,
    Facts, FailActivity, Input, KnownNamespaces, Limits, NamespaceId, Notice, OtherNamespaces, Reapplied, Rejection,
    Reply, Reset, RunId, Scheduled, Signal, Start, StartActivity, StartWorkflowTask, Sticky, Task, TaskRef, Terminate,
    TimerTask, Timestamp, TransferTask, Transition, UpdateOptions, WaitingUpdate, WorkflowTask, WorkflowTaskStarted,
};

// Named by its path: the benchmark and the store's tests take this file from where it is.
#[path = "run/rows.rs"]
mod rows;

use rows::Rows;

pub(crate) const SECOND: Duration = Duration::from_secs(1);

pub(crate) struct Run {
    pub(crate) state: ExecutionState,
    pub(crate) batches: Vec<Vec<HistoryEvent>>,
    /// All tasks that were ever asked for and not taken.
    pub(crate) tasks: Vec<Task>,
    pub(crate) facts: Facts,
    pub(crate) new_run: Option<Box<Transition>>,
    /// Updates in the server's memory.
    pub(crate) waiting: Vec<WaitingUpdate>,
    /// All notices so far, save that history grew.
    pub(crate) notices: Vec<Notice>,
    rows: Rows,
}

pub(crate) fn facts() -> Facts {
    Facts {
        now: Timestamp(1_700_000_000_000_000_000),
        failover_version: 7,
        new_run_id: RunId(Uuid::from_u128(2)),
        new_request_id: Uuid::from_u128(3),
        retention: Duration::from_secs(24 * 60 * 60),
        segment: 3,
        limits: Limits::default(),
    }
}

pub(crate) fn key() -> ExecutionKey {
    ExecutionKey {
        namespace_id: NamespaceId(Uuid::from_u128(100)),
        workflow_id: "order-1".into(),
        run_id: RunId(Uuid::from_u128(1)),
    }
}

/// The run's own namespace, and another one.
pub(crate) fn namespaces() -> KnownNamespaces {
    let by_name = BTreeMap::from([("elsewhere".to_owned(), NamespaceId(Uuid::from_u128(200)))]);
    KnownNamespaces { own: "here".to_owned(), by_name, others: OtherNamespaces::Allowed }
}

/// The plainest start there is.
pub(crate) fn plain_start() -> Start {
    Start {
        workflow_type: "Order".to_owned(),
        task_queue: "orders".to_owned(),
        input: Some(payloads("in")),
        header: None,
        execution_timeout: None,
        run_timeout: None,
        task_timeout: Duration::ZERO,
        identity: "client".to_owned(),
        request_id: "start-1".to_owned(),
        retry_policy: None,
        cron_schedule: String::new(),
        memo: None,
        search_attributes: None,
        start_delay: None,
        continued_failure: None,
        last_completion_result: None,
        user_metadata: None,
        links: Vec::new(),
        priority: None,
        callbacks: Vec::new(),
        parent: None,
        schedule_id: None,
        is_eager: false,
        signal: None,
    }
}

impl Run {
    pub(crate) fn started() -> Self {
        Self::started_as(plain_start())
    }

    pub(crate) fn started_as(start: Start) -> Self {
        Self::started_under(start, facts())
    }

    pub(crate) fn started_under(start: Start, facts: Facts) -> Self {
        let born = workflow::start(key(), start, None, &facts).unwrap();
        Self::born(*born, facts)
    }

    pub(crate) fn born(born: Transition, facts: Facts) -> Self {
        Self::born_with(Vec::new(), born, facts)
    }

    /// The run that this one would be reset to now.
    pub(crate) fn reset(&self, point: i64) -> Result<Self, Rejection> {
        self.reset_with(point, Vec::new())
    }

    pub(crate) fn reset_with(&self, point: i64, options: Vec<UpdateOptions>) -> Result<Self, Rejection> {
        let mut batches = self.batches.clone();
        batches.iter_mut().for_each(|batch| batch.retain(|event| event.event_id < point));
        batches.retain(|batch| !batch.is_empty());
        let key = ExecutionKey { run_id: self.facts.new_run_id, ..self.state.key.clone() };
        let branch = self.state.branch.fork(EventId(point), key.run_id);
        let replayed = workflow::replay(key, branch, &batches).expect("a part of a history can be replayed");
        let reapplied = Reapplied::new(ResetReapplyType::AllEligible, &[]);
        let later = self.events().filter(|event| event.event_id >= point && reapplied.includes(event));
        let reset = Reset {
            base_run_id: self.state.key.run_id,
            reason: "bad deploy".to_owned(),
            request_id: "reset-1".to_owned(),
            start_request_id: self.state.unrecorded.start_request_id.clone(),
            schedule_id: self.state.unrecorded.schedule_id.clone(),
            events: later.cloned().collect(),
            options,
        };
        let born = workflow::reset(&replayed, reset, &self.facts)?;
        Ok(Self::born_with(batches, *born, self.facts.clone()))
    }

    fn born_with(batches: Vec<Vec<HistoryEvent>>, born: Transition, facts: Facts) -> Self {
        let mut run = Self {
            state: born.state.clone(),
            batches,
            tasks: Vec::new(),
            facts,
            new_run: None,
            waiting: Vec::new(),
            notices: Vec::new(),
            rows: Rows::default(),
        };
        run.keep(born);
        run
    }

    /// A run whose first workflow task is at a worker.
    pub(crate) fn working() -> Self {
        let mut run = Self::started();
        run.start_task();
        run
    }

    /// A run that waits for nothing: its first workflow task completed without a command.
    pub(crate) fn idle() -> Self {
        let mut run = Self::working();
        run.complete_task(Vec::new());
        run
    }

    /// A run whose first workflow task completed with these commands.
    pub(crate) fn after(commands: Vec<Command>) -> Self {
        let mut run = Self::working();
        run.complete_task(commands);
        run
    }

    pub(crate) fn later(&mut self, span: Duration) -> &mut Self {
        self.facts.now = self.facts.now + span;
        self
    }

    /// Gives the run an input and keeps what comes of it, as a store would.
    pub(crate) fn input(&mut self, input: Input) -> Result<Reply, Rejection> {
        let admitted = if let Input::AdmitUpdate(admit) = &input { Some(Arc::clone(&admit.request)) } else { None };
        let reply = match workflow::transition(&self.state, input, &self.facts)? {
            Decision::Changed(changed) => self.keep(*changed),
            Decision::Unchanged(reply) => reply,
        };
        self.remember(admitted, &reply);
        Ok(reply)
    }

    /// Keeps updates in memory as a server does, and which of them a worker was sent.
    fn remember(&mut self, admitted: Option<Arc<Request>>, reply: &Reply) {
        if let Some(request) = admitted {
            let update = WaitingUpdate { request, is_sent: false };
            let is_known = self.waiting.iter().any(|waiting| waiting.id() == update.id())
                || self.state.find_update(update.id()).is_some();
            if !is_known {
                self.waiting.push(update);
            }
        }
        let (Reply::WorkflowTaskStarted(task) | Reply::WorkflowTaskCompleted { new_task: Some(task), .. }) = reply
        else {
            return;
        };
        for waiting in &mut self.waiting {
            waiting.is_sent |= task.messages.iter().any(|message| message.protocol_instance_id == waiting.id());
        }
    }

    fn hear(&mut self, notices: Vec<Notice>) {
        for notice in notices {
            let (Notice::UpdateAccepted { update_id }
            | Notice::UpdateCompleted { update_id, .. }
            | Notice::UpdateRejected { update_id, .. }
            | Notice::UpdateAborted { update_id }) = &notice
            else {
                continue;
            };
            self.waiting.retain(|waiting| waiting.id() != update_id);
            self.notices.push(notice);
        }
    }

    fn keep(&mut self, changed: Transition) -> Reply {
        self.batches.extend(changed.nodes().map(<[HistoryEvent]>::to_vec));
        let Transition { state, events, cuts: _, changed, tasks, new_run, notices, reply } = changed;
        let grew = notices.contains(&Notice::HistoryGrew);
        assert_eq!(grew, !events.is_empty(), "who waits for history hears that it grew");
        self.hear(notices);
        self.state = state;
        self.tasks.extend(tasks);
        if new_run.is_some() {
            self.new_run = new_run;
        }
        self.rows.write(changed, &self.state);
        self.check();
        reply
    }

    /// What must hold after every transition.
    pub(crate) fn check(&self) {
        self.state.check();
        let ids: Vec<i64> = self.events().map(|event| event.event_id).collect();
        let expected: Vec<i64> = (1..self.state.next_event_id.0).collect();
        assert_eq!(ids, expected, "event ids have no gap");
        let replayed = workflow::replay(self.state.key.clone(), self.state.branch.as_ref().clone(), &self.batches);
        let replayed = replayed.expect("what was recorded can be replayed");
        assert_eq!(replayed.without_unrecorded(), self.state.without_unrecorded(), "replay gives the state again");
        self.rows.check(&self.state);
    }

    pub(crate) fn events(&self) -> impl Iterator<Item = &HistoryEvent> {
        self.batches.iter().flatten()
    }

    pub(crate) fn event(&self, event_id: i64) -> &Attributes {
        let event = self.events().nth(usize::try_from(event_id - 1).unwrap()).expect("the event exists");
        event.attributes.as_ref().unwrap()
    }

    /// The names of all events, or of those from one on.
    pub(crate) fn history_from(&self, event_id: i64) -> Vec<String> {
        self.events().filter(|event| event.event_id >= event_id).map(name).collect()
    }

    pub(crate) fn history(&self) -> Vec<String> {
        self.history_from(1)
    }

    pub(crate) fn last_event(&self) -> &HistoryEvent {
        self.events().last().unwrap()
    }

    /// Takes all tasks that were asked for since the last call.
    pub(crate) fn take_tasks(&mut self) -> Vec<Task> {
        std::mem::take(&mut self.tasks)
    }

    pub(crate) fn transfers(&self) -> Vec<&TransferTask> {
        self.tasks
            .iter()
            .filter_map(|task| match task {
                Task::Transfer(task) => Some(task),
                Task::Timer { .. } | Task::Visibility(_) => None,
            })
            .collect()
    }

    pub(crate) fn timers(&self) -> Vec<(Timestamp, &TimerTask)> {
        self.tasks
            .iter()
            .filter_map(|task| match task {
                Task::Timer { fires_at, task } => Some((*fires_at, task)),
                Task::Transfer(_) | Task::Visibility(_) => None,
            })
            .collect()
    }

    /// Moves on to the moment of the earliest timer task and lets it come due.
    pub(crate) fn fire_next_timer(&mut self) -> Result<Reply, Rejection> {
        let earliest = self.timers().into_iter().min_by_key(|(fires_at, _)| *fires_at).expect("a timer task waits");
        let (fires_at, task) = (earliest.0, earliest.1.clone());
        let position = self.tasks.iter().position(
            |known| matches!(known, Task::Timer { fires_at: at, task: of } if *at == fires_at && *of == task),
        );
        self.tasks.remove(position.unwrap());
        self.facts.now = self.facts.now.max(fires_at);
        self.input(Input::Due(task))
    }

    pub(crate) fn scheduled(&self) -> &Scheduled {
        self.state.workflow_task.scheduled().expect("a workflow task is pending")
    }

    pub(crate) fn try_start_task(&mut self, request_id: &str) -> Result<WorkflowTaskStarted, Rejection> {
        let scheduled = self.scheduled().clone();
        let reply = self.input(Input::StartWorkflowTask(StartWorkflowTask {
            scheduled_event_id: scheduled.event_id,
            request_id: request_id.to_owned(),
            identity: "worker".to_owned(),
            task_queue: scheduled.task_queue,
            updates: self.waiting.clone(),
            worker_version: None,
        }))?;
        let Reply::WorkflowTaskStarted(started) = reply else { panic!("unexpected {reply:?}") };
        Ok(*started)
    }

    pub(crate) fn start_task(&mut self) -> WorkflowTaskStarted {
        self.try_start_task("poll").unwrap()
    }

    /// Which task is in flight, as its token says.
    pub(crate) fn task_ref(&self) -> TaskRef {
        let WorkflowTask::Running(scheduled, running) = &self.state.workflow_task else {
            panic!("no workflow task is in flight")
        };
        TaskRef {
            scheduled_event_id: scheduled.event_id,
            attempt: Some(scheduled.attempt),
            started_event_id: Some(running.event_id),
            started_at: Some(running.at),
        }
    }

    /// A plain completion of the task in flight.
    pub(crate) fn completion(&self, commands: Vec<Command>) -> CompleteWorkflowTask {
        CompleteWorkflowTask {
            task: self.task_ref(),
            commands,
            messages: Vec::new(),
            updates: self.waiting.clone(),
            identity: "worker".to_owned(),
            binary_checksum: String::new(),
            is_bad_binary: false,
            sticky: None,
            force_new_task: false,
            return_new_task: false,
            discards_events: false,
            sdk_metadata: None,
            metering_metadata: None,
            worker_version: None,
            request_id: "again".to_owned(),
            eager_request_id: Uuid::from_u128(0xea6e7),
            namespaces: namespaces(),
            refused_search_attributes: BTreeMap::new(),
        }
    }

    pub(crate) fn try_complete_task(&mut self, commands: Vec<Command>) -> Result<Reply, Rejection> {
        let completion = self.completion(commands);
        self.input(Input::CompleteWorkflowTask(Box::new(completion)))
    }

    pub(crate) fn complete_task(&mut self, commands: Vec<Command>) {
        let reply = self.try_complete_task(commands).unwrap();
        assert!(matches!(reply, Reply::WorkflowTaskCompleted { .. }), "unexpected {reply:?}");
    }

    /// Starts the pending workflow task and completes it.
    pub(crate) fn work(&mut self, commands: Vec<Command>) {
        self.start_task();
        self.complete_task(commands);
    }

    /// Fails the workflow task in flight, as a worker does.
    pub(crate) fn fail_task(&mut self) {
        let task = self.task_ref();
        self.input(Input::FailWorkflowTask(workflow::FailWorkflowTask {
            task,
            cause: proto::temporal::api::enums::v1::WorkflowTaskFailedCause::WorkflowWorkerUnhandledFailure,
            failure: Some(failure("boom")),
            identity: "worker".to_owned(),
            binary_checksum: String::new(),
        }))
        .unwrap();
    }

    pub(crate) fn signal(&mut self, request_id: &str) -> Result<Reply, Rejection> {
        self.input(Input::Signal(signal(request_id)))
    }

    pub(crate) fn terminate(&mut self) -> Result<Reply, Rejection> {
        self.input(Input::Terminate(Terminate {
            reason: "enough".to_owned(),
            details: None,
            identity: "client".to_owned(),
            first_run_id: None,
            links: Vec::new(),
            sender: None,
        }))
    }

    pub(crate) fn activity(&self, scheduled_event_id: i64) -> &Activity {
        self.state.activities.get(scheduled_event_id).expect("the activity is pending")
    }

    pub(crate) fn start_activity(&mut self, scheduled_event_id: i64) -> Result<Reply, Rejection> {
        let attempt = self.state.activities.get(scheduled_event_id).map_or(1, |activity| activity.unrecorded.attempt);
        self.input(Input::StartActivity(StartActivity {
            scheduled_event_id: EventId(scheduled_event_id),
            attempt,
            stamp: self.state.activities.get(scheduled_event_id).map_or(0, |activity| activity.unrecorded.stamp),
            request_id: "activity-poll".to_owned(),
            identity: "activity-worker".to_owned(),
        }))
    }

    pub(crate) fn activity_ref(&self, scheduled_event_id: i64) -> ActivityRef {
        ActivityRef::Task(TaskRef {
            scheduled_event_id: EventId(scheduled_event_id),
            attempt: Some(self.activity(scheduled_event_id).unrecorded.attempt),
            started_event_id: None,
            started_at: None,
        })
    }

    pub(crate) fn complete_activity(&mut self, scheduled_event_id: i64) -> Result<Reply, Rejection> {
        let activity = self.activity_ref(scheduled_event_id);
        self.input(Input::CompleteActivity(CompleteActivity {
            activity,
            result: Some(payloads("out")),
            identity: "activity-worker".to_owned(),
        }))
    }

    pub(crate) fn fail_activity(&mut self, scheduled_event_id: i64, failure: Failure) -> Result<Reply, Rejection> {
        let activity = self.activity_ref(scheduled_event_id);
        self.input(Input::FailActivity(FailActivity {
            activity,
            failure: Some(failure),
            last_heartbeat_details: None,
            identity: "activity-worker".to_owned(),
        }))
    }
}

/// An event's name, without the noise of its type's.
pub(crate) fn name(event: &HistoryEvent) -> String {
    let words = event.event_type().as_str_name().strip_prefix("EVENT_TYPE_").unwrap().split('_');
    words.map(|word| format!("{}{}", &word[..1], word[1..].to_lowercase())).collect()
}

pub(crate) fn signal(request_id: &str) -> Signal {
    Signal {
        name: "go".to_owned(),
        input: Some(payloads("signal")),
        header: None,
        identity: "client".to_owned(),
        request_id: request_id.to_owned(),
        links: Vec::new(),
        sender: None,
    }
}

pub(crate) fn sticky() -> Option<Sticky> {
    Some(Sticky { task_queue: "sticky-1".to_owned(), schedule_to_start_timeout: 5 * SECOND })
}

pub(crate) fn payloads(text: &'static str) -> Payloads {
    Payloads { payloads: vec![Payload { data: text.into(), ..Default::default() }] }
}

pub(crate) fn failure(message: &str) -> Failure {
    let info = ApplicationFailureInfo { r#type: "Boom".to_owned(), ..Default::default() };
    let failure_info = Some(FailureInfo::ApplicationFailureInfo(info));
    Failure { message: message.to_owned(), failure_info, ..Default::default() }
}

pub(crate) fn span(span: Duration) -> Option<prost_types::Duration> {
    Some(prost_types::Duration { seconds: span.as_secs() as i64, nanos: span.subsec_nanos() as i32 })
}

pub(crate) fn command(kind: CommandType, attributes: CommandAttributes) -> Command {
    Command { command_type: kind.into(), attributes: Some(attributes), ..Default::default() }
}

pub(crate) fn schedule_activity(activity_id: &str) -> Command {
    schedule(ScheduleActivityTaskCommandAttributes { activity_id: activity_id.to_owned(), ..activity_attributes() })
}

pub(crate) fn activity_attributes() -> ScheduleActivityTaskCommandAttributes {
    ScheduleActivityTaskCommandAttributes {
        activity_id: "pay".to_owned(),
        activity_type: Some(ActivityType { name: "Pay".to_owned() }),
        task_queue: Some(TaskQueue { name: "payments".to_owned(), ..Default::default() }),
        input: Some(payloads("card")),
        start_to_close_timeout: span(10 * SECOND),
        ..Default::default()
    }
}

pub(crate) fn schedule(attributes: ScheduleActivityTaskCommandAttributes) -> Command {
    command(CommandType::ScheduleActivityTask, CommandAttributes::ScheduleActivityTaskCommandAttributes(attributes))
}

pub(crate) fn never_retried() -> Option<RetryPolicy> {
    Some(RetryPolicy { maximum_attempts: 1, ..Default::default() })
}

pub(crate) fn cancel_activity(scheduled_event_id: i64) -> Command {
    command(
        CommandType::RequestCancelActivityTask,
        CommandAttributes::RequestCancelActivityTaskCommandAttributes(RequestCancelActivityTaskCommandAttributes {
            scheduled_event_id,
        }),
    )
}

pub(crate) fn start_timer(timer_id: &str, delay: Duration) -> Command {
    let attributes = StartTimerCommandAttributes { timer_id: timer_id.to_owned(), start_to_fire_timeout: span(delay) };
    command(CommandType::StartTimer, CommandAttributes::StartTimerCommandAttributes(attributes))
}

pub(crate) fn cancel_timer(timer_id: &str) -> Command {
    let attributes = CancelTimerCommandAttributes { timer_id: timer_id.to_owned() };
    command(CommandType::CancelTimer, CommandAttributes::CancelTimerCommandAttributes(attributes))
}

pub(crate) fn marker(marker_name: &str) -> Command {
    let attributes = RecordMarkerCommandAttributes { marker_name: marker_name.to_owned(), ..Default::default() };
    command(CommandType::RecordMarker, CommandAttributes::RecordMarkerCommandAttributes(attributes))
}

pub(crate) fn complete_workflow() -> Command {
    let attributes = CompleteWorkflowExecutionCommandAttributes { result: Some(payloads("done")) };
    command(
        CommandType::CompleteWorkflowExecution,
        CommandAttributes::CompleteWorkflowExecutionCommandAttributes(attributes),
    )
}

pub(crate) fn fail_workflow(failure: Failure) -> Command {
    let attributes = FailWorkflowExecutionCommandAttributes { failure: Some(failure) };
    command(CommandType::FailWorkflowExecution, CommandAttributes::FailWorkflowExecutionCommandAttributes(attributes))
}

pub(crate) fn cancel_workflow() -> Command {
    let attributes = CancelWorkflowExecutionCommandAttributes { details: None };
    command(
        CommandType::CancelWorkflowExecution,
        CommandAttributes::CancelWorkflowExecutionCommandAttributes(attributes),
    )
}

pub(crate) fn continue_as_new(attributes: ContinueAsNewWorkflowExecutionCommandAttributes) -> Command {
    command(
        CommandType::ContinueAsNewWorkflowExecution,
        CommandAttributes::ContinueAsNewWorkflowExecutionCommandAttributes(attributes),
    )
}
