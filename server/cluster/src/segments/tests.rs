//! Segments while the clock is set back.

use uuid::Uuid;

use super::*;

const NAMESPACE_ID: NamespaceId = NamespaceId(Uuid::from_u128(1));
const HOUR: Duration = Duration::from_secs(60 * 60);
const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn what_happens_long_before_a_segment_begins_does_not_go_into_it() {
    let env = Env::simulated(7);
    let (segments, now) = (Segments::new(env.clone()), env.now());
    let ahead = segments.current(NAMESPACE_ID, now + HOUR);
    assert_eq!(segments.current(NAMESPACE_ID, now + HOUR), ahead);
    let right = segments.current(NAMESPACE_ID, now);
    assert_ne!(right, ahead, "the clock was an hour ahead");
    assert!(begins_at(right) <= now);
    assert_eq!(segments.take_sealed(), [Sealed { namespace_id: NAMESPACE_ID, id: ahead, at: now + HOUR }]);
}

#[tokio::test]
async fn a_segment_is_sealed_after_all_that_is_in_it_though_the_clock_was_set_back() {
    let env = Env::simulated(7);
    let (segments, now) = (Segments::new(env.clone()), env.now());
    let id = segments.current(NAMESPACE_ID, now);
    assert_eq!(segments.current(NAMESPACE_ID, now + 5 * MINUTE), id);
    segments.took(NAMESPACE_ID, id, RUNS_MAX);
    assert_ne!(segments.current(NAMESPACE_ID, now + MINUTE), id);
    assert_eq!(segments.take_sealed(), [Sealed { namespace_id: NAMESPACE_ID, id, at: now + 5 * MINUTE }]);
}

#[tokio::test]
async fn the_time_of_a_namespace_is_that_of_the_shard_that_is_farthest_ahead() {
    let env = Env::simulated(7);
    let segments = Segments::new(env.clone());
    assert!(segments.now(NAMESPACE_ID).since(env.now()) < MINUTE);
    let ahead = env.now() + HOUR;
    segments.current(NAMESPACE_ID, ahead);
    segments.current(NAMESPACE_ID, env.now());
    assert_eq!(segments.now(NAMESPACE_ID), ahead, "also after another shard began a segment");
}
