//! Workers of the simulation. Their workflow is a function of its history: activities one after the other, every third
//! with a timer before it, until all of them are done and all signals have come.

use proto::everrow::{history as to_history, matching as to_matching};
use proto::temporal::api::command::v1::command::Attributes as CommandAttributes;
use proto::temporal::api::command::v1::{
    Command, CompleteWorkflowExecutionCommandAttributes, ScheduleActivityTaskCommandAttributes,
    StartTimerCommandAttributes,
};
use proto::temporal::api::common::v1::{ActivityType, Payload, Payloads};
use proto::temporal::api::enums::v1::{CommandType, TaskQueueKind};
use proto::temporal::api::failure::v1::Failure;
use proto::temporal::api::history::v1::HistoryEvent;
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::taskqueue::v1::TaskQueue;
use proto::temporal::api::workflowservice::v1 as public;

use super::world::{NAMESPACE_ID, Services};
use super::{clock, families, interventions, updates};

pub(super) const TASK_QUEUE: &str = "simulated";

pub(super) async fn run_workflow_tasks(services: Services) {
    loop {
        let poll = public::PollWorkflowTaskQueueRequest {
            task_queue: Some(task_queue()),
            identity: "simulated worker".into(),
            ..Default::default()
        };
        let poll = to_matching::PollWorkflowTaskQueueRequest {
            namespace_id: NAMESPACE_ID.into(),
            request: Some(poll),
            ..Default::default()
        };
        let task = match services.matching.poll_workflow_task_queue(poll).await {
            Ok(task) if !task.task_token.is_empty() => task,
            Ok(_) => continue,
            Err(_) => {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                continue;
            }
        };
        assert!(task.next_page_token.is_empty(), "the simulated histories fit one page");
        let events = task.history.unwrap_or_default().into_events().unwrap();
        if task.query.is_some() {
            interventions::answer_alone(&services, task.task_token, &events).await;
            continue;
        }
        let (messages, mut commands) = updates::answer(&task.messages);
        commands.extend(decide(&events));
        let request = public::RespondWorkflowTaskCompletedRequest {
            task_token: task.task_token,
            commands,
            messages,
            query_results: interventions::answers(task.queries, &events),
            identity: "simulated worker".into(),
            ..Default::default()
        };
        let request = to_history::RespondWorkflowTaskCompletedRequest {
            namespace_id: NAMESPACE_ID.into(),
            request: Some(request),
        };
        // A worker that is not understood forgets the task; the server gives it out again when it times out.
        let _ = services.history.respond_workflow_task_completed(request).await;
    }
}

/// Every fifth attempt fails and is retried.
pub(super) async fn run_activities(services: Services) {
    let mut n_attempts = 0_u64;
    loop {
        let poll = public::PollActivityTaskQueueRequest {
            task_queue: Some(task_queue()),
            identity: "simulated worker".into(),
            ..Default::default()
        };
        let poll = to_matching::PollActivityTaskQueueRequest {
            namespace_id: NAMESPACE_ID.into(),
            request: Some(poll),
            ..Default::default()
        };
        let task = match services.matching.poll_activity_task_queue(poll).await {
            Ok(task) if !task.task_token.is_empty() => task,
            Ok(_) => continue,
            Err(_) => {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                continue;
            }
        };
        n_attempts += 1;
        if n_attempts.is_multiple_of(5) {
            let failure = Failure { message: "simulated".into(), ..Default::default() };
            let request = public::RespondActivityTaskFailedRequest {
                task_token: task.task_token,
                failure: Some(failure),
                ..Default::default()
            };
            let request = to_history::RespondActivityTaskFailedRequest {
                namespace_id: NAMESPACE_ID.into(),
                request: Some(request),
            };
            let _ = services.history.respond_activity_task_failed(request).await;
        } else {
            let request = public::RespondActivityTaskCompletedRequest {
                task_token: task.task_token,
                result: Some(text(&task.activity_id)),
                ..Default::default()
            };
            let request = to_history::RespondActivityTaskCompletedRequest {
                namespace_id: NAMESPACE_ID.into(),
                request: Some(request),
            };
            let _ = services.history.respond_activity_task_completed(request).await;
        }
    }
}

fn decide(events: &[HistoryEvent]) -> Vec<Command> {
    if families::is_parent(events) {
        return families::decide(events);
    }
    if clock::is_timed(events) {
        return clock::decide(events);
    }
    let count = |kind: fn(&Attributes) -> bool| {
        events.iter().filter_map(|event| event.attributes.as_ref()).filter(|a| kind(a)).count()
    };
    let n_scheduled = count(|a| matches!(a, Attributes::ActivityTaskScheduledEventAttributes(_)));
    let n_done = count(|a| matches!(a, Attributes::ActivityTaskCompletedEventAttributes(_)));
    let n_timers = count(|a| matches!(a, Attributes::TimerStartedEventAttributes(_)));
    let n_fired = count(|a| matches!(a, Attributes::TimerFiredEventAttributes(_)));
    let n_signals = count(|a| matches!(a, Attributes::WorkflowExecutionSignaledEventAttributes(_)));
    let (n_activities, n_signals_expected) = expectations(events);
    if n_scheduled > n_done || n_timers > n_fired {
        return Vec::new();
    }
    if n_done < n_activities {
        let wants_timer = n_done % 3 == 2 && n_timers <= n_done / 3;
        return vec![if wants_timer { start_timer(n_timers) } else { schedule_activity(n_scheduled) }];
    }
    if n_signals < n_signals_expected {
        return Vec::new();
    }
    vec![finish()]
}

pub(super) fn finish() -> Command {
    let attributes = CompleteWorkflowExecutionCommandAttributes { result: Some(text("done")) };
    let attributes = CommandAttributes::CompleteWorkflowExecutionCommandAttributes(attributes);
    command(CommandType::CompleteWorkflowExecution, attributes)
}

/// How many activities and signals the workflow was started with.
fn expectations(events: &[HistoryEvent]) -> (usize, usize) {
    let Some(Attributes::WorkflowExecutionStartedEventAttributes(started)) = &events[0].attributes else {
        panic!("history begins with the start")
    };
    let input = started.input.as_ref().expect("the workflow was started with its plan");
    let plan = std::str::from_utf8(&input.payloads[0].data).unwrap();
    let (activities, signals) = plan.split_once(' ').unwrap();
    (activities.parse().unwrap(), signals.parse().unwrap())
}

fn schedule_activity(n: usize) -> Command {
    let attributes = ScheduleActivityTaskCommandAttributes {
        activity_id: n.to_string(),
        activity_type: Some(ActivityType { name: "step".into() }),
        task_queue: Some(task_queue()),
        start_to_close_timeout: Some(prost_types::Duration { seconds: 5, nanos: 0 }),
        ..Default::default()
    };
    command(CommandType::ScheduleActivityTask, CommandAttributes::ScheduleActivityTaskCommandAttributes(attributes))
}

fn start_timer(n: usize) -> Command {
    let attributes = StartTimerCommandAttributes {
        timer_id: format!("timer-{n}"),
        start_to_fire_timeout: Some(prost_types::Duration { seconds: 1, nanos: 0 }),
    };
    command(CommandType::StartTimer, CommandAttributes::StartTimerCommandAttributes(attributes))
}

pub(super) fn command(kind: CommandType, attributes: CommandAttributes) -> Command {
    Command { command_type: kind.into(), attributes: Some(attributes), ..Default::default() }
}

pub(super) fn task_queue() -> TaskQueue {
    TaskQueue { name: TASK_QUEUE.into(), kind: TaskQueueKind::Normal.into(), normal_name: String::new() }
}

pub(super) fn text(text: &str) -> Payloads {
    Payloads { payloads: vec![Payload { data: text.to_owned().into(), ..Default::default() }] }
}
