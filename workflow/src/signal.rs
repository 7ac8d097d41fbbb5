//! Signals: received from outside, counted, never twice for one request.
