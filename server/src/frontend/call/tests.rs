//! Deadlines and retries of calls.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

fn metadata(timeout: &str) -> MetadataMap {
    let mut metadata = MetadataMap::new();
    metadata.insert("grpc-timeout", timeout.parse().unwrap());
    metadata
}

#[test]
fn grpc_timeout_is_read_in_every_unit() {
    let cases = [
        ("2H", Some(Duration::from_secs(7200))),
        ("3M", Some(Duration::from_secs(180))),
        ("70S", Some(Duration::from_secs(70))),
        ("1500m", Some(Duration::from_millis(1500))),
        ("99999999u", Some(Duration::from_micros(99_999_999))),
        ("5n", Some(Duration::from_nanos(5))),
        ("S", None),
        ("123456789S", None),
        ("-1S", None),
        ("1x", None),
        ("1é", None),
    ];
    for (text, expect) in cases {
        let Ok(value) = text.parse::<tonic::metadata::MetadataValue<_>>() else {
            assert_eq!(expect, None, "{text}");
            continue;
        };
        let mut metadata = MetadataMap::new();
        metadata.insert("grpc-timeout", value);
        assert_eq!(grpc_timeout(&metadata), expect, "{text}");
    }
    assert_eq!(grpc_timeout(&metadata("70S")), Some(Duration::from_secs(70)));
}

#[tokio::test(start_paused = true)]
async fn a_moving_shard_costs_the_caller_time_and_no_error() {
    let asked = AtomicUsize::new(0);
    let env = Env::simulated(1);
    let answer = patiently(&env, Deadline::after(None), || async {
        match asked.fetch_add(1, Ordering::Relaxed) {
            0 => Err(ServiceError::ShardOwnershipLost(3)),
            1..4 => Err(ServiceError::Unavailable("the shard is being acquired".into())),
            _ => Ok("done"),
        }
    });
    assert_eq!(answer.await, Ok("done"));
    assert_eq!(asked.load(Ordering::Relaxed), 5);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_would_come_again_is_passed_on_at_once() {
    let asked = AtomicUsize::new(0);
    let env = Env::simulated(1);
    let answer = patiently(&env, Deadline::after(None), || async {
        asked.fetch_add(1, Ordering::Relaxed);
        Err::<(), _>(ServiceError::NotFound("no such run".into()))
    });
    assert_eq!(answer.await, Err(ServiceError::NotFound("no such run".into())));
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn patience_ends_before_the_callers_does() {
    for (deadline, most) in [(Some(2), 2), (None, 8)] {
        let began = Instant::now();
        let deadline = Deadline::after(deadline.map(Duration::from_secs));
        let env = Env::simulated(1);
        let answer = patiently(&env, deadline, || async { Err::<(), _>(ServiceError::Unavailable("gone".into())) });
        assert_eq!(answer.await, Err(ServiceError::Unavailable("gone".into())));
        assert!(began.elapsed() < Duration::from_secs(most), "{:?}", began.elapsed());
        assert!(began.elapsed() > Duration::from_millis(500), "{:?}", began.elapsed());
    }
}
