//! Matches tasks with pollers: at once if a poller waits, else through a durable backlog.
//!
//! In reading order: the service's calls; one queue and its pure parts; what is written to the store, and when.

pub mod service;
pub mod config;
mod polls;
mod queues;
mod task;
mod partition;
mod state;
mod matcher;
mod dispatch;
mod queries;
mod pollers;
mod rate;
mod backlog;
mod backlog_hint;
mod keeper;
mod lease;
mod describe;

#[cfg(test)]
mod tests;
