//! A black-box stress driver: it uses Temporal's public API and nothing else of a server.

pub mod cli;
pub mod plan;
pub mod stress;
mod scenarios;
mod load;
mod pace;
mod bench;
mod worker;
mod progress;
pub mod script;
mod updates;
mod commands;
mod payload;
mod client;
mod verify;
mod record;
pub mod histogram;
mod cpu;
mod view;
pub mod report;
