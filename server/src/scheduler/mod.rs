//! Schedules: when they act. Pure so far; whoever acts asks for the next time.

pub mod spec;
