//! What a text is counted as, and where it is converted.

use std::thread;

use super::{INLINE_BYTES, Transcoder, n_values};

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
async fn a_conversion_that_panics_gives_its_place_back() {
    let transcoder = Transcoder::new();
    for _ in 0..2 * super::CONVERSIONS {
        let panicked = transcoder.convert(INLINE_BYTES + 1, || panic!("a bug")).await;
        assert!(panicked.is_err_and(|error: cluster::errors::ServiceError| error.to_string().contains("conversion")));
    }
    assert_eq!(transcoder.convert(INLINE_BYTES + 1, || 7).await.unwrap(), 7);
}
