//! What lists and counts read: the values that runs are searched by.

pub mod value;
