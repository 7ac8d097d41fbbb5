//! Page size of list responses.

/// Well under the 4 MiB that gRPC clients accept, however large the items are.
pub(super) const PAGE_BYTES: usize = 2 << 20;

/// Number of items of these sizes that fit a page; at least one.
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
