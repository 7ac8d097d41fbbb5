//! How many items make a page.

use super::*;

#[test]
fn a_page_ends_before_it_is_too_large_and_has_one_item_at_least() {
    assert_eq!(n_fitting([1 << 20, 1 << 19, 1 << 20]), 2);
    assert_eq!(n_fitting([3 << 20, 1]), 1);
    assert_eq!(n_fitting([10; 1000]), 1000);
}
