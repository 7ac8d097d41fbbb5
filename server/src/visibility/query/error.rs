//! What can be wrong with a query. The texts are the reference's; clients show them to people.

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// It cannot be read at all.
    #[error("invalid query: malformed SQL query: {what} at position {position}{}", shown_near(.near))]
    Malformed {
        what: &'static str,
        /// One past the end of what is wrong, in bytes, counting the words that the reference puts in front.
        position: usize,
        /// What is wrong, if it has a text.
        near: String,
    },
    /// It can be read, and means something that lists cannot do.
    #[error("invalid query: operation is not supported: {0}")]
    NotSupported(String),
    /// It can be read, and means nothing.
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
