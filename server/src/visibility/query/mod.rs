//! The query language of lists and counts: from text to a filter, and what a filter means. Pure.

pub mod filter;
