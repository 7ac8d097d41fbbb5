//! When a batch has failed too often.

use super::*;

#[tokio::test]
async fn interrupted_attempts_are_counted_from_the_last_progress() {
    let at = |place: &'static [u8]| record::JobProgress { place: place.into(), ..Default::default() };
    let mut job = Running {
        handle: tokio::spawn(async {}).abort_handle(),
        stop: watch::channel(false).0,
        n_breaks: 0,
        place: Bytes::new(),
        started_at: 1,
    };
    let mut counted = Vec::new();
    for progress in [at(b""), at(b""), at(b"1"), at(b"2"), at(b"2"), at(b"2")] {
        job.n_breaks = job.n_breaks_at(&progress);
        job.place = progress.place;
        counted.push(job.n_breaks);
    }
    assert_eq!(counted, [1, 2, 1, 1, 2, 3]);
}
