//! The schema.
