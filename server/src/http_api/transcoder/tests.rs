//! What a text is counted as, and where it is converted.

use std::thread;

use super::{IN_FLIGHT_BYTES, INLINE_BYTES, Transcoder, WAITING_BYTES, n_values};

#[test]
fn values_and_keys_are_counted_and_the_inside_of_strings_is_not() {
    for (text, n_at_least) in [
        ("1", 1),
        (r#"{"a": 1}"#, 2),
        ("[1, 2, 3]", 3),
        (r#"{"a": {"b": [{}, {}]}}"#, 6),
        (r#"{"a\\": [1], "b": "[{,:\" {{{"}"#, 5),
    ] {
        let counted = n_values(text.as_bytes());
        assert!((n_at_least..=n_at_least + 3).contains(&counted), "{text}: {counted}");
    }
    assert_eq!(n_values(format!(r#""{}""#, "[{,:".repeat(1000)).as_bytes()), 1);
}

#[tokio::test]
async fn only_a_large_conversion_leaves_the_thread_of_its_caller() {
    let transcoder = Transcoder::new();
    let here = thread::current().id();
    let on = || thread::current().id();
    assert_eq!(transcoder.convert(INLINE_BYTES, on).await.unwrap(), here);
    assert_ne!(transcoder.convert(INLINE_BYTES + 1, on).await.unwrap(), here);
}

#[tokio::test]
async fn a_conversion_that_panics_releases_its_permits() {
    let transcoder = Transcoder::new();
    for n_bytes in [INLINE_BYTES + 1, IN_FLIGHT_BYTES, usize::MAX] {
        let panicked = transcoder.convert(n_bytes, || panic!("a bug")).await;
        assert!(panicked.is_err_and(|error: cluster::errors::ServiceError| error.to_string().contains("conversion")));
    }
    assert_eq!(transcoder.convert(IN_FLIGHT_BYTES, || 7).await.unwrap(), 7);
}

#[tokio::test]
async fn a_conversion_waits_while_others_use_all_permits() {
    let transcoder = Transcoder::new();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let first = transcoder.convert(IN_FLIGHT_BYTES, move || released.recv());
    let second = transcoder.convert(INLINE_BYTES + 1, || ());
    let (mut first, mut second) = (std::pin::pin!(first), std::pin::pin!(second));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(first.as_mut().poll(&mut context).is_pending());
    assert!(second.as_mut().poll(&mut context).is_pending());
    drop(release);
    assert!(first.await.is_ok());
    assert!(second.await.is_ok());
}

#[tokio::test]
async fn conversions_beyond_the_waiting_ones_are_refused() {
    let transcoder = Transcoder::new();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let mut first = std::pin::pin!(transcoder.convert(WAITING_BYTES, move || released.recv()));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(first.as_mut().poll(&mut context).is_pending());
    let refused = transcoder.convert(INLINE_BYTES + 1, || ()).await;
    assert!(matches!(refused, Err(cluster::errors::ServiceError::ResourceExhausted { .. })), "{refused:?}");
    assert!(transcoder.convert(INLINE_BYTES, || ()).await.is_ok(), "small ones need no permit");
    drop(release);
    assert!(first.await.is_ok());
    assert!(transcoder.convert(INLINE_BYTES + 1, || ()).await.is_ok());
}
