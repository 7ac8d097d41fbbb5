//! The ranges of a small domain, all of them.

use super::*;

/// Keys of three columns with values 0..3: small enough to try every range on every key.
fn keys() -> Vec<Vec<Value>> {
    let digits = || 0..3_i32;
    digits()
        .flat_map(|a| digits().flat_map(move |b| digits().map(move |c| [a, b, c].map(Value::Int).to_vec())))
        .collect()
}

fn bounds() -> Vec<Bound<Vec<Value>>> {
    let mut prefixes: Vec<Vec<Value>> = keys().iter().flat_map(|key| (1..=3).map(|n| key[..n].to_vec())).collect();
    prefixes.dedup();
    let both = prefixes.into_iter().flat_map(|key| [Bound::Included(key.clone()), Bound::Excluded(key)]);
    both.chain([Bound::Unbounded]).collect()
}

fn ranges() -> Vec<KeyRange> {
    let uppers = bounds();
    let pair = |lower: Bound<Vec<Value>>| {
        uppers.iter().map(move |upper| KeyRange { lower: lower.clone(), upper: upper.clone() }).collect::<Vec<_>>()
    };
    bounds().into_iter().flat_map(pair).collect()
}

fn contains(range: &Range, key: &[Value]) -> bool {
    let (head, tail) = key.split_at(range.equal.len());
    let rest = KeyRange { lower: range.lower.clone(), upper: range.upper.clone() };
    head == range.equal && rest.contains(tail)
}

#[test]
fn a_range_holds_the_keys_of_the_contract() {
    for asked in ranges() {
        let said = Range::new(&asked);
        for key in keys() {
            let holds = said.as_ref().is_some_and(|range| contains(range, &key));
            assert_eq!(holds, asked.contains(&key), "{asked:?} as {said:?} on {key:?}");
        }
    }
}

#[test]
fn the_parts_of_a_range_hold_each_of_its_keys_once_and_bound_one_column() {
    for asked in ranges() {
        let parts = Range::new(&asked).map(Range::split).unwrap_or_default();
        for part in &parts {
            for bound in [&part.lower, &part.upper] {
                assert!(Edge::new(bound).key.len() <= 1, "{asked:?} has the part {part:?}");
            }
        }
        for key in keys() {
            let n_parts = parts.iter().filter(|part| contains(part, &key)).count();
            assert_eq!(n_parts, usize::from(asked.contains(&key)), "{asked:?} as {parts:?} on {key:?}");
        }
    }
}

#[test]
fn a_prefix_and_a_span_of_the_next_column_are_one_part() {
    let prefix = KeyRange::prefix(vec![1.into(), 2.into()]);
    assert_eq!(Range::new(&prefix).map(|range| range.split().len()), Some(1));

    let span =
        KeyRange { lower: Bound::Included(vec![1.into(), 0.into()]), upper: Bound::Excluded(vec![1.into(), 2.into()]) };
    assert_eq!(Range::new(&span).map(|range| range.split().len()), Some(1));
}
