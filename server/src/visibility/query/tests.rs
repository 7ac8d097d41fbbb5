//! The language, as tables. Most lines were asked of the reference's development server; the rest say so.

mod given;
mod answers;
mod refusals;
mod shape;
mod random;
