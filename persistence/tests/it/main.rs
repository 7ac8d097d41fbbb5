//! The engines on this machine: the suite that all pass, and what each promises besides.

#![expect(clippy::unwrap_used, reason = "functions that only tests call are tests too, but clippy cannot know")]

mod embedded;
mod files;
mod model;
mod crash;
mod stores;
