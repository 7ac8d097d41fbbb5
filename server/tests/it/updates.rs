//! Updates over gRPC, with a worker that answers as it is told.

mod closing;
mod lifecycle;
mod scene;
mod speculative;
mod with_start;
