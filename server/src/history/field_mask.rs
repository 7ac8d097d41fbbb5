//! Converts the paths of a field mask to JSON names, which the core uses. Pure.

/// Converts `retry_policy.maximum_attempts` to `retryPolicy.maximumAttempts`; a JSON name stays as it is.
pub(super) fn camel_case(path: &str) -> String {
    let mut words = path.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |camel, word| {
        let mut letters = word.chars();
        let initial = letters.next().map(|letter| letter.to_ascii_uppercase());
        camel + &initial.into_iter().chain(letters).collect::<String>()
    })
}
