//! Claims about the cursor.

use super::Cursor;

const ROOM: usize = 100;

fn caught_up(acked: i64) -> Cursor {
    let mut cursor = Cursor::new(acked);
    assert_eq!(cursor.begin_page(ROOM), Some(acked));
    cursor.end_page(&[], true);
    cursor
}

#[test]
fn a_new_owner_reads_before_it_takes_from_memory() {
    let mut cursor = Cursor::new(10);
    assert!(cursor.offer(&[20], ROOM).is_empty());
    assert_eq!(cursor.begin_page(ROOM), Some(10));
    cursor.end_page(&[15, 20], true);
    assert_eq!(cursor.offer(&[21], ROOM), [21]);
}

#[test]
fn tasks_committed_during_the_last_page_are_read_by_another() {
    let mut cursor = Cursor::new(0);
    assert_eq!(cursor.begin_page(ROOM), Some(0));
    assert!(cursor.offer(&[5], ROOM).is_empty());
    cursor.end_page(&[3], true);
    assert_eq!(cursor.begin_page(ROOM), Some(3));
    cursor.end_page(&[5], true);
    assert_eq!(cursor.begin_page(ROOM), None);
}

#[test]
fn the_ack_level_never_passes_a_task_that_is_out() {
    let mut cursor = caught_up(0);
    assert_eq!(cursor.offer(&[1, 2, 3], ROOM).len(), 3);
    cursor.done(1);
    cursor.done(3);
    assert_eq!(cursor.acked(), 1);
    cursor.done(2);
    assert_eq!(cursor.acked(), 3);
}

#[test]
fn overflow_goes_to_the_store_and_comes_back_in_order() {
    let mut cursor = caught_up(0);
    assert_eq!(cursor.offer(&[1, 2], 3).len(), 2);
    assert!(cursor.offer(&[3, 4], 3).is_empty());
    // Room alone does not let newer tasks overtake those in the store.
    cursor.done(1);
    assert!(cursor.offer(&[5], 3).is_empty());
    assert_eq!(cursor.begin_page(3), Some(2));
    cursor.end_page(&[3, 4, 5], true);
    assert_eq!(cursor.begin_page(5), None);
    assert_eq!(cursor.acked(), 1);
}

#[test]
fn a_task_that_a_page_had_before_its_commit_was_answered_runs_once() {
    let mut cursor = Cursor::new(0);
    assert_eq!(cursor.begin_page(ROOM), Some(0));
    cursor.end_page(&[5], true);
    assert_eq!(cursor.offer(&[5, 6], ROOM), [6]);
    cursor.done(5);
    cursor.done(6);
    assert_eq!(cursor.acked(), 6);
}
