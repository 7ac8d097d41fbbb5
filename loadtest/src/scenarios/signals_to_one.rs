//! Signals, all to one workflow: how fast can one run change?

use super::signals_to_many::Signals;

/// Half of what the reference server lets one run receive.
const EACH: u64 = 5000;

pub(super) fn scenario() -> Signals {
    Signals::new(1, EACH)
}
