//! A schedule on a store with faults and a node that dies: every one of its times gets one run, and only one.

use std::time::Duration;

use cluster::env::SimulatedWall;
use cluster::errors::ServiceError;
use persistence::model::Model;
use proto::everrow::history as to_history;
use proto::temporal::api::common::v1::WorkflowType;
use proto::temporal::api::enums::v1::{ScheduleOverlapPolicy, WorkflowExecutionStatus};
use proto::temporal::api::schedule::v1 as schedule;
use proto::temporal::api::schedule::v1::schedule_action::Action;
use proto::temporal::api::taskqueue::v1::TaskQueue;
use proto::temporal::api::workflow::v1::NewWorkflowExecutionInfo;
use proto::temporal::api::workflowservice::v1 as public;

use super::families::make_namespace;
use super::world::{NAMESPACE_ID, Services, World};
use super::{for_seeds, simulate, unknown_outcomes};

const ID: &str = "every-ten-seconds";
const EVERY_SECONDS: i64 = 10;

fn seconds(seconds: i64) -> Option<prost_types::Duration> {
    Some(prost_types::Duration { seconds, nanos: 0 })
}

/// Its runs time out after a while: nobody works on them.
fn definition() -> schedule::Schedule {
    let start = NewWorkflowExecutionInfo {
        workflow_id: "tick".into(),
        workflow_type: Some(WorkflowType { name: "tick".into() }),
        task_queue: Some(TaskQueue { name: "quiet".into(), ..Default::default() }),
        workflow_run_timeout: seconds(3),
        ..Default::default()
    };
    let interval = schedule::IntervalSpec { interval: seconds(EVERY_SECONDS), phase: None };
    let policies =
        schedule::SchedulePolicies { overlap_policy: ScheduleOverlapPolicy::BufferAll.into(), ..Default::default() };
    schedule::Schedule {
        spec: Some(schedule::ScheduleSpec { interval: vec![interval], ..Default::default() }),
        action: Some(schedule::ScheduleAction { action: Some(Action::StartWorkflow(start)) }),
        policies: Some(policies),
        state: None,
    }
}

async fn create(services: &Services) -> Result<public::CreateScheduleResponse, ServiceError> {
    let request = public::CreateScheduleRequest {
        schedule_id: ID.into(),
        schedule: Some(definition()),
        request_id: "one".into(),
        ..Default::default()
    };
    let request = to_history::CreateScheduleRequest { namespace_id: NAMESPACE_ID.into(), request: Some(request) };
    services.history.create_schedule(request).await
}

async fn pause(services: &Services) -> Result<public::PatchScheduleResponse, ServiceError> {
    let patch = schedule::SchedulePatch { pause: "enough".into(), ..Default::default() };
    let request = public::PatchScheduleRequest {
        schedule_id: ID.into(),
        patch: Some(patch),
        request_id: "pause".into(),
        ..Default::default()
    };
    let request = to_history::PatchScheduleRequest { namespace_id: NAMESPACE_ID.into(), request: Some(request) };
    services.history.patch_schedule(request).await
}

async fn describe(services: &Services) -> Result<schedule::ScheduleInfo, ServiceError> {
    let request = public::DescribeScheduleRequest { schedule_id: ID.into(), ..Default::default() };
    let request = to_history::DescribeScheduleRequest { namespace_id: NAMESPACE_ID.into(), request: Some(request) };
    Ok(services.history.describe_schedule(request).await?.info.unwrap())
}

async fn until_idle(world: &World) -> schedule::ScheduleInfo {
    loop {
        match describe(&world.handle().services()).await {
            Ok(info) if info.running_workflows.is_empty() && info.buffer_size == 0 => return info,
            Ok(_) | Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Every time from the first one after the creation to the last one has its run, which is over.
async fn check(world: &World, info: &schedule::ScheduleInfo) {
    let created = info.create_time.unwrap().seconds;
    let first = (created.div_euclid(EVERY_SECONDS) + 1) * EVERY_SECONDS;
    let last = info.recent_actions.last().unwrap().schedule_time.unwrap().seconds;
    assert_eq!(info.action_count, (last - first) / EVERY_SECONDS + 1, "one action for each time");
    assert_eq!((info.missed_catchup_window, info.overlap_skipped, info.buffer_dropped), (0, 0, 0));
    for second in (first..=last).step_by(10) {
        let workflow_id = format!("tick-{}", prost_types::Timestamp { seconds: second, nanos: 0 });
        assert_eq!(world.describe(&workflow_id).await.status(), WorkflowExecutionStatus::TimedOut, "{workflow_id}");
    }
}

/// `between` comes before each crash.
async fn act_over_crashes(seed: u64, between: impl Fn(&SimulatedWall, u64)) -> usize {
    let model = Model::with_faults(unknown_outcomes(seed));
    make_namespace(&model).await;
    let mut world = World::start(&model, seed).await;
    while create(&world.handle().services()).await.is_err() {}
    for crash in 1..=6 {
        tokio::time::sleep(Duration::from_millis(17_301 * crash)).await;
        between(&world.wall, crash);
        world = world.crash_and_restart(&model, seed + crash).await;
    }
    tokio::time::sleep(Duration::from_secs(30)).await;
    while pause(&world.handle().services()).await.is_err() {}
    model.stop_faults();
    let info = until_idle(&world).await;
    assert!(info.action_count > 30, "it acted {} times", info.action_count);
    check(&world, &info).await;
    world.stop().await;
    0
}

#[test]
fn every_time_of_a_schedule_has_one_run_whatever_the_store_and_the_node_do() {
    for_seeds(0..10, |seed| simulate(act_over_crashes(seed, |_, _| {})));
}

#[test]
fn every_time_of_a_schedule_has_one_run_whatever_is_done_to_the_wall_clock() {
    let set_clock = |wall: &SimulatedWall, crash| match crash {
        1 => wall.step_back(Duration::from_secs(45)),
        2 => wall.step_forward(Duration::from_secs(95)),
        3 => wall.step_back(Duration::from_secs(2 * 3600)),
        5 => wall.step_forward(Duration::from_secs(2 * 3600)),
        _ => wall.step_back(Duration::from_secs(7)),
    };
    for_seeds(50..60, |seed| simulate(act_over_crashes(seed, set_clock)));
}
