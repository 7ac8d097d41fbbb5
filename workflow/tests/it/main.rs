//! The core from outside: tables of (given, input) → (events, tasks, reply), one module per thing a run has, and random
//! walks on which the law of replay must hold.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, and says where")]

mod others;
mod answers;
mod run;
mod transcript;
mod walk;

mod activity;
mod activity_operation;
mod buffer;
mod child;
mod close;
mod eager;
mod external;
mod limits;
mod next_run;
mod properties;
mod search_attributes;
mod options;
mod pause;
mod replay;
mod reset;
mod signal;
mod start;
mod speculative;
mod timer;
mod update;
mod workflow_task;
