//! Log set-up (being written).
