//! Schedules over gRPC: made, acting, stopped in between, listed and deleted.

use std::time::Duration;

use proto::temporal::api::common::v1::{WorkflowExecution, WorkflowType};
use proto::temporal::api::enums::v1::{ScheduleOverlapPolicy, WorkflowExecutionStatus};
use proto::temporal::api::schedule::v1 as schedule;
use proto::temporal::api::schedule::v1::schedule_action::Action;
use proto::temporal::api::taskqueue::v1::TaskQueue;
use proto::temporal::api::workflow::v1::NewWorkflowExecutionInfo;
use proto::temporal::api::workflowservice::v1 as public;
use tonic::{Code, Status};

use crate::given::{Given, NAMESPACE, a_node, a_node_in, refused};

const ID: &str = "reports";

pub(crate) fn definition(every_seconds: i64, policy: ScheduleOverlapPolicy) -> schedule::Schedule {
    let start = NewWorkflowExecutionInfo {
        workflow_id: "report".into(),
        workflow_type: Some(WorkflowType { name: "Report".into() }),
        task_queue: Some(TaskQueue { name: "nobody polls".into(), ..Default::default() }),
        ..Default::default()
    };
    let every = Some(prost_types::Duration { seconds: every_seconds, nanos: 0 });
    let interval = schedule::IntervalSpec { interval: every, phase: None };
    schedule::Schedule {
        spec: Some(schedule::ScheduleSpec { interval: vec![interval], ..Default::default() }),
        action: Some(schedule::ScheduleAction { action: Some(Action::StartWorkflow(start)) }),
        policies: Some(schedule::SchedulePolicies { overlap_policy: policy.into(), ..Default::default() }),
        state: None,
    }
}

pub(crate) const NEVER: i64 = 3650 * 24 * 60 * 60;

pub(crate) async fn create(given: &Given, definition: schedule::Schedule, request_id: &str) -> Result<(), Status> {
    let request = public::CreateScheduleRequest {
        namespace: NAMESPACE.into(),
        schedule_id: ID.into(),
        schedule: Some(definition),
        request_id: request_id.into(),
        ..Default::default()
    };
    given.client().create_schedule(request).await.map(|_| ())
}

async fn describe(given: &Given) -> Result<public::DescribeScheduleResponse, Status> {
    let request = public::DescribeScheduleRequest { namespace: NAMESPACE.into(), schedule_id: ID.into() };
    given.client().describe_schedule(request).await.map(tonic::Response::into_inner)
}

pub(crate) async fn patch(given: &Given, patch: schedule::SchedulePatch, request_id: &str) {
    let request = public::PatchScheduleRequest {
        namespace: NAMESPACE.into(),
        schedule_id: ID.into(),
        patch: Some(patch),
        request_id: request_id.into(),
        ..Default::default()
    };
    given.client().patch_schedule(request).await.expect("it is patched");
}

pub(crate) fn trigger(policy: ScheduleOverlapPolicy) -> schedule::SchedulePatch {
    let trigger = schedule::TriggerImmediatelyRequest { overlap_policy: policy.into(), scheduled_time: None };
    schedule::SchedulePatch { trigger_immediately: Some(trigger), ..Default::default() }
}

async fn delete(given: &Given) -> Result<(), Status> {
    let request =
        public::DeleteScheduleRequest { namespace: NAMESPACE.into(), schedule_id: ID.into(), ..Default::default() };
    given.client().delete_schedule(request).await.map(|_| ())
}

/// Describes the schedule until its info is as wanted.
async fn until(given: &Given, wanted: impl Fn(&schedule::ScheduleInfo) -> bool) -> schedule::ScheduleInfo {
    let asked = async {
        loop {
            let info = describe(given).await.expect("it is there").info.expect("it is described");
            if wanted(&info) {
                return info;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), asked).await.expect("it comes true")
}

async fn terminate(given: &Given, execution: &WorkflowExecution) {
    let request = public::TerminateWorkflowExecutionRequest {
        namespace: NAMESPACE.into(),
        workflow_execution: Some(execution.clone()),
        ..Default::default()
    };
    given.client().terminate_workflow_execution(request).await.expect("it is open");
}

async fn status(given: &Given, execution: &WorkflowExecution) -> WorkflowExecutionStatus {
    let request =
        public::DescribeWorkflowExecutionRequest { namespace: NAMESPACE.into(), execution: Some(execution.clone()) };
    let described = given.client().describe_workflow_execution(request).await.expect("it is there").into_inner();
    described.workflow_execution_info.expect("it is described").status()
}

async fn listed(given: &Given, query: &str) -> Vec<schedule::ScheduleListEntry> {
    let request =
        public::ListSchedulesRequest { namespace: NAMESPACE.into(), query: query.into(), ..Default::default() };
    given.client().list_schedules(request).await.expect("they are listed").into_inner().schedules
}

async fn until_listed(given: &Given, query: &str, count: usize) -> Vec<schedule::ScheduleListEntry> {
    let asked = async {
        loop {
            let entries = listed(given, query).await;
            if entries.len() == count {
                return entries;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), asked).await.expect("lists hear of it")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_is_made_once_and_gone_when_it_is_deleted() {
    let given = a_node().await;
    create(&given, definition(NEVER, ScheduleOverlapPolicy::Skip), "c-1").await.expect("it is made");
    create(&given, definition(NEVER, ScheduleOverlapPolicy::Skip), "c-1").await.expect("it is the same request");
    let again = create(&given, definition(NEVER, ScheduleOverlapPolicy::Skip), "c-2").await;
    refused(again, Code::AlreadyExists, "schedule \"reports\" is already registered");
    until_listed(&given, "", 1).await;
    delete(&given).await.expect("it is deleted");
    let missing = "workflow not found for ID: temporal-sys-scheduler:reports";
    refused(describe(&given).await, Code::NotFound, missing);
    refused(delete(&given).await, Code::NotFound, missing);
    until_listed(&given, "", 0).await;
    create(&given, definition(NEVER, ScheduleOverlapPolicy::Skip), "c-3").await.expect("its id is free");
    until_listed(&given, "", 1).await;
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_acts_by_itself_and_after_a_restart() {
    let given = a_node().await;
    create(&given, definition(1, ScheduleOverlapPolicy::AllowAll), "c-1").await.expect("it is made");
    let info = until(&given, |info| info.action_count >= 2).await;
    let run = info.recent_actions[0].start_workflow_result.clone().expect("it was started");
    assert_eq!(status(&given, &run).await, WorkflowExecutionStatus::Running);
    let before = info.action_count;
    let given = a_node_in(given.stop().await).await;
    let info = until(&given, |info| info.action_count > before + 1).await;
    let ids: Vec<_> = info.recent_actions.iter().flat_map(|action| &action.start_workflow_result).collect();
    let mut distinct: Vec<_> = ids.iter().map(|run| &run.workflow_id).collect();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), ids.len(), "no time is taken twice");
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_ends_lets_the_next_one_begin() {
    let given = a_node().await;
    create(&given, definition(NEVER, ScheduleOverlapPolicy::BufferAll), "c-1").await.expect("it is made");
    let day = 24 * 60 * 60;
    let at = |second| Some(prost_types::Timestamp { seconds: second, nanos: 0 });
    let update = public::UpdateScheduleRequest {
        namespace: NAMESPACE.into(),
        schedule_id: ID.into(),
        schedule: Some(definition(day, ScheduleOverlapPolicy::BufferAll)),
        request_id: "u-1".into(),
        ..Default::default()
    };
    given.client().update_schedule(update).await.expect("it is updated");
    let backfill = schedule::BackfillRequest { start_time: at(10 * day), end_time: at(12 * day), ..Default::default() };
    let patched = schedule::SchedulePatch { backfill_request: vec![backfill], ..Default::default() };
    patch(&given, patched, "p-1").await;
    for day in ["1970-01-11", "1970-01-12", "1970-01-13"] {
        let info = until(&given, |info| info.running_workflows.len() == 1).await;
        let run = info.running_workflows[0].clone();
        assert_eq!(run.workflow_id, format!("report-{day}T00:00:00Z"));
        terminate(&given, &run).await;
        until(&given, |info| !info.running_workflows.contains(&run)).await;
    }
    let info = until(&given, |info| info.action_count == 3).await;
    let ended = |action: &schedule::ScheduleActionResult| action.start_workflow_status();
    assert!(info.recent_actions.iter().all(|action| ended(action) == WorkflowExecutionStatus::Terminated));
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_in_the_way_is_terminated_if_the_policy_says_so() {
    let given = a_node().await;
    create(&given, definition(NEVER, ScheduleOverlapPolicy::Skip), "c-1").await.expect("it is made");
    patch(&given, trigger(ScheduleOverlapPolicy::Skip), "p-1").await;
    let first = until(&given, |info| info.running_workflows.len() == 1).await.running_workflows[0].clone();
    patch(&given, trigger(ScheduleOverlapPolicy::Skip), "p-2").await;
    until(&given, |info| info.overlap_skipped == 1).await;
    let mut policy = trigger(ScheduleOverlapPolicy::TerminateOther);
    let later = prost_types::Timestamp { seconds: 4_000_000_000, nanos: 0 };
    policy.trigger_immediately.as_mut().expect("it triggers").scheduled_time = Some(later);
    patch(&given, policy, "p-3").await;
    let info = until(&given, |info| info.action_count == 2).await;
    assert_eq!(info.recent_actions[0].start_workflow_status(), WorkflowExecutionStatus::Terminated);
    assert_eq!(status(&given, &first).await, WorkflowExecutionStatus::Terminated);
    assert_eq!(info.running_workflows[0].workflow_id, "report-2096-10-02T07:06:40Z");
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deprecated_namespace_starts_nothing_new() {
    let given = a_node().await;
    create(&given, definition(NEVER, ScheduleOverlapPolicy::Skip), "c-1").await.expect("it is made");
    let deprecate = public::DeprecateNamespaceRequest { namespace: NAMESPACE.into(), ..Default::default() };
    given.client().deprecate_namespace(deprecate).await.expect("it is deprecated");
    // The second one's turn comes when the first one is settled, and a run would block it forever.
    patch(&given, trigger(ScheduleOverlapPolicy::BufferAll), "p-1").await;
    patch(&given, trigger(ScheduleOverlapPolicy::BufferAll), "p-2").await;
    let info = until(&given, |info| info.buffer_size == 0).await;
    assert_eq!((info.action_count, info.running_workflows.len()), (0, 0));
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_schedules_and_of_runs_do_not_mix() {
    let given = a_node().await;
    create(&given, definition(NEVER, ScheduleOverlapPolicy::Skip), "c-1").await.expect("it is made");
    let entry = until_listed(&given, "ScheduleId = 'reports'", 1).await.remove(0);
    let info = entry.info.expect("it is listed");
    assert_eq!((entry.schedule_id.as_str(), info.paused), (ID, false));
    assert_eq!(info.workflow_type, Some(WorkflowType { name: "Report".into() }));
    patch(&given, schedule::SchedulePatch { pause: "holidays".into(), ..Default::default() }, "p-1").await;
    let paused = until_listed(&given, "TemporalSchedulePaused = true", 1).await.remove(0);
    assert_eq!(paused.info.expect("it is listed").notes, "holidays");
    assert!(listed(&given, "TemporalSchedulePaused = false").await.is_empty());
    let count = public::CountSchedulesRequest { namespace: NAMESPACE.into(), query: String::new() };
    assert_eq!(given.client().count_schedules(count).await.expect("they are counted").into_inner().count, 1);
    let runs = public::CountWorkflowExecutionsRequest { namespace: NAMESPACE.into(), query: String::new() };
    assert_eq!(given.client().count_workflow_executions(runs).await.expect("counted").into_inner().count, 0);
    let request = public::ListSchedulesRequest {
        namespace: NAMESPACE.into(),
        query: "WorkflowId = 'reports'".into(),
        ..Default::default()
    };
    let message = "invalid query filter for schedules: cannot filter on \"WorkflowId\"";
    refused(given.client().list_schedules(request).await, Code::InvalidArgument, message);
    given.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_description_has_the_actions_that_were_asked_for_before_it() {
    // Runs are named after the second that they are for.
    let for_second = |second: i64| {
        let mut patch = trigger(ScheduleOverlapPolicy::AllowAll);
        let at = prost_types::Timestamp { seconds: 1_767_225_600 + second, nanos: 0 };
        patch.trigger_immediately.as_mut().expect("it triggers").scheduled_time = Some(at);
        patch
    };
    let given = a_node().await;
    for n in 0..20 {
        let request = public::CreateScheduleRequest {
            namespace: NAMESPACE.into(),
            schedule_id: ID.into(),
            schedule: Some(definition(NEVER, ScheduleOverlapPolicy::AllowAll)),
            initial_patch: Some(for_second(2 * n)),
            request_id: format!("create {n}"),
            ..Default::default()
        };
        given.client().create_schedule(request).await.expect("it is new");
        let info = describe(&given).await.expect("it is there").info.expect("it is described");
        assert_eq!((info.recent_actions.len(), info.action_count), (1, 1), "round {n}: right after it was made");
        patch(&given, for_second(2 * n + 1), &format!("patch {n}")).await;
        let info = describe(&given).await.expect("it is there").info.expect("it is described");
        assert_eq!((info.recent_actions.len(), info.action_count), (2, 2), "round {n}: right after a trigger");
        delete(&given).await.expect("it is deleted");
    }
}

fn every_second() -> schedule::StructuredCalendarSpec {
    let range = |start, end| vec![schedule::Range { start, end, step: 0 }];
    schedule::StructuredCalendarSpec {
        second: range(0, 59),
        minute: range(0, 59),
        hour: range(0, 23),
        day_of_month: range(1, 31),
        month: range(1, 12),
        day_of_week: range(0, 6),
        ..Default::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_excluded_range_of_all_integers_is_refused() {
    let given = a_node().await;
    let mut definition = definition(NEVER, ScheduleOverlapPolicy::Skip);
    let second = vec![schedule::Range { start: i32::MIN, end: i32::MAX, step: 1 }];
    let excluded = schedule::StructuredCalendarSpec { second, ..every_second() };
    definition.spec.as_mut().expect("a specification").exclude_structured_calendar = vec![excluded];
    let refusal = create(&given, definition, "create").await.expect_err("it is refused");
    assert_eq!(refusal.code(), Code::InvalidArgument);
    assert!(refusal.message().contains("Second Start is not in range [0-59]"), "{}", refusal.message());
}

/// Each of these calls took minutes of a core, and so did the first look after a restart.
#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_whose_times_are_all_excluded_is_made_described_and_found_again() {
    let given = a_node().await;
    let mut definition = definition(NEVER, ScheduleOverlapPolicy::Skip);
    let range = |value| vec![schedule::Range { start: value, end: 0, step: 0 }];
    let never = schedule::StructuredCalendarSpec { day_of_month: range(30), month: range(2), ..every_second() };
    let spec = definition.spec.as_mut().expect("a specification");
    spec.interval.clear();
    spec.structured_calendar = vec![never; 20];
    spec.structured_calendar.push(every_second());
    spec.exclude_structured_calendar = vec![every_second()];
    create(&given, definition, "create").await.expect("all of its values are valid");
    let given = a_node_in(given.stop().await).await;
    let info = describe(&given).await.expect("it is there").info.expect("it is described");
    assert_eq!(info.future_action_times, []);
    let request = public::ListScheduleMatchingTimesRequest {
        namespace: NAMESPACE.into(),
        schedule_id: ID.into(),
        start_time: Some(prost_types::Timestamp { seconds: 1_767_225_600, nanos: 0 }),
        end_time: Some(prost_types::Timestamp { seconds: 4_000_000_000, nanos: 0 }),
    };
    let refusal = given.client().list_schedule_matching_times(request).await.expect_err("there are none");
    assert_eq!(refusal.code(), Code::InvalidArgument, "as in the reference: {}", refusal.message());
}
