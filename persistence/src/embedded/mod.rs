//! The engine on one machine.
