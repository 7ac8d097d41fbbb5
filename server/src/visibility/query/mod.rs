//! The visibility query language: parses text to a filter, and evaluates a filter. Pure.
//!
//! The dialect, its quoting and the texts of its errors are the reference's, which reads queries as the end of a MySQL
//! `SELECT`: [`lexer`] → [`syntax`] → [`convert`] (names, types, operators; values in [`literal`]) → [`filter`].

pub mod filter;
pub mod error;
pub mod evaluate;
mod lexer;
mod syntax;
mod convert;
mod literal;
pub mod status;
#[cfg(test)]
mod tests;

use cluster::search_attributes::custom::CustomAttributes;

use error::QueryError;
use filter::Query;

/// Longer texts are refused: a query lists what it looks for, and a thousand run ids are 40 kB.
const LENGTH_MAX: usize = 256 * 1024;

/// Parses a list or count query in a namespace with these custom search attributes.
///
/// # Errors
/// If the text is no query, or uses what an attribute or its type does not support.
pub fn parse(text: &str, custom: &CustomAttributes) -> Result<Query, QueryError> {
    convert::query(&statement(text)?, custom)
}

/// The same for schedules, which are visibility records in a namespace division of their own.
///
/// # Errors
/// Also if it names an attribute that only runs have.
pub fn parse_for_schedules(text: &str, custom: &CustomAttributes) -> Result<Query, QueryError> {
    convert::schedules(&statement(text)?, custom)
}

fn statement(text: &str) -> Result<syntax::Statement, QueryError> {
    if text.len() > LENGTH_MAX {
        return Err(QueryError::NotSupported(format!("query of {} bytes, more than {LENGTH_MAX}", text.len())));
    }
    syntax::parse(text)
}
