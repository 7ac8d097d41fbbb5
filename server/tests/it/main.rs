//! End-to-end tests in one binary: a whole node over gRPC, on the embedded store.

mod given;
mod frontend;
mod by_hand;
mod commands;
mod history;
mod activities;
mod starts;
mod queries;
mod deletion;
mod lists;
mod list_pages;
mod query_table;
mod query_costs;
mod children;
mod external;
mod eager;
mod task_failures;
mod limits;
mod history_polls;
mod reset;
mod pause;
mod search_attributes;
mod http_api;
mod schedules;
mod simulation;
mod updates;
