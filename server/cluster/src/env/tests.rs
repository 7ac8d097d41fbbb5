//! What sleeps and watches by the clock when the wall clock is set.

use tokio::time::Instant;

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test(start_paused = true)]
async fn a_sleep_keeps_its_length_when_the_wall_clock_is_set_back() {
    let wall = SimulatedWall::new();
    let env = Env::simulated_by(&wall, 1);
    let (moment, began) = (env.now() + 15 * SECOND, Instant::now());
    wall.step_back(2 * HOUR);
    env.sleep_until(moment).await;
    assert!(env.now() >= moment);
    let took = began.elapsed();
    assert!((15 * SECOND..=16 * SECOND + SECOND / 100).contains(&took), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_forward_step_ends_sleeps_within_a_second_by_every_clock_of_the_node() {
    let wall = SimulatedWall::new();
    let node = Env::simulated_by(&wall, 1);
    let watching = tokio::spawn({
        let node = node.clone();
        async move { node.watch_clock().await }
    });
    let (ahead, lead) = node.with_own_time(node.now() + HOUR / 2);
    assert_eq!(lead, HOUR / 2);
    let began = Instant::now();
    let sleeps = [&node, &ahead].map(|env| {
        let (env, moment) = (env.clone(), env.now() + HOUR / 4);
        tokio::spawn(async move { env.sleep_until(moment).await })
    });
    tokio::time::sleep(60 * SECOND).await;
    wall.step_forward(HOUR);
    for sleep in sleeps {
        sleep.await.unwrap();
    }
    let took = began.elapsed() - 60 * SECOND;
    assert!(took <= SECOND, "{took:?}");
    watching.abort();
}

#[tokio::test(start_paused = true)]
async fn a_step_is_counted_by_its_direction() {
    let count = |direction: &str| {
        let series = format!("clock_steps{{direction=\"{direction}\"}} ");
        let text = crate::metrics::text();
        text.lines().find_map(|line| line.strip_prefix(&series)).map_or(0, |value| value.parse().unwrap())
    };
    let wall = SimulatedWall::new();
    let env = Env::simulated_by(&wall, 1);
    let (back, forward): (u64, u64) = (count("back"), count("forward"));
    wall.step_back(SECOND);
    let _ = env.now();
    wall.step_forward(HOUR);
    let _ = env.now();
    // Others count at the same time.
    assert!(count("back") > back && count("forward") > forward);
}

#[test]
fn the_monotonic_clock_of_a_machine_and_its_wall_clock_are_read_together() {
    let env = Env::system();
    let moments: Vec<Timestamp> = (0..10_000).map(|_| env.now()).collect();
    assert!(moments.is_sorted());
    let read = env.wall.read_closely();
    assert!(env.now().since(read.wall) < SECOND && read.wall.since(env.now()) < SECOND / 100);
}
