//! Answers that hold lists: how much of one is sent at once.

/// A page stays well under the 4 MiB that clients of gRPC take, however large its items are.
pub(super) const PAGE_BYTES: usize = 2 << 20;

/// How many items of these sizes make a page; the first always does.
pub(super) fn n_fitting(sizes: impl IntoIterator<Item = usize>) -> usize {
    let mut bytes = 0;
    let fits = |size: &usize| {
        bytes += size;
        bytes <= PAGE_BYTES
    };
    sizes.into_iter().take_while(fits).count().max(1)
}

#[cfg(test)]
mod tests;
