//! The model engine passes the suite, and its faults are the ones that a real store has.

use std::sync::Arc;
use std::time::Duration;

use persistence::engine::{
    Batch, Condition, Consistency, Engine, KeyRange, Outcome, Partition, Row, RowChange, Slice, Versioned,
};
use persistence::error::StoreError;
use persistence::model::{Fault, Faults, Model, Scanned, Writes};
use persistence::table::{Column, Kind, Table, Value};

mod conforms {
    use super::*;

    async fn engine() -> (Arc<dyn Engine>, ()) {
        (Model::new(), ())
    }

    persistence::conformance_suite!(engine());
    persistence::shared_conformance_suite!(engine());
}

static COUNTERS: Table = Table {
    name: "counters",
    partition: &[Column::new("name", Kind::Text)],
    clustering: &[Column::new("number", Kind::Bigint)],
    statics: &[Column::new("count", Kind::Bigint)],
    values: &[],
    is_versioned: false,
};

fn counter(name: &str) -> Partition {
    Partition::new(&COUNTERS, vec![name.into()])
}

/// Sets the counter from one number to the next, and leaves a row.
fn increment(partition: &Partition, from: i64) -> Batch {
    let equals = (from > 0).then(|| from.into());
    Batch { conditions: vec![Condition::Static { column: 0, equals }], ..plain(partition, from + 1) }
}

fn plain(partition: &Partition, count: i64) -> Batch {
    let puts = vec![Row { key: vec![count.into()], values: vec![] }];
    Batch { statics: vec![(0, count.into())], puts, ..Batch::new(partition.clone()) }
}

async fn count(model: &Model, partition: &Partition, consistency: Consistency) -> i64 {
    match model.statics(partition.clone(), consistency).await.unwrap().remove(0) {
        Some(Value::Bigint(count)) => count,
        None => 0,
        Some(other) => panic!("{other:?} is no count"),
    }
}

#[tokio::test]
async fn unavailable_is_never_applied() {
    let (model, partition) = (Model::new(), counter("a"));
    model.inject(Fault::Unavailable);
    assert!(matches!(model.write(increment(&partition, 0)).await, Err(StoreError::Unavailable(_))));
    assert_eq!(count(&model, &partition, Consistency::Serial).await, 0);
    assert_eq!(model.write(increment(&partition, 0)).await, Ok(Outcome::Applied), "the fault struck once");
}

#[tokio::test]
async fn a_timeout_does_not_tell_whether_it_was_applied() {
    for (fault, expected) in [(Fault::TimeoutNotApplied, 0), (Fault::TimeoutApplied, 1)] {
        let (model, partition) = (Model::new(), counter("a"));
        model.inject(fault);
        assert!(matches!(model.write(increment(&partition, 0)).await, Err(StoreError::OutcomeUnknown(_))));
        assert_eq!(count(&model, &partition, Consistency::Quorum).await, expected);
    }
}

#[tokio::test]
async fn a_write_applied_later_is_seen_once_a_serial_read_has_settled_it() {
    let (model, partition) = (Model::new(), counter("a"));
    model.inject(Fault::AppliedLater);
    assert!(matches!(model.write(increment(&partition, 0)).await, Err(StoreError::OutcomeUnknown(_))));
    assert_eq!(count(&model, &partition, Consistency::Quorum).await, 0);
    assert_eq!(count(&model, &counter("other"), Consistency::Serial).await, 0);
    assert_eq!(count(&model, &partition, Consistency::Quorum).await, 0, "another partition settles nothing");
    assert_eq!(count(&model, &partition, Consistency::Serial).await, 1);
    assert_eq!(count(&model, &partition, Consistency::Quorum).await, 1);
}

#[tokio::test]
async fn a_write_applied_later_comes_before_the_next_conditional_write() {
    let (model, partition) = (Model::new(), counter("a"));
    model.inject(Fault::AppliedLater);
    model.write(increment(&partition, 0)).await.unwrap_err();
    let again = model.write(increment(&partition, 0)).await;
    assert!(matches!(again, Ok(Outcome::Refused(_))), "the first one is settled before: {again:?}");
    assert_eq!(model.write(increment(&partition, 1)).await, Ok(Outcome::Applied));
    assert_eq!(model.dump(&partition).1.len(), 2);
}

#[tokio::test]
async fn a_refused_write_may_time_out_too_and_is_never_applied() {
    for fault in [Fault::TimeoutApplied, Fault::AppliedLater] {
        let (model, partition) = (Model::new(), counter("a"));
        model.inject(fault);
        assert!(matches!(model.write(increment(&partition, 7)).await, Err(StoreError::OutcomeUnknown(_))));
        assert_eq!(count(&model, &partition, Consistency::Serial).await, 0);
    }
}

#[tokio::test]
async fn faults_can_be_aimed() {
    let (model, partition) = (Model::new(), counter("a"));
    model.inject_nth(2, Fault::Unavailable);
    model.inject_when(Fault::TimeoutNotApplied, Batch::is_conditional);
    assert_eq!(model.write(plain(&partition, 1)).await, Ok(Outcome::Applied));
    assert!(matches!(model.write(plain(&partition, 2)).await, Err(StoreError::Unavailable(_))));
    assert_eq!(model.write(plain(&partition, 3)).await, Ok(Outcome::Applied));
    assert!(matches!(model.write(increment(&partition, 3)).await, Err(StoreError::OutcomeUnknown(_))));
    assert_eq!(model.write(increment(&partition, 3)).await, Ok(Outcome::Applied));
}

fn stormy(seed: u64) -> Faults {
    Faults {
        unavailable: 0.1,
        timeout_not_applied: 0.1,
        timeout_applied: 0.1,
        applied_later: 0.2,
        read_unavailable: 0.1,
        ..Faults::none(seed)
    }
}

/// What a careful caller does: after an unknown outcome it reads serially before it goes on.
#[tokio::test]
async fn under_random_faults_a_caller_that_settles_counts_exactly() {
    for seed in 0..50 {
        let (model, partition) = (Model::with_faults(stormy(seed)), counter("a"));
        let mut known = 0;
        while known < 40 {
            match model.write(increment(&partition, known)).await {
                Ok(Outcome::Applied) => known += 1,
                Ok(Outcome::Refused(current)) => panic!("seed {seed}: the only writer was refused: {current:?}"),
                Err(StoreError::Unavailable(_)) => {}
                Err(StoreError::OutcomeUnknown(_)) => {
                    let settled = loop {
                        if let Ok(statics) = model.statics(partition.clone(), Consistency::Serial).await {
                            break statics[0].clone();
                        }
                    };
                    let settled = settled.map_or(0, |count| if let Value::Bigint(count) = count { count } else { -1 });
                    assert!(settled == known || settled == known + 1, "seed {seed}: {known} became {settled}");
                    known = settled;
                }
                Err(error) => panic!("seed {seed}: {error}"),
            }
        }
        model.stop_faults();
        assert_eq!(count(&model, &partition, Consistency::Serial).await, 40, "seed {seed}");
        assert_eq!(model.dump(&partition).1.len(), 40, "seed {seed}: each increment left one row");
    }
}

#[tokio::test]
async fn a_dropped_write_never_comes_back() {
    let faults = |seed| Faults { applied_later: 1.0, writes: Writes::OnlyConditional, ..Faults::none(seed) };
    let mut fates = [0, 0];
    for seed in 0..40 {
        let (model, partition) = (Model::with_faults(faults(seed)), counter("a"));
        model.write(increment(&partition, 0)).await.unwrap_err();
        let settled = count(&model, &partition, Consistency::Serial).await;
        fates[usize::try_from(settled).unwrap()] += 1;
        assert_eq!(model.write(plain(&counter("b"), 1)).await, Ok(Outcome::Applied), "plain writes are spared");
        for _ in 0..5 {
            assert_eq!(count(&model, &partition, Consistency::Quorum).await, settled, "seed {seed}");
            assert_eq!(count(&model, &partition, Consistency::Serial).await, settled, "seed {seed}");
        }
    }
    assert!(fates.iter().all(|n| *n > 5), "both fates occur: {fates:?}");
}

#[tokio::test]
async fn the_same_seed_gives_the_same_faults() {
    let outcomes = async |seed: u64| {
        let (model, partition) = (Model::with_faults(stormy(seed)), counter("a"));
        let mut outcomes = Vec::new();
        for number in 0..100 {
            outcomes.push(model.write(increment(&partition, number / 3)).await);
        }
        outcomes
    };
    assert_eq!(outcomes(7).await, outcomes(7).await);
    assert_ne!(outcomes(7).await, outcomes(8).await);
}

#[tokio::test(start_paused = true)]
async fn latency_passes_on_the_clock_of_the_simulation() {
    let latency = Duration::from_millis(10)..Duration::from_millis(20);
    let model = Model::with_faults(Faults { latency, ..Faults::none(1) });
    let started = tokio::time::Instant::now();
    for number in 0..100 {
        model.write(plain(&counter("a"), number)).await.unwrap();
    }
    let passed = started.elapsed();
    assert!((Duration::from_secs(2)..Duration::from_secs(4)).contains(&passed), "there and back: {passed:?}");
}

#[tokio::test]
async fn dead_rows_in_the_way_of_a_read_are_counted() {
    let (model, partition) = (Model::new(), counter("queue"));
    model.remember_dead_rows();
    for number in 0..10 {
        model.write(plain(&partition, number)).await.unwrap();
    }
    let below = |number: i64| KeyRange {
        lower: std::ops::Bound::Unbounded,
        upper: std::ops::Bound::Excluded(vec![number.into()]),
    };
    model.write(Batch { range_deletes: vec![below(5)], ..Batch::new(partition.clone()) }).await.unwrap();
    model.write(Batch { deletes: vec![vec![8_i64.into()]], ..Batch::new(partition.clone()) }).await.unwrap();

    let above = KeyRange { lower: std::ops::Bound::Included(vec![5_i64.into()]), upper: std::ops::Bound::Unbounded };
    model.read(Slice::new(partition.clone(), above, 2)).await.unwrap();
    assert_eq!(model.scanned(), Scanned { rows: 2, dead_rows: 0 }, "a reader that knows where the queue begins");
    model.read(Slice::new(partition.clone(), KeyRange::all(), 100)).await.unwrap();
    assert_eq!(model.scanned(), Scanned { rows: 2 + 4, dead_rows: 6 }, "one that begins at the beginning");
}

static VERSIONED: Table = Table {
    name: "versioned",
    partition: &[Column::new("name", Kind::Text)],
    clustering: &[Column::new("number", Kind::Bigint)],
    statics: &[],
    values: &[Column::new("version", Kind::Bigint)],
    is_versioned: true,
};

fn put(number: i64, version: i64) -> Versioned {
    Versioned { version, change: RowChange::Put(Row { key: vec![number.into()], values: vec![version.into()] }) }
}

fn delete(number: i64, version: i64) -> Versioned {
    Versioned { version, change: RowChange::Delete(vec![number.into()]) }
}

async fn change(model: &Model, versioned: Vec<Versioned>) -> Result<Outcome, StoreError> {
    let partition = Partition::new(&VERSIONED, vec!["a".into()]);
    model.write(Batch { versioned, ..Batch::new(partition) }).await
}

fn versions(model: &Model) -> Vec<Value> {
    let (_, rows) = model.dump(&Partition::new(&VERSIONED, vec!["a".into()]));
    rows.into_iter().flat_map(|row| row.values).collect()
}

#[tokio::test]
async fn a_late_write_to_a_versioned_table_arrives_after_newer_ones() {
    let model = Model::new();
    model.inject(Fault::AppliedLater);
    assert!(matches!(change(&model, vec![put(1, 1), put(2, 1)]).await, Err(StoreError::OutcomeUnknown(_))));
    change(&model, vec![put(1, 2)]).await.unwrap();
    assert_eq!((versions(&model), model.n_late()), (vec![2_i64.into()], 1), "nothing settles it");
    model.deliver_late();
    assert_eq!((versions(&model), model.n_late()), (vec![2_i64.into(), 1_i64.into()], 0));
}

#[tokio::test]
async fn deletes_by_version_are_remembered_up_to_a_number() {
    let model = Model::new();
    for thousand in 0..101 {
        let numbers = thousand * 1000..(thousand + 1) * 1000;
        change(&model, numbers.map(|number| delete(number, 2)).collect()).await.unwrap();
    }
    change(&model, vec![put(0, 1), put(100_999, 1)]).await.unwrap();
    assert_eq!(versions(&model).len(), 1, "the latest are remembered, the others are not");
}
