//! Specifications: how they are written, when they act, and that an independent library agrees.

mod agreement;
mod costs;
mod random;
mod texts;
mod times;
