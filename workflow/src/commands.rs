//! The commands of a completed workflow task: one `match`, a line per command.
