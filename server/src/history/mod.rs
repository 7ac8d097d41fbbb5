//! Owns shards and the runs in them: every change of a run goes through here, and through one commit.

pub mod config;
pub mod service;
mod ownership;
mod shard;
mod identity;
mod cache;
mod transact;
mod start;
mod delete;
mod updates;
mod update;
mod update_with_start;
mod committer;
mod events;
mod waiters;
mod query_buffer;
mod queries;
mod worker_tasks;
mod activity_operations;
mod options;
mod field_mask;
mod children;
mod reading;
mod describe;
mod links;
mod token;
mod queues;
