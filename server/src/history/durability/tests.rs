//! Who is woken by what.

use std::pin::pin;

use futures_util::poll;

use super::*;

#[tokio::test]
async fn a_wait_ends_with_the_commit_that_it_waits_for_and_no_other_ends_with_it() {
    let durability = Durability::new(Instant::now());
    let (mut first, mut second) = (pin!(durability.reached(1)), pin!(durability.reached(3)));
    assert!(poll!(&mut first).is_pending() && poll!(&mut second).is_pending());
    durability.advance(2, Instant::now());
    assert_eq!(durability.lock().waiting.len(), 1, "whoever waits for more is left alone");
    assert!(poll!(&mut first).is_ready() && poll!(&mut second).is_pending());
    durability.advance(1, Instant::now());
    assert_eq!(second.await, Ok(()));
    assert_eq!(durability.reached(2).await, Ok(()));
}

#[tokio::test]
async fn the_end_is_told_to_all_who_wait_and_takes_nothing_back() {
    let durability = Durability::new(Instant::now());
    durability.advance(1, Instant::now());
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
    let (before, later) = (Instant::now(), Instant::now() + std::time::Duration::from_secs(1));
    let durability = Durability::new(before);
    durability.advance(1, later);
    assert_eq!(durability.lease_seen_at(), Some(later));
    durability.give_up_lease();
    durability.advance(1, later);
    assert_eq!(durability.lease_seen_at(), None);
}
