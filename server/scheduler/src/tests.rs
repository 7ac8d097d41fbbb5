//! Decisions on schedules, as tables: a schedule, what happens to it at which second, and what it has then.

mod given;
mod costs;
mod overlap;
mod requests;
mod times;
