//! Items against a plain map, over more of them than one chunk holds.

use std::collections::BTreeMap;

use super::Items;

#[test]
fn items_are_an_ordered_map() {
    let mut items = Items::default();
    let mut plain = BTreeMap::new();
    for step in 0..2000_i64 {
        let id = (step * 7919) % 300;
        if step % 3 == 0 {
            assert_eq!(items.remove(id).map(|item| *item), plain.remove(&id));
        } else {
            assert_eq!(items.insert(id, step).map(|item| *item), plain.insert(id, step));
        }
        assert_eq!(items.len(), plain.len());
    }
    let all: Vec<(i64, i64)> = items.iter().map(|(id, item)| (id, *item)).collect();
    let expected: Vec<(i64, i64)> = plain.clone().into_iter().collect();
    assert_eq!(all, expected);
    let backwards: Vec<i64> = items.iter().rev().map(|(id, _)| id).collect();
    assert_eq!(backwards, plain.keys().rev().copied().collect::<Vec<_>>());
    assert_eq!(items, Items::loaded(plain), "what was touched does not count");
}

#[test]
fn a_clone_keeps_what_it_was_cloned_from() {
    let before = Items::loaded((0..200).map(|id| (id, id)));
    let mut after = before.clone();
    *after.get_mut(70).unwrap() = -1;
    after.remove(5);
    assert_eq!((before.get(70), before.get(5)), (Some(&70), Some(&5)));
    assert_eq!((after.get(70), after.get(5)), (Some(&-1), None));
}

#[test]
fn only_what_was_touched_is_written() {
    let mut items = Items::loaded((0..200).map(|id| (id, id)));
    assert!(items.get_mut(999).is_none());
    assert!(items.remove(999).is_none());
    items.remove(3);
    items.insert(150, 1);
    let touched: Vec<(i64, Option<i64>)> =
        items.take_touched().into_iter().map(|(id, item)| (id, item.map(|item| *item))).collect();
    assert_eq!(touched, [(3, None), (150, Some(1))]);
    assert!(items.take_touched().is_empty());
}

#[test]
fn the_weight_follows_every_change() {
    let mut items = Items::loaded((0..200).map(|id| (id, "four".to_owned())));
    assert_eq!(items.bytes(), 800);
    let before = items.clone();
    items.get_mut(70).unwrap().push_str("more");
    items.insert(201, "one".to_owned());
    items.remove(0);
    assert_eq!((items.bytes(), before.bytes()), (800 + 4 + 3 - 4, 800));
    assert_eq!(Items::<String>::default().bytes(), 0);
}
