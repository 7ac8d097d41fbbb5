//! Lists and counts: the query language, and who answers it.

pub mod query;
