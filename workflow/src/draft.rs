//! Draft: a state being changed and the events being recorded. `record` is the only door for an event.
