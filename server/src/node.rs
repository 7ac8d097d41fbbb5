//! Composition root (being written).
