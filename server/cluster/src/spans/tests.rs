//! Spans that a client chooses.

use std::time::Duration;

use super::from_proto;

#[test]
fn no_span_of_the_api_is_too_large_to_convert() {
    let span = |seconds, nanos| from_proto(prost_types::Duration { seconds, nanos });
    assert_eq!(span(1, 500), Some(Duration::new(1, 500)));
    assert_eq!(span(i64::MAX, i32::MAX).map(|span| span.as_secs()), Some(i64::MAX as u64));
    assert_eq!(span(-1, 0), None);
    assert_eq!(span(0, i32::MIN), None);
    assert_eq!(span(i64::MIN, i32::MIN), None);
    assert_eq!(span(i64::MIN + 1, 0), None);
}
