//! Where the other services are: the only way from one service to another.

pub mod peers;
pub mod membership;
pub mod segments;
