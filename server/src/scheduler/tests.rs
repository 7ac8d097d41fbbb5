//! Decisions on schedules, as tables.
