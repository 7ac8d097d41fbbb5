//! What the stores build on conditions: a lease, and finding out about a write whose outcome is unknown.
