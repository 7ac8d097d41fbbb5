//! The driver against a node of ours: each scenario, small, with every history checked; and what it says when the server
//! is not what it should be.

mod given;
mod scenarios;
mod loads;
mod reports;
mod costs;
