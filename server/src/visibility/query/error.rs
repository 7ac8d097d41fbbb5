//! Query errors. The texts are the reference's; clients show them to users.

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// It does not parse.
    #[error("invalid query: malformed SQL query: {what} at position {position}{}", shown_near(.near))]
    Malformed {
        what: &'static str,
        /// One past the end of the offending token, in bytes, including the reference's `select` prefix.
        position: usize,
        /// The offending token, if it has a text.
        near: String,
    },
    /// It parses, but visibility does not support it.
    #[error("invalid query: operation is not supported: {0}")]
    NotSupported(String),
    /// It parses, but has no meaning.
    #[error("invalid query: invalid expression: {0}")]
    InvalidExpression(String),
    #[error("invalid query: invalid search attribute: {0}")]
    UnknownAttribute(String),
    #[error("invalid query filter for schedules: cannot filter on {0:?}")]
    NotOfSchedules(String),
}

fn shown_near(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" near '{text}'") }
}
