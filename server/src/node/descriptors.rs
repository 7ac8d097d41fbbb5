//! File descriptors: the limit of the process, and the share of connections.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::warn;

/// Reserved for the store's files, the listeners and the logs. The store must always be able to open a file: a refused
/// client retries, but a journal that cannot be opened stops the node.
const RESERVED: u64 = 1024;

/// Raises the soft limit to the hard limit: the usual 1024 is for programs that use `select`.
pub(crate) fn raise() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return;
    }
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        warn!(%error, limit = limit.current, "cannot raise the open-file limit; keeping it");
    }
}

/// The wanted connections, as far as the limit allows them.
pub(super) fn connections(wanted: usize) -> usize {
    let Some(limit) = getrlimit(Resource::Nofile).current else { return wanted };
    let allowed = allowed(limit);
    if allowed < wanted {
        warn!(limit, wanted, allowed, "open-file limit too low for the wanted connections; allowing fewer");
    }
    allowed.min(wanted)
}

/// Half of a small limit is reserved, so that both get a share.
fn allowed(limit: u64) -> usize {
    let allowed = limit - RESERVED.min(limit / 2);
    usize::try_from(allowed).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::allowed;

    #[test]
    fn the_store_keeps_its_descriptors() {
        let cases = [(64, 32), (1024, 512), (2048, 1024), (4096, 3072), (1 << 20, (1 << 20) - 1024)];
        for (limit, connections) in cases {
            assert_eq!(allowed(limit), connections, "of {limit}");
        }
    }
}
