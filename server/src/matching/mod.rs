//! Brings tasks and pollers together.

pub mod service;
