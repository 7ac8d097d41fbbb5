//! Random walks: seeded inputs, legal and illegal, in any order. After each transition `Run` asserts the invariants, the
//! law of replay and that the changed rows are all that changed. A failing walk prints its seed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use proto::temporal::api::activity::v1::ActivityOptions;
use proto::temporal::api::command::v1::{Command, ContinueAsNewWorkflowExecutionCommandAttributes};
use proto::temporal::api::common::v1::{Priority, RetryPolicy};
use proto::temporal::api::enums::v1::WorkflowTaskFailedCause;
use proto::temporal::api::protocol::v1::Message;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use uuid::Uuid;
use workflow::{
    ActivityRef, ActivityTarget, AdmitUpdate, CancelActivity, CompleteActivity, EventId, FailActivity,
    FailWorkflowTask, Heartbeat, Input, Jitter, Join, Limits, OptionsChange, PauseActivity, PauseRequest,
    RefusedSearchAttributes, RequestCancel, ResetActivity, RunId, StartActivity, StartWorkflowTask, Task, TaskRef,
    Terminate, TimerTask, UnpauseActivity, UpdateActivity, UpdateOptions, WorkflowTask,
};

use crate::answers::{acceptance, protocol_message, rejection, response, update_request};
use crate::others;
use crate::run::{
    Run, SECOND, activity_attributes, cancel_activity, cancel_timer, cancel_workflow, complete_workflow,
    continue_as_new, facts, fail_workflow, failure, marker, namespaces, payloads, plain_start, schedule, signal, span,
    start_timer, sticky,
};

/// In every test run, a hundred thousand inputs; `EVERROW_WALKS` asks for more walks.
const WALKS: u64 = 400;
const STEPS: usize = 250;

fn n_walks() -> u64 {
    let asked_for = std::env::var("EVERROW_WALKS").ok();
    asked_for.map_or(WALKS, |text| text.parse().expect("EVERROW_WALKS is a number"))
}

#[test]
fn replay_gives_the_state_again_on_random_walks() {
    let mut n_changed = 0;
    let mut seen = BTreeSet::new();
    for seed in 0..n_walks() {
        let walk = std::panic::catch_unwind(|| walk(seed));
        match walk {
            Ok(walk) => {
                n_changed += walk.n_changed;
                seen.extend(walk.seen);
            }
            Err(panic) => {
                println!("the walk with seed {seed} failed");
                std::panic::resume_unwind(panic);
            }
        }
    }
    // Else the walks prove little: most inputs would have been refused.
    assert!(n_changed > n_walks() as usize * STEPS / 3, "only {n_changed} transitions");
    let missed: Vec<&str> = RECORDED.into_iter().filter(|event| !seen.contains(*event)).collect();
    assert!(missed.is_empty(), "no walk recorded {missed:?}");
}

/// Every event that the core records, save those that only a command with properties makes.
const RECORDED: [&str; 41] = [
    "WorkflowExecutionPaused",
    "WorkflowExecutionUnpaused",
    "WorkflowExecutionStarted",
    "WorkflowExecutionCompleted",
    "WorkflowExecutionFailed",
    "WorkflowExecutionTimedOut",
    "WorkflowExecutionCanceled",
    "WorkflowExecutionTerminated",
    "WorkflowExecutionContinuedAsNew",
    "WorkflowExecutionSignaled",
    "WorkflowExecutionCancelRequested",
    "WorkflowTaskScheduled",
    "WorkflowTaskStarted",
    "WorkflowTaskCompleted",
    "WorkflowTaskTimedOut",
    "WorkflowTaskFailed",
    "ActivityTaskScheduled",
    "ActivityTaskStarted",
    "ActivityTaskCompleted",
    "ActivityTaskFailed",
    "ActivityTaskTimedOut",
    "ActivityTaskCancelRequested",
    "ActivityTaskCanceled",
    "TimerFired",
    "TimerCanceled",
    "StartChildWorkflowExecutionInitiated",
    "StartChildWorkflowExecutionFailed",
    "ChildWorkflowExecutionStarted",
    "ChildWorkflowExecutionCompleted",
    "ChildWorkflowExecutionFailed",
    "ChildWorkflowExecutionCanceled",
    "ChildWorkflowExecutionTimedOut",
    "ChildWorkflowExecutionTerminated",
    "SignalExternalWorkflowExecutionInitiated",
    "SignalExternalWorkflowExecutionFailed",
    "ExternalWorkflowExecutionSignaled",
    "RequestCancelExternalWorkflowExecutionInitiated",
    "RequestCancelExternalWorkflowExecutionFailed",
    "ExternalWorkflowExecutionCancelRequested",
    "WorkflowExecutionUpdateAccepted",
    "WorkflowExecutionUpdateCompleted",
];

struct Walk {
    n_changed: usize,
    seen: BTreeSet<String>,
}

/// Walks through the lives of runs that follow one another.
fn walk(seed: u64) -> Walk {
    let mut random = SmallRng::seed_from_u64(seed);
    let mut run = begin(&mut random);
    let mut walk = Walk { n_changed: 0, seen: BTreeSet::new() };
    for step in 0..STEPS {
        run.facts.new_run_id = RunId(Uuid::from_u128(1000 + step as u128));
        if random.random_ratio(1, 100) {
            run.facts.failover_version += 1;
        }
        run.later(Duration::from_millis(random.random_range(0..3000)));
        let before = run.state.unrecorded.db_record_version;
        let input = any_input(&mut random, &run);
        // Every refusal is a typed one; a panic ends the walk.
        let _ = run.input(input);
        walk.n_changed += usize::from(run.state.unrecorded.db_record_version != before);
        if random.random_ratio(1, 50) {
            let point = random.random_range(1..run.state.next_event_id.0);
            if let Ok(anew) = run.reset(point.max(2)) {
                walk.seen.extend(run.history());
                run = anew;
            }
        }
        if !run.state.is_running() && random.random_ratio(1, 2) {
            walk.seen.extend(run.history());
            run = follow(&mut random, run);
        }
    }
    walk
}

fn begin(random: &mut SmallRng) -> Run {
    let mut start = plain_start();
    if random.random_ratio(1, 2) {
        start.retry_policy = Some(RetryPolicy { maximum_attempts: 3, ..Default::default() });
    }
    if random.random_ratio(1, 4) {
        start.cron_schedule = "* * * * *".to_owned();
    }
    if random.random_ratio(1, 3) {
        start.run_timeout = Some(60 * SECOND);
    }
    if random.random_ratio(1, 4) {
        start.start_delay = Some(3 * SECOND);
    }
    if random.random_ratio(1, 4) {
        start.parent = Some(others::parent());
    }
    start.is_eager = random.random_ratio(1, 4);
    if random.random_ratio(1, 4) {
        start.signal = Some(signal("with-start"));
    }
    let mut facts = facts();
    // Small ones, so that walks meet them.
    facts.limits = Limits { buffered_events: 5, signals: 40, pending_activities: 6, ..Limits::default() };
    facts.limits.pending_children = 4;
    facts.limits.updates_in_flight = 4;
    if random.random_ratio(1, 5) {
        facts.limits.history_count = 90;
    }
    if random.random_ratio(1, 5) {
        facts.limits.mutable_state_size = 2000;
    }
    Run::started_under(start, facts)
}

/// The next run of the chain, or a new one.
fn follow(random: &mut SmallRng, mut run: Run) -> Run {
    match run.new_run.take() {
        Some(born) => Run::born(*born, run.facts),
        None => begin(random),
    }
}

/// Mostly what would come next in a real run; else anything at any time.
fn any_input(random: &mut SmallRng, run: &Run) -> Input {
    if others::awaits_any(run) && chance(random, 4) {
        return others::any_answer(random, run);
    }
    let is_likely = !chance(random, 4);
    match random.random_range(0..24) {
        0..=9 if is_likely => match &run.state.workflow_task {
            WorkflowTask::None => any_timer(random, run),
            WorkflowTask::Scheduled(_) => start_task(random, run),
            WorkflowTask::Running(..) if chance(random, 5) => fail_task(random, run),
            WorkflowTask::Running(..) => complete_task(random, run),
        },
        0 | 1 => start_task(random, run),
        2..=5 => complete_task(random, run),
        6..=8 => fail_task(random, run),
        9 | 10 => any_timer(random, run),
        11 => Input::Signal(signal(["", "a", "b", "c"][random.random_range(0..4)])),
        12 => Input::SignalAndBegin(signal(["", "a", "b", "c"][random.random_range(0..4)])),
        13 | 14 => start_activity(random, run),
        15 | 16 => end_activity(random, run),
        17 if chance(random, 2) => operate_on_activity(random, run),
        17 => heartbeat(random, run),
        18 if chance(random, 8) => terminate(),
        18 if chance(random, 8) => Input::Delete,
        18 if chance(random, 8) => Input::LeaveTo(run.facts.new_run_id),
        18 if run.state.paused().is_some() || chance(random, 4) => pause_or_unpause(random, run),
        18 if chance(random, 2) => join_or_update(random),
        18 => Input::ResetSticky,
        19 => others::any_answer(random, run),
        21..=23 => admit_update(random, run),
        _ => request_cancel(random),
    }
}

/// Mostly what can be; a walk that stays paused would see little.
fn pause_or_unpause(random: &mut SmallRng, run: &Run) -> Input {
    let (identity, reason) = ("operator".to_owned(), "deploying".to_owned());
    let request = PauseRequest { identity, reason, request_id: if chance(random, 2) { "p" } else { "" }.to_owned() };
    if run.state.paused().is_some() != chance(random, 5) { Input::Unpause(request) } else { Input::Pause(request) }
}

fn chance(random: &mut SmallRng, of: u32) -> bool {
    random.random_ratio(1, of)
}

fn start_task(random: &mut SmallRng, run: &Run) -> Input {
    let scheduled = run.state.workflow_task.scheduled();
    let task_queue = match scheduled {
        Some(scheduled) if !chance(random, 5) => scheduled.task_queue.clone(),
        _ => "orders".to_owned(),
    };
    let event_id = scheduled.map_or(EventId(2), |scheduled| scheduled.event_id);
    Input::StartWorkflowTask(StartWorkflowTask {
        scheduled_event_id: if chance(random, 10) { EventId(event_id.0 + 1) } else { event_id },
        request_id: if chance(random, 3) { "x".to_owned() } else { "poll".to_owned() },
        identity: "worker".to_owned(),
        task_queue,
        updates: run.waiting.clone(),
        worker_version: None,
    })
}

fn any_task_ref(random: &mut SmallRng, run: &Run) -> TaskRef {
    let task = match &run.state.workflow_task {
        WorkflowTask::Running(scheduled, running) => TaskRef {
            scheduled_event_id: scheduled.event_id,
            attempt: Some(scheduled.attempt),
            started_event_id: Some(running.event_id),
            started_at: chance(random, 2).then_some(running.at),
        },
        WorkflowTask::None | WorkflowTask::Scheduled(_) => {
            TaskRef { scheduled_event_id: EventId(2), attempt: None, started_event_id: None, started_at: None }
        }
    };
    if chance(random, 12) { TaskRef { attempt: Some(9), ..task } } else { task }
}

fn complete_task(random: &mut SmallRng, run: &Run) -> Input {
    let n_commands = random.random_range(0..4);
    let mut commands: Vec<Command> = (0..n_commands).map(|_| any_command(random, run)).collect();
    let messages = any_answers(random, run, &mut commands);
    Input::CompleteWorkflowTask(Box::new(workflow::CompleteWorkflowTask {
        task: any_task_ref(random, run),
        commands,
        messages,
        updates: run.waiting.clone(),
        identity: "worker".to_owned(),
        binary_checksum: String::new(),
        is_bad_binary: chance(random, 50),
        sticky: if chance(random, 2) { sticky() } else { None },
        force_new_task: chance(random, 4),
        return_new_task: chance(random, 2),
        discards_events: chance(random, 2),
        sdk_metadata: None,
        metering_metadata: None,
        worker_version: None,
        request_id: "again".to_owned(),
        eager_request_id: uuid::Uuid::from_u128(random.random()),
        namespaces: namespaces(),
        refused_search_attributes: (0..n_commands)
            .filter(|_| chance(random, 20))
            .map(|place| (place, RefusedSearchAttributes::Wrong("not defined".to_owned())))
            .collect(),
    }))
}

fn any_command(random: &mut SmallRng, run: &Run) -> Command {
    let name = ["a", "b", "c", "d", "e", "f", "g"][random.random_range(0..7)];
    match random.random_range(0..46) {
        40..=45 => others::any_command(random, name),
        0..=11 => {
            let mut attributes = activity_attributes();
            attributes.activity_id = name.to_owned();
            attributes.request_eager_execution = random.random_ratio(1, 4);
            attributes.heartbeat_timeout = span(Duration::from_secs(random.random_range(0..3)));
            attributes.schedule_to_close_timeout = span(Duration::from_secs(random.random_range(0..40)));
            attributes.retry_policy =
                Some(RetryPolicy { maximum_attempts: random.random_range(0..3), ..Default::default() });
            schedule(attributes)
        }
        12..=15 => cancel_activity(any_activity(random, run)),
        16..=25 => start_timer(name, Duration::from_secs(random.random_range(0..10))),
        26..=30 => cancel_timer(name),
        31..=34 => marker(name),
        35 => complete_workflow(),
        36 => fail_workflow(failure("boom")),
        37 => cancel_workflow(),
        38 => continue_as_new(ContinueAsNewWorkflowExecutionCommandAttributes::default()),
        _ => start_timer("", SECOND),
    }
}

/// What a worker says of the updates that wait or are accepted: mostly sensible, sometimes not.
fn any_answers(random: &mut SmallRng, run: &Run, commands: &mut Vec<Command>) -> Vec<Message> {
    let mut messages = Vec::new();
    for waiting in &run.waiting {
        let id = waiting.id();
        match random.random_range(0..8) {
            0 | 1 => messages.push(rejection(id)),
            2 | 3 => messages.push(acceptance(id)),
            4 => messages.extend([acceptance(id), response(id)]),
            _ => {}
        }
    }
    for (_, update) in run.state.updates.iter().filter(|(_, update)| update.completed.is_none()) {
        if chance(random, 3) {
            messages.push(response(&update.update_id));
        }
    }
    if chance(random, 30) {
        messages.push(acceptance(["u1", "u2", "u3"][random.random_range(0..3)]));
    }
    for message in &messages {
        if chance(random, 2) {
            commands.insert(0, protocol_message(&message.id));
        }
    }
    messages
}

fn admit_update(random: &mut SmallRng, run: &Run) -> Input {
    let id = format!("u{}", random.random_range(0..30));
    Input::AdmitUpdate(AdmitUpdate {
        request: Arc::new(update_request(&id)),
        first_run_id: chance(random, 20).then(|| RunId(Uuid::from_u128(99))),
        waiting: run.waiting.clone(),
    })
}

fn any_activity(random: &mut SmallRng, run: &Run) -> i64 {
    let ids: Vec<i64> = run.state.activities.iter().map(|(id, _)| id).collect();
    if ids.is_empty() || chance(random, 10) {
        return random.random_range(0..40);
    }
    ids[random.random_range(0..ids.len())]
}

fn fail_task(random: &mut SmallRng, run: &Run) -> Input {
    let cause = match random.random_range(0..10) {
        0 => WorkflowTaskFailedCause::GrpcMessageTooLarge,
        1 => WorkflowTaskFailedCause::ResetWorkflow,
        _ => WorkflowTaskFailedCause::WorkflowWorkerUnhandledFailure,
    };
    Input::FailWorkflowTask(FailWorkflowTask {
        task: any_task_ref(random, run),
        cause,
        failure: Some(failure("boom")),
        identity: "worker".to_owned(),
        binary_checksum: String::new(),
    })
}

/// Any timer task that was ever made: most are stale or early.
fn any_timer(random: &mut SmallRng, run: &Run) -> Input {
    let timers: Vec<&TimerTask> = run
        .tasks
        .iter()
        .filter_map(|task| match task {
            Task::Timer { task, fires_at } => {
                (*fires_at <= run.facts.now || random.random_ratio(1, 10)).then_some(task)
            }
            Task::Transfer(_) | Task::Visibility(_) => None,
        })
        .collect();
    if timers.is_empty() {
        return Input::Due(TimerTask::RunTimeout { version: 7 });
    }
    let newest = timers.len().saturating_sub(8);
    Input::Due(timers[random.random_range(newest..timers.len())].clone())
}

fn start_activity(random: &mut SmallRng, run: &Run) -> Input {
    let id = any_activity(random, run);
    let progress = run.state.activities.get(id).map(|activity| &activity.unrecorded);
    let (attempt, stamp) = progress.map_or((1, 0), |progress| (progress.attempt, progress.stamp));
    Input::StartActivity(StartActivity {
        scheduled_event_id: EventId(id),
        attempt: if chance(random, 5) { attempt + 1 } else { attempt },
        stamp: if chance(random, 10) { stamp + 1 } else { stamp },
        request_id: if chance(random, 5) { "x".to_owned() } else { "poll".to_owned() },
        identity: "activity-worker".to_owned(),
    })
}

fn any_activity_ref(random: &mut SmallRng, run: &Run) -> ActivityRef {
    let id = any_activity(random, run);
    let activity = run.state.activities.get(id);
    if chance(random, 3) {
        return ActivityRef::Id(activity.map_or("nobody".to_owned(), |activity| activity.activity_id.clone()));
    }
    let attempt = activity.map(|activity| activity.unrecorded.attempt);
    ActivityRef::Task(TaskRef { scheduled_event_id: EventId(id), attempt, started_event_id: None, started_at: None })
}

fn end_activity(random: &mut SmallRng, run: &Run) -> Input {
    let (activity, identity) = (any_activity_ref(random, run), "activity-worker".to_owned());
    match random.random_range(0..5) {
        0 | 1 => Input::CompleteActivity(CompleteActivity { activity, result: Some(payloads("out")), identity }),
        2 | 3 => {
            let details = chance(random, 2).then(|| payloads("so far"));
            let failure = Some(failure("boom"));
            Input::FailActivity(FailActivity { activity, failure, last_heartbeat_details: details, identity })
        }
        _ => Input::CancelActivity(CancelActivity { activity, details: None, identity }),
    }
}

fn heartbeat(random: &mut SmallRng, run: &Run) -> Input {
    let activity = any_activity_ref(random, run);
    Input::Heartbeat(Heartbeat { activity, details: Some(payloads("alive")), identity: String::new() })
}

fn operate_on_activity(random: &mut SmallRng, run: &Run) -> Input {
    let name = run.state.activities.get(any_activity(random, run)).map(|activity| activity.activity_id.clone());
    let target = match random.random_range(0..5) {
        0 => ActivityTarget::Type(if chance(random, 2) { "Pay" } else { "Nothing" }.to_owned()),
        1 => ActivityTarget::All,
        _ => ActivityTarget::Id(name.unwrap_or_default()),
    };
    let jitter = Jitter { span: Duration::from_secs(random.random_range(0..3)), seed: random.random() };
    match random.random_range(0..5) {
        0 | 1 => Input::PauseActivity(PauseActivity {
            target,
            identity: "operator".to_owned(),
            reason: "too hot".to_owned(),
            request_id: if chance(random, 2) { "pause".to_owned() } else { String::new() },
        }),
        2 => Input::UnpauseActivity(UnpauseActivity {
            target,
            reset_attempts: chance(random, 2),
            reset_heartbeat: chance(random, 2),
            jitter,
        }),
        3 => Input::ResetActivity(ResetActivity {
            target,
            reset_heartbeat: chance(random, 2),
            keep_paused: chance(random, 2),
            restore_original_options: chance(random, 2),
            jitter,
        }),
        _ => Input::UpdateActivity(Box::new(UpdateActivity { target, change: any_options(random) })),
    }
}

fn any_options(random: &mut SmallRng) -> OptionsChange {
    if chance(random, 3) {
        return OptionsChange::Restore;
    }
    let options = ActivityOptions {
        heartbeat_timeout: span(Duration::from_secs(random.random_range(0..5))),
        start_to_close_timeout: span(Duration::from_secs(random.random_range(0..20))),
        retry_policy: Some(RetryPolicy { maximum_attempts: random.random_range(-1..5), ..Default::default() }),
        ..Default::default()
    };
    let all = ["heartbeatTimeout", "startToCloseTimeout", "retryPolicy.maximumAttempts", "priority.priorityKey"];
    let fields = all.into_iter().filter(|_| chance(random, 2)).map(str::to_owned).collect();
    OptionsChange::Merge { options: Box::new(options), fields }
}

fn join_or_update(random: &mut SmallRng) -> Input {
    if chance(random, 2) {
        let request_id = ["", "a", "b"][random.random_range(0..3)].to_owned();
        return Input::Join(Join { request_id, callbacks: Vec::new(), links: Vec::new() });
    }
    let priority = Some(Priority { priority_key: random.random_range(0..5), ..Default::default() });
    let (identity, fields) = ("operator".to_owned(), vec!["priority".to_owned()]);
    Input::UpdateOptions(UpdateOptions { identity, priority, fields })
}

fn terminate() -> Input {
    Input::Terminate(Terminate {
        reason: "enough".to_owned(),
        details: None,
        identity: "client".to_owned(),
        first_run_id: None,
        links: Vec::new(),
        sender: None,
    })
}

fn request_cancel(random: &mut SmallRng) -> Input {
    Input::RequestCancel(RequestCancel {
        reason: "never mind".to_owned(),
        identity: "client".to_owned(),
        request_id: if chance(random, 2) { "cancel".to_owned() } else { String::new() },
        first_run_id: chance(random, 4).then(|| RunId(Uuid::from_u128(99))),
        links: Vec::new(),
        sender: None,
    })
}
