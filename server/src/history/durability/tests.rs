//! Which waiters are woken.

use std::pin::pin;
use std::time::Duration;

use cluster::env::SimulatedWall;
use futures_util::poll;

use super::*;

fn seen() -> LeaseSeen {
    LeaseSeen::now(&Env::simulated(1))
}

#[tokio::test]
async fn a_wait_ends_with_the_commit_that_it_waits_for_and_no_other_ends_with_it() {
    let durability = Durability::new(seen());
    let (mut first, mut second) = (pin!(durability.reached(1)), pin!(durability.reached(3)));
    assert!(poll!(&mut first).is_pending() && poll!(&mut second).is_pending());
    durability.advance(2, seen());
    assert_eq!(durability.lock().waiting.len(), 1, "whoever waits for more is left alone");
    assert!(poll!(&mut first).is_ready() && poll!(&mut second).is_pending());
    durability.advance(1, seen());
    assert_eq!(second.await, Ok(()));
    assert_eq!(durability.reached(2).await, Ok(()));
}

#[tokio::test]
async fn the_close_notifies_all_waiters_and_takes_nothing_back() {
    let durability = Durability::new(seen());
    durability.advance(1, seen());
    let mut waiting = pin!(durability.reached(2));
    assert!(poll!(&mut waiting).is_pending());
    durability.close(&Closed::LeaseLost);
    assert_eq!(waiting.await, Err(Closed::LeaseLost));
    assert_eq!(durability.reached(1).await, Ok(()));
    assert_eq!(durability.reached(2).await, Err(Closed::LeaseLost));
    assert_eq!(durability.ended().await, Closed::LeaseLost);
}

#[tokio::test]
async fn a_lease_that_is_given_up_is_not_seen_again() {
    let before = LeaseSeen::now(&Env::simulated(1));
    let later = LeaseSeen { at: before.at + LEASE_AGE_MAX, ..before };
    let durability = Durability::new(before);
    durability.advance(1, later);
    assert_eq!(durability.lease_seen(), Some(later));
    durability.give_up_lease();
    durability.advance(1, later);
    assert_eq!(durability.lease_seen(), None);
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_fresh_by_both_clocks_or_not_at_all() {
    let wall = SimulatedWall::new();
    let env = Env::simulated_by(&wall, 1);
    let seen = LeaseSeen::now(&env);
    tokio::time::advance(LEASE_AGE_MAX).await;
    assert!(seen.is_fresh(&env));
    tokio::time::advance(Duration::from_millis(1)).await;
    assert!(!seen.is_fresh(&env), "its time is over");

    let seen = LeaseSeen::now(&env);
    wall.step_back(Duration::from_secs(30));
    tokio::time::advance(LEASE_AGE_MAX + Duration::from_millis(1)).await;
    assert!(!seen.is_fresh(&env), "the wall clock that was set back makes it no younger");

    let seen = LeaseSeen::now(&env);
    wall.step_forward(Duration::from_secs(3600));
    assert!(!seen.is_fresh(&env), "the machine slept for an hour, and the monotonic clock with it");
}
