//! The wall clock is set back and forth, while the node runs and between its lives. Spans of time keep their lengths by the
//! monotonic clock, what a forward step makes due happens at once, and the time of a run never decreases.

use std::sync::Arc;
use std::time::Duration;

use cluster::env::SimulatedWall;
use persistence::model::Model;
use proto::everrow::{history as to_history, matching as to_matching};
use proto::temporal::api::command::v1::command::Attributes as CommandAttributes;
use proto::temporal::api::command::v1::{Command, StartTimerCommandAttributes};
use proto::temporal::api::common::v1::WorkflowType;
use proto::temporal::api::enums::v1::CommandType;
use proto::temporal::api::history::v1::HistoryEvent;
use proto::temporal::api::history::v1::history_event::Attributes;
use proto::temporal::api::taskqueue::v1::TaskQueue;
use proto::temporal::api::workflowservice::v1 as public;
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use server::history::config::HistoryConfig;
use tokio::time::Instant;

use super::client::{self, Clients};
use super::worker::{command, finish};
use super::world::{NAMESPACE_ID, World};
use super::{check_end, for_seeds, simulate, unknown_outcomes};

/// The type of workflows that start one timer after the other: as many, and as long (in milliseconds), as their input says.
pub(super) const TIMED: &str = "timed";
/// Nobody polls it but the tests here.
const QUIET: &str = "quiet";

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// How often a test looks at a history.
const LOOK: Duration = Duration::from_millis(10);
/// What a store and a worker may take for what a test waits for.
const LATE: Duration = Duration::from_millis(400);
/// Longer than anything that a test here waits for.
const PATIENCE: Duration = Duration::from_secs(4 * 3600);

pub(super) fn is_timed(events: &[HistoryEvent]) -> bool {
    let first = events.first().and_then(|event| event.attributes.as_ref());
    matches!(first, Some(Attributes::WorkflowExecutionStartedEventAttributes(started))
        if started.workflow_type.as_ref().is_some_and(|kind| kind.name == TIMED))
}

pub(super) fn decide(events: &[HistoryEvent]) -> Vec<Command> {
    let (n_timers, length) = plan(events);
    let (n_started, n_fired) = (count(events, is_timer_started), count(events, is_timer_fired));
    if n_started > n_fired {
        return Vec::new();
    }
    if n_fired == n_timers {
        return vec![finish()];
    }
    let attributes = StartTimerCommandAttributes {
        timer_id: n_started.to_string(),
        start_to_fire_timeout: Some(length.try_into().unwrap()),
    };
    vec![command(CommandType::StartTimer, CommandAttributes::StartTimerCommandAttributes(attributes))]
}

fn plan(events: &[HistoryEvent]) -> (usize, Duration) {
    let Some(Attributes::WorkflowExecutionStartedEventAttributes(started)) = &events[0].attributes else {
        panic!("history begins with the start")
    };
    let input = started.input.as_ref().expect("the workflow was started with its plan");
    let plan = std::str::from_utf8(&input.payloads[0].data).unwrap();
    let (n_timers, millis) = plan.split_once(' ').unwrap();
    (n_timers.parse().unwrap(), Duration::from_millis(millis.parse().unwrap()))
}

fn count(events: &[HistoryEvent], is_it: fn(&Attributes) -> bool) -> usize {
    events.iter().filter_map(|event| event.attributes.as_ref()).filter(|what| is_it(what)).count()
}

fn is_timer_started(what: &Attributes) -> bool {
    matches!(what, Attributes::TimerStartedEventAttributes(_))
}

fn is_timer_fired(what: &Attributes) -> bool {
    matches!(what, Attributes::TimerFiredEventAttributes(_))
}

fn is_task_timed_out(what: &Attributes) -> bool {
    matches!(what, Attributes::WorkflowTaskTimedOutEventAttributes(_))
}

async fn until(world: &World, workflow_id: &str, is_it: fn(&Attributes) -> bool) {
    let looking = async {
        while count(&world.history(workflow_id).await, is_it) == 0 {
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.unwrap_or_else(|_| panic!("{workflow_id}: it never happens"));
}

/// Starts a timer of this length. Returns once it is started.
async fn start_timer(world: &World, workflow_id: &str, length: Duration) {
    client::start(&world.handle(), workflow_id, TIMED, &format!("1 {}", length.as_millis())).await;
    until(world, workflow_id, is_timer_started).await;
}

/// The times of a run's events never decrease.
fn check_times(workflow_id: &str, events: &[HistoryEvent]) {
    let times = events.iter().map(|event| event.event_time.map(|at| (at.seconds, at.nanos)));
    assert!(times.is_sorted(), "{workflow_id}: time runs backwards: {events:?}");
}

#[track_caller]
fn assert_takes(took: Duration, length: Duration, what: &str) {
    // A clock that is ahead of the wall clock runs slower by a sixteenth until they meet.
    let longest = length * 16 / 15 + LATE;
    assert!((length.saturating_sub(LOOK)..=longest).contains(&took), "{what}: {length:?} took {took:?}");
}

#[test]
fn a_timer_keeps_its_length_when_the_wall_clock_is_set_back() {
    for back in [30 * SECOND, 10 * MINUTE, 2 * HOUR] {
        simulate(async {
            let world = World::start(&Model::new(), 1).await;
            start_timer(&world, "before", 2 * SECOND).await;
            let began = Instant::now();
            world.wall.step_back(back);
            until(&world, "before", is_timer_fired).await;
            assert_takes(began.elapsed(), 2 * SECOND, "a timer that ran");
            start_timer(&world, "after", 2 * SECOND).await;
            let began = Instant::now();
            until(&world, "after", is_timer_fired).await;
            assert_takes(began.elapsed(), 2 * SECOND, "a timer that was started then");
            check_times("before", &world.history("before").await);
            world.stop().await;
        });
    }
}

async fn start_on_quiet_queue(world: &World, workflow_id: &str, task_timeout: Duration) {
    let request = public::StartWorkflowExecutionRequest {
        workflow_id: workflow_id.into(),
        workflow_type: Some(WorkflowType { name: "quiet".into() }),
        task_queue: Some(TaskQueue { name: QUIET.into(), ..Default::default() }),
        workflow_task_timeout: Some(task_timeout.try_into().unwrap()),
        request_id: "one".into(),
        ..Default::default()
    };
    let request = to_history::StartWorkflowExecutionRequest {
        namespace_id: NAMESPACE_ID.into(),
        request: Some(request),
        ..Default::default()
    };
    world.handle().services().history.start_workflow_execution(request).await.unwrap();
}

async fn poll_quiet_queue(world: &World) {
    let poll = public::PollWorkflowTaskQueueRequest {
        task_queue: Some(TaskQueue { name: QUIET.into(), ..Default::default() }),
        ..Default::default()
    };
    let poll = to_matching::PollWorkflowTaskQueueRequest {
        namespace_id: NAMESPACE_ID.into(),
        request: Some(poll),
        ..Default::default()
    };
    let task = world.handle().services().matching.poll_workflow_task_queue(poll).await.unwrap();
    assert!(!task.task_token.is_empty(), "there is a task");
}

#[test]
fn a_task_timeout_keeps_its_length_when_the_wall_clock_is_set_back() {
    simulate(async {
        let world = World::start(&Model::new(), 1).await;
        start_on_quiet_queue(&world, "slow", SECOND).await;
        poll_quiet_queue(&world).await;
        let began = Instant::now();
        world.wall.step_back(30 * SECOND);
        until(&world, "slow", is_task_timed_out).await;
        assert_takes(began.elapsed(), SECOND, "a workflow task's timeout");
        world.stop().await;
    });
}

async fn resume(wall: &SimulatedWall, model: &Arc<Model>, seed: u64) -> World {
    World::start_at(wall, model, (seed, HistoryConfig::default())).await
}

#[test]
fn timers_fire_in_time_after_a_restart_with_the_wall_clock_set_back() {
    simulate(async {
        let model = Model::new();
        let world = World::start(&model, 1).await;
        start_timer(&world, "warm-up", SECOND).await;
        until(&world, "warm-up", is_timer_fired).await;
        start_timer(&world, "before", 3 * SECOND).await;
        let wall = world.wall.clone();
        world.stop().await;
        wall.step_back(2 * HOUR);
        let began = Instant::now();
        let world = resume(&wall, &model, 2).await;
        until(&world, "before", is_timer_fired).await;
        assert_takes(began.elapsed(), 3 * SECOND, "a timer from before the restart");
        start_timer(&world, "after", 3 * SECOND).await;
        let began = Instant::now();
        until(&world, "after", is_timer_fired).await;
        assert_takes(began.elapsed(), 3 * SECOND, "a timer that was started after the restart");
        check_times("before", &world.history("before").await);
        world.stop().await;
    });
}

#[test]
fn what_a_forward_step_makes_due_happens_within_a_second() {
    simulate(async {
        let world = World::start(&Model::new(), 1).await;
        start_timer(&world, "overdue", 30 * MINUTE).await;
        start_timer(&world, "not-yet", 2 * HOUR).await;
        // The loops are asleep, until the timer's time or for good.
        tokio::time::sleep(MINUTE).await;
        let began = Instant::now();
        world.wall.step_forward(HOUR);
        until(&world, "overdue", is_timer_fired).await;
        assert!(began.elapsed() <= SECOND, "it fired after {:?}", began.elapsed());
        assert_eq!(count(&world.history("not-yet").await, is_timer_fired), 0);
        until(&world, "not-yet", is_timer_fired).await;
        assert_takes(began.elapsed(), HOUR - MINUTE, "what is left of the other");
        world.stop().await;
    });
}

/// What was done to the wall clock, by the monotonic one.
#[derive(Default)]
struct Steps {
    forward: Vec<(Instant, Duration)>,
}

impl Steps {
    /// A step of up to two hours, or of seconds; forth or back.
    fn make_one(&mut self, wall: &SimulatedWall, random: &mut SmallRng) {
        let longest = [5 * SECOND, 5 * MINUTE, 2 * HOUR][random.random_range(0..3)];
        let span = longest.mul_f64(random.random_range(0.0..1.0));
        if random.random_range(0..3) == 0 {
            self.forward.push((Instant::now(), span));
            wall.step_forward(span);
        } else {
            wall.step_back(span);
        }
    }

    fn forward_since(&self, began: Instant) -> Duration {
        self.forward.iter().filter(|(at, _)| *at >= began).map(|(_, span)| *span).sum()
    }
}

/// A crash loses up to this much of a shard's time, if the wall clock is set back too: the age of a checkpoint, and what it
/// takes to load the shard.
const LOST_BY_CRASH: Duration = Duration::from_secs(12);
const N_TIMERS: usize = 3;
const N_ROUNDS: usize = 8;

/// A workflow with timers of 3 s. It ends in time, however the wall clock is set meanwhile.
async fn round(world: World, model: &Arc<Model>, steps: &mut Steps, random: &mut SmallRng, n: u64) -> World {
    let workflow_id = format!("timed-{n}");
    client::start(&world.handle(), &workflow_id, TIMED, &format!("{N_TIMERS} 3000")).await;
    until(&world, &workflow_id, is_timer_started).await;
    let began = Instant::now();
    let (wall, seed) = (world.wall.clone(), n + 1000);
    let mut allowed = 3 * SECOND * u32::try_from(N_TIMERS).unwrap() * 16 / 15 + 3 * LATE;
    tokio::time::sleep(SECOND.mul_f64(random.random_range(0.0..3.0))).await;
    let world = match random.random_range(0..3) {
        0 => {
            steps.make_one(&wall, random);
            world
        }
        1 => {
            world.stop().await;
            steps.make_one(&wall, random);
            allowed += 2 * SECOND;
            resume(&wall, model, seed).await
        }
        _ => {
            steps.make_one(&wall, random);
            allowed += LOST_BY_CRASH;
            world.crash_and_restart(model, seed).await
        }
    };
    until(&world, &workflow_id, is_completed).await;
    let took = began.elapsed();
    let least = 3 * SECOND * u32::try_from(N_TIMERS).unwrap();
    assert!(took + LATE + steps.forward_since(began) >= least, "{workflow_id}: too early, after {took:?}");
    assert!(took <= allowed, "{workflow_id}: too late, after {took:?}");
    let events = world.history(&workflow_id).await;
    check_times(&workflow_id, &events);
    assert_eq!(count(&events, is_timer_fired), N_TIMERS, "{workflow_id}: every timer fires once");
    world
}

fn is_completed(what: &Attributes) -> bool {
    matches!(what, Attributes::WorkflowExecutionCompletedEventAttributes(_))
}

#[test]
fn timers_keep_their_lengths_whatever_is_done_to_the_wall_clock_and_the_node() {
    let run = |seed| async move {
        let (model, mut random) = (Model::new(), SmallRng::seed_from_u64(seed));
        let mut steps = Steps::default();
        let mut world = World::start(&model, seed).await;
        for n in 0..N_ROUNDS {
            world = round(world, &model, &mut steps, &mut random, seed * 100 + n as u64).await;
        }
        world.stop().await;
        N_ROUNDS
    };
    for_seeds(9000..9020, |seed| simulate(run(seed)));
}

#[test]
fn the_usual_load_ends_well_whatever_is_done_to_the_wall_clock() {
    let run = |seed| async move {
        let model = Model::with_faults(unknown_outcomes(seed));
        let mut random = SmallRng::seed_from_u64(seed);
        let mut steps = Steps::default();
        let mut world = World::start(&model, seed).await;
        let clients = Clients::start(&world, 6, 4, 20);
        for crash in 1..=6 {
            tokio::time::sleep(Duration::from_millis(random.random_range(1..400))).await;
            steps.make_one(&world.wall, &mut random);
            if crash % 2 == 0 {
                world = world.crash_and_restart(&model, seed + crash).await;
            }
        }
        let sent = clients.all_acknowledged().await;
        model.stop_faults();
        world.all_closed(&sent).await;
        world.stop().await;
        check_end(&model, seed + 100, &sent).await
    };
    for_seeds(9100..9120, |seed| simulate(run(seed)));
}
