//! File descriptors: how many the process may have, and which part of them is for connections.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::warn;

/// For the store's files, the listeners and the logs. The store must always be able to open a file: a connection that is
/// refused is a client that comes again, a journal that cannot be opened is a node that has stopped.
const RESERVED: u64 = 1024;

/// Raises the limit of this process to what the system allows it: the usual 1024 is for programs that use `select`.
pub(crate) fn raise() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return;
    }
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        warn!(%error, limit = limit.current, "cannot raise the limit of open files");
    }
}

/// How many connections there may be, of those that are wanted.
pub(super) fn connections(wanted: usize) -> usize {
    let Some(limit) = getrlimit(Resource::Nofile).current else { return wanted };
    let allowed = allowed(limit);
    if allowed < wanted {
        warn!(limit, wanted, allowed, "the limit of open files allows fewer connections than are configured");
    }
    allowed.min(wanted)
}

/// Half of a small limit is reserved: what is left of it must do for either.
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
