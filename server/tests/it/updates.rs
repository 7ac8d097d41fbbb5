//! Updates over gRPC, with a scripted worker.

mod closing;
mod lifecycle;
mod scene;
mod speculative;
mod with_start;
