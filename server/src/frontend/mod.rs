//! Public gRPC (being written).
