//! The suite that every engine passes: one test per claim of the contract.
//!
//! `conformance_suite!(factory())` in a test module makes the tests; the factory is a future of an engine and of
//! whatever must live as long as it (a directory, or nothing: `()`). The engine must have `tables()`. Every claim works
//! on partitions with random keys, so the suite can run again on the same keyspace. `shared_conformance_suite!` has the
//! claims that are made only of engines which more than one process writes to.

use crate::table::Table;

mod given;
mod tables;

pub mod ordering;
pub mod ranges;
pub mod paging;
pub mod rows;
pub mod statics;
pub mod conditions;
pub mod concurrency;
pub mod sizes;
pub mod versions;

/// The tables that the suite uses.
#[must_use]
pub fn tables() -> &'static [&'static Table] {
    &tables::ALL
}

/// One `#[tokio::test]` per claim. Needs `tokio` with `macros` and `rt-multi-thread` in the crate that calls it.
#[macro_export]
macro_rules! conformance_suite {
    ($factory:expr) => {
        $crate::conformance_suite! { @claims $factory;
            ordering: ints_come_in_numeric_order, bigints_come_in_numeric_order, texts_come_in_the_order_of_their_bytes,
                uuids_come_in_the_order_of_their_bytes, blobs_come_in_the_order_of_their_bytes;
            ranges: bounds_may_be_prefixes_included_or_excluded, range_deletes_remove_what_their_bounds_hold,
                a_batch_may_delete_ranges_and_put_rows_beside_them, a_range_delete_stays_in_its_partition;
            paging: pages_in_both_orders_miss_and_repeat_nothing, paging_bears_rows_put_and_deleted_meanwhile,
                a_page_has_no_more_rows_than_its_limit, an_unknown_partition_is_empty;
            rows: every_kind_of_value_is_read_back, empty_values_are_read_back, a_put_replaces_the_whole_row,
                a_deleted_row_can_be_put_again, deleting_what_is_absent_changes_nothing, a_plain_batch_can_be_repeated,
                equal_keys_in_other_partitions_are_other_rows, a_batch_that_is_durable_with_the_next_is_read_at_once;
            statics: statics_do_not_need_rows, setting_one_static_leaves_the_others, statics_outlive_all_rows,
                rows_do_not_need_statics;
            conditions: a_static_condition_compares_with_the_value, an_unset_static_can_be_a_condition,
                an_absent_row_can_be_a_condition, a_value_condition_compares_with_the_row, all_conditions_must_hold,
                a_refused_batch_leaves_nothing, a_refusal_returns_the_current_values_of_every_condition,
                a_condition_sees_the_write_acknowledged_before_it;
            concurrency: increments_by_condition_are_each_counted_once, one_of_many_creators_wins,
                rows_written_at_once_are_each_there_when_acknowledged,
                a_read_sees_all_of_a_batch_or_nothing, serial_reads_see_every_acknowledged_write;
            sizes: values_may_have_two_mebibytes, a_batch_may_have_four_mebibytes, large_rows_are_paged_by_their_size,
                a_batch_that_is_too_large_is_not_applied, a_key_that_is_too_large_is_read_as_absent,
                a_partition_may_have_a_hundred_thousand_rows;
            versions: changes_in_the_order_of_their_versions_all_count;
        }
    };
    (@claims $factory:expr; $($module:ident: $($claim:ident),+;)+) => {
        $($(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $claim() {
                let (engine, kept) = $factory.await;
                $crate::conformance::$module::$claim(engine).await;
                drop(kept);
            }
        )+)+
    };
}

/// As `conformance_suite!`, beside it: what holds when writes of several processes arrive out of order.
#[macro_export]
macro_rules! shared_conformance_suite {
    ($factory:expr) => {
        $crate::conformance_suite! { @claims $factory;
            versions: an_older_put_never_overwrites_a_newer_one, an_older_delete_leaves_a_newer_row,
                a_put_older_than_a_delete_stays_deleted, of_a_put_and_a_delete_of_one_version_the_delete_counts,
                each_change_of_a_batch_has_its_own_version, changes_come_to_the_same_end_in_whatever_order;
        }
    };
}
