//! Namespaces that this node knows (being written).
