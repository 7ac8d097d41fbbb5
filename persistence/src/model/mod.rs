//! The engine in memory, with faults.
