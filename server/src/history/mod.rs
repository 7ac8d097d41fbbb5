//! Owns shards and the runs in them.

pub mod service;
