//! A slot is inserted into the cache when it must be, and not more often.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use uuid::Uuid;
use workflow::{ExecutionKey, NamespaceId, RunId};

use super::{CurrentSlot, HotExecutions, Live, SWEEP_MIN_BYTES, Slot};

const BYTES_MAX: u64 = 1 << 20;

fn key(n: u128) -> (u64, ExecutionKey) {
    let key = ExecutionKey {
        namespace_id: NamespaceId(Uuid::nil()),
        workflow_id: Arc::from("w"),
        run_id: RunId(Uuid::from_u128(n)),
    };
    (0, key)
}

/// Uses a slot of that weight; returns whether it was inserted.
fn is_inserted(hot: &HotExecutions, n: u128, slot: &Arc<Slot>, weight: u32) -> bool {
    slot.weight.store(weight, Ordering::Relaxed);
    let before = hot.bytes_inserted.load(Ordering::Relaxed);
    hot.keep(|| key(n), slot);
    hot.bytes_inserted.load(Ordering::Relaxed) > before
}

#[test]
fn a_slot_is_inserted_if_it_is_new_heavier_or_much_lighter() {
    let hot = HotExecutions::new(BYTES_MAX);
    let slot = Arc::new(Slot::default());
    let inserted = [1000, 1000, 1250, 1251, 1300, 700].map(|weight| is_inserted(&hot, 1, &slot, weight));
    assert_eq!(inserted, [true, false, false, true, false, true]);
    hot.cache.run_pending_tasks();
    assert_eq!(hot.cache.weighted_size(), 875, "as heavy as at its last insert");
}

#[test]
fn a_slot_in_use_stays_however_many_others_come() {
    let hot = HotExecutions::new(BYTES_MAX);
    let used = Arc::new(Slot::default());
    for n in 2..5000 {
        is_inserted(&hot, 1, &used, 1000);
        is_inserted(&hot, n, &Arc::new(Slot::default()), 1000);
        hot.cache.run_pending_tasks();
        assert!(hot.cache.contains_key(&key(1)), "after {n} others");
        assert!(hot.cache.weighted_size() <= BYTES_MAX);
    }
    assert!(!hot.cache.contains_key(&key(2)), "one that is not in use goes");
}

#[test]
fn keys_of_what_is_not_there_are_swept_out_by_their_bytes() {
    let live: Live<(NamespaceId, Arc<str>), CurrentSlot> = Live::default();
    let held = live.get_or_default(&(NamespaceId(Uuid::nil()), Arc::from("held")));
    for n in 0..300 {
        let absent: Arc<str> = format!("{n}{}", "x".repeat(100_000)).into();
        live.get_or_default(&(NamespaceId(Uuid::nil()), absent));
        let entries = live.entries.lock().expect("nobody panics while holding it");
        let bytes: usize = entries.all.keys().map(|(_, id)| id.len()).sum();
        assert_eq!(entries.key_bytes, bytes);
        assert!(bytes <= SWEEP_MIN_BYTES + 100_003, "{bytes} after {n}");
    }
    let found = live.get_or_default(&(NamespaceId(Uuid::nil()), Arc::from("held")));
    assert!(Arc::ptr_eq(&held, &found), "what is held stays");
}
