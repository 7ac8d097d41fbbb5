//! The clock at given readings, and on random walks.

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

use super::super::wall::nanos;
use super::*;

const BEGIN: i64 = 1_700_000_000 * SECOND;
const SECOND: i64 = 1_000_000_000;
const HOUR: i64 = 3600 * SECOND;

/// A machine with its two clocks.
struct Machine {
    wall: i64,
    ticks: i64,
    clock: SteadyClock,
}

impl Machine {
    fn new() -> Self {
        let (wall, ticks) = (BEGIN, 7 * SECOND);
        Self { wall, ticks, clock: SteadyClock::new(Reading { wall: Timestamp(wall), ticks }) }
    }

    fn pass(&mut self, span: i64) {
        self.wall += span;
        self.ticks += span;
    }

    fn reading(&self) -> Reading {
        Reading { wall: Timestamp(self.wall), ticks: self.ticks }
    }

    fn now(&self) -> Adjusted {
        match self.clock.read(self.reading()) {
            Some(now) => Adjusted { now, has_jumped: false, step: None },
            None => self.clock.adjust(|| self.reading()),
        }
    }

    fn time(&self) -> i64 {
        self.now().now.0
    }
}

#[test]
fn without_steps_it_is_the_wall_clock() {
    let mut machine = Machine::new();
    for span in [0, 1, SECOND, 24 * HOUR] {
        machine.pass(span);
        let wall = Timestamp(machine.wall);
        assert_eq!(machine.now(), Adjusted { now: wall, has_jumped: false, step: None });
    }
}

#[test]
fn a_forward_step_is_followed_at_once_and_reported_once() {
    let mut machine = Machine::new();
    machine.wall += HOUR;
    let now = Timestamp(BEGIN + HOUR);
    assert_eq!(machine.now(), Adjusted { now, has_jumped: true, step: Some(HOUR) });
    assert_eq!(machine.now(), Adjusted { now, has_jumped: false, step: None });
    machine.pass(SECOND);
    assert_eq!(machine.time(), machine.wall);
}

#[test]
fn after_a_step_back_it_goes_on_a_sixteenth_slower_until_both_meet() {
    let mut machine = Machine::new();
    machine.wall -= 30 * SECOND;
    assert_eq!(machine.now(), Adjusted { now: Timestamp(BEGIN), has_jumped: false, step: Some(-30 * SECOND) });
    for (after, lead) in [(0, 30_000), (16, 29_000), (240, 15_000), (479, 63), (480, 0), (481, 0), (10_000, 0)] {
        machine.ticks = 7 * SECOND + after * SECOND;
        machine.wall = BEGIN - 30 * SECOND + after * SECOND;
        let now = machine.now();
        assert_eq!(now.step, None, "reported once");
        assert_eq!((now.now.0 - machine.wall + SECOND / 2000) / (SECOND / 1000), lead, "after {after} s");
    }
}

#[test]
fn a_clock_that_is_set_back_and_forth_gains_nothing() {
    let mut machine = Machine::new();
    for _ in 0..100 {
        machine.wall -= 30 * SECOND;
        assert_eq!(machine.now().step, Some(-30 * SECOND));
        machine.pass(SECOND);
        machine.wall += 30 * SECOND;
        assert_eq!(machine.now().step, Some(30 * SECOND));
        machine.pass(SECOND);
        machine.now();
        assert!((machine.time() - machine.wall).abs() < SECOND / 10, "ahead by {}", machine.time() - machine.wall);
    }
}

#[test]
fn a_small_drift_is_followed_and_not_reported() {
    let mut machine = Machine::new();
    for drift in [5_000_000, -5_000_000, 90_000_000, -90_000_000] {
        machine.pass(SECOND);
        machine.wall += drift;
        assert_eq!(machine.now().step, None);
        machine.pass(10 * SECOND);
        assert!((machine.time() - machine.wall).abs() <= drift.abs());
    }
}

#[test]
fn a_reader_that_was_interrupted_between_the_clocks_sets_nothing() {
    let mut machine = Machine::new();
    let stale = machine.reading();
    machine.pass(SECOND);
    let mixed = Reading { wall: stale.wall, ticks: machine.ticks };
    assert_eq!(machine.clock.read(mixed), None, "it looks like a step back");
    let adjusted = machine.clock.adjust(|| machine.reading());
    assert_eq!(adjusted, Adjusted { now: Timestamp(machine.wall), has_jumped: false, step: None });
}

#[test]
fn a_wait_ends_at_its_moment_and_not_before() {
    for back in [0, SECOND, 30 * SECOND, 2 * HOUR] {
        for span in [0, 1, SECOND, 15 * SECOND, 449 * SECOND, HOUR, 48 * HOUR] {
            let mut machine = Machine::new();
            machine.wall -= back;
            let until = Timestamp(machine.time() + span);
            let wait = nanos(machine.clock.wait(until, machine.ticks));
            assert!(wait >= span && wait <= span + span / (SLEW - 1) + 1, "{back} {span} {wait}");
            // A few nanoseconds are lost to rounding.
            let nearly = (wait - 4).max(0);
            machine.pass(nearly);
            assert!(wait <= 4 || machine.time() < until.0, "{back} {span}: too long");
            machine.pass(wait - nearly);
            assert!(machine.time() >= until.0, "{back} {span}: too short");
        }
    }
}

#[test]
fn a_raised_clock_is_ahead_and_its_parent_is_not() {
    let mut machine = Machine::new();
    let own = machine.clock.fork();
    assert_eq!(own.raise(Timestamp(BEGIN - HOUR), machine.reading()), Duration::ZERO, "it is later already");
    assert_eq!(own.raise(Timestamp(BEGIN + 2 * HOUR), machine.reading()), Duration::from_secs(7200));
    machine.pass(16 * SECOND);
    assert_eq!(own.read(machine.reading()), Some(Timestamp(BEGIN + 2 * HOUR + 15 * SECOND)));
    assert_eq!(machine.time(), machine.wall);
}

#[test]
fn it_never_runs_backwards_nor_faster_than_the_monotonic_clock_whatever_is_done_to_the_wall_clock() {
    for seed in 0..300 {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut machine = Machine::new();
        let mut last = machine.time();
        for _ in 0..500 {
            let passed = random.random_range(0..10 * SECOND);
            machine.pass(passed);
            let mut forward = 0;
            if random.random_range(0..4) == 0 {
                let step = random.random_range(-2 * HOUR..2 * HOUR) / [1, 60, 3600, 100_000][random.random_range(0..4)];
                machine.wall += step;
                forward = step.max(0);
            }
            let now = machine.time();
            let gained = now - last;
            assert!(gained >= passed - passed / SLEW - 1, "seed {seed}: {passed} passed, the clock gained {gained}");
            assert!(gained <= passed + forward + 2 * TOLERANCE, "seed {seed}: {passed} passed, it gained {gained}");
            assert!(now >= machine.wall - TOLERANCE, "seed {seed}: behind the wall clock");
            last = now;
        }
        machine.pass(HOUR * 24 * 365);
        assert!((machine.time() - machine.wall).abs() <= TOLERANCE, "seed {seed}: they never meet");
    }
}

#[test]
fn readers_on_other_threads_never_see_half_a_change() {
    let machine = Machine::new();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = || {
            let mut last = i64::MIN;
            while !is_over.load(Ordering::Relaxed) {
                let course = machine.clock.published.load();
                assert_eq!(course.from_time, course.from_ticks + BEGIN, "of one change");
                assert!(course.from_time >= last, "a change is not undone");
                last = course.from_time;
            }
        };
        machine.clock.published.store(Course { from_ticks: 0, from_time: BEGIN, lead: 0 });
        scope.spawn(reader);
        scope.spawn(reader);
        for n in 0..200_000 {
            machine.clock.published.store(Course { from_ticks: n, from_time: BEGIN + n, lead: 0 });
        }
        is_over.store(true, Ordering::Relaxed);
    });
}
