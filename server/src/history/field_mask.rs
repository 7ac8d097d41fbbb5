//! Names of fields in a request's mask, in the form that the core knows. Pure.

/// `retry_policy.maximum_attempts` is `retryPolicy.maximumAttempts` in the names of JSON; the latter stays what it is.
pub(super) fn camel_case(path: &str) -> String {
    let mut words = path.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |camel, word| {
        let mut letters = word.chars();
        let initial = letters.next().map(|letter| letter.to_ascii_uppercase());
        camel + &initial.into_iter().chain(letters).collect::<String>()
    })
}
