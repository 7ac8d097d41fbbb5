//! Typed configuration (being written).
