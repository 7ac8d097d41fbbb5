//! Search attributes: what runs can be searched by. Every service knows them, none owns them.

pub mod attribute;
pub mod custom;
pub mod payload;
pub mod check;
pub mod datetime;
