//! Claims about callers that act at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::given::{all, apply, composite, key, numbered, puts, row};
use crate::engine::{Batch, Condition, Consistency, Current, Durable, Engine, KeyRange, Outcome, Partition, Slice};
use crate::error::StoreError;
use crate::table::Value;

const TASKS: i32 = 16;
const INCREMENTS: i64 = 5;
/// One task wins every time, so none loses more often than there are increments, save for a few unknown outcomes.
const ATTEMPTS: usize = 1000;

/// Each increment also leaves a row, so that none can be lost or counted twice unnoticed.
pub async fn increments_by_condition_are_each_counted_once(engine: Arc<dyn Engine>) {
    let partition = composite();
    let tasks = (0..TASKS).map(|task| {
        let (engine, partition) = (Arc::clone(&engine), partition.clone());
        tokio::spawn(async move {
            for number in 0..INCREMENTS {
                increment(&*engine, &partition, key(task, "", number)).await;
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.expect("a task that increments ends well");
    }
    let expected = i64::from(TASKS) * INCREMENTS;
    let statics = engine.statics(partition.clone(), Consistency::Serial).await.expect("statics are readable");
    assert_eq!(statics[0], Some(expected.into()));
    assert_eq!(all(&*engine, &partition).await.len() as i64, expected);
}

/// An engine may coalesce them. Some callers are cancelled at once, on which the others do not depend.
pub async fn rows_written_at_once_are_each_there_when_acknowledged(engine: Arc<dyn Engine>) {
    const WRITES: i64 = 240;
    let partitions: Vec<Partition> = (0..24).map(|_| composite()).collect();
    let writes = (0..WRITES).map(|number| {
        let (engine, partition) = (Arc::clone(&engine), partitions[number as usize % partitions.len()].clone());
        tokio::spawn(async move {
            let written = row(key(0, "", number), number);
            let batch = Batch { durable: Durable::WithNext, ..puts(&partition, vec![written.clone()]) };
            apply(&*engine, batch).await;
            let slice = Slice::new(partition, KeyRange::prefix(written.key.clone()), 1);
            assert_eq!(engine.read(slice).await.expect("a row is readable").rows, [written]);
        })
    });
    for (number, write) in writes.collect::<Vec<_>>().into_iter().enumerate() {
        if number.is_multiple_of(8) {
            write.abort();
        } else {
            write.await.expect("a write is acknowledged, and read");
        }
    }
}

async fn increment(engine: &dyn Engine, partition: &Partition, marker: Vec<Value>) {
    let mut current: Option<Value> = None;
    for _ in 0..ATTEMPTS {
        let next = match &current {
            Some(Value::Bigint(count)) => count + 1,
            _ => 1,
        };
        let batch = Batch {
            conditions: vec![Condition::Static { column: 0, equals: current.clone() }],
            statics: vec![(0, next.into())],
            puts: vec![row(marker.clone(), next)],
            ..Batch::new(partition.clone())
        };
        match engine.write(batch).await {
            Ok(Outcome::Applied) => return,
            Ok(Outcome::Refused(refusal)) => match refusal.as_slice() {
                [Current::Static(found)] => current = found.clone(),
                other => panic!("one static was asked for, not {other:?}"),
            },
            // A real store under contention: the serial read settles whether it counts.
            Err(StoreError::OutcomeUnknown(_)) => {
                let marked = Slice::new(partition.clone(), KeyRange::prefix(marker.clone()), 1);
                let marked = Slice { consistency: Consistency::Serial, ..marked };
                if !engine.read(marked).await.expect("a row is readable").rows.is_empty() {
                    return;
                }
            }
            Err(StoreError::Unavailable(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    panic!("no increment after {ATTEMPTS} attempts");
}

pub async fn one_of_many_creators_wins(engine: Arc<dyn Engine>) {
    let partition = composite();
    let tasks = (0..i64::from(TASKS)).map(|task| {
        let (engine, partition) = (Arc::clone(&engine), partition.clone());
        tokio::spawn(async move {
            let conditions = vec![Condition::Absent { key: key(0, "", 0) }];
            let batch = Batch { conditions, ..puts(&partition, vec![row(key(0, "", 0), task)]) };
            (task, engine.write(batch).await)
        })
    });
    let (mut winners, mut refusals) = (Vec::new(), Vec::new());
    for task in tasks.collect::<Vec<_>>() {
        match task.await.expect("a creator ends well") {
            (task, Ok(Outcome::Applied)) => winners.push(task),
            (_, Ok(Outcome::Refused(current))) => refusals.push(current),
            // Whether it won is checked below: then no other may have.
            (_, Err(StoreError::OutcomeUnknown(_) | StoreError::Unavailable(_))) => {}
            (_, Err(error)) => panic!("{error}"),
        }
    }
    let rows = all(&*engine, &partition).await;
    assert_eq!(rows.len(), 1);
    assert!(winners.len() <= 1, "{winners:?} all won");
    for winner in winners {
        assert_eq!(rows, [row(key(0, "", 0), winner)]);
    }
    for refusal in refusals {
        assert_eq!(refusal, [Current::Row(Some(rows[0].clone()))], "the refused see the winner");
    }
}

/// A batch replaces all rows; a reader never finds rows of two batches.
pub async fn a_read_sees_all_of_a_batch_or_nothing(engine: Arc<dyn Engine>) {
    const ROWS: i32 = 20;
    const BATCHES: i64 = 100;
    let partition = composite();
    let version = |version: i64| {
        let rows = (0..ROWS).map(|number| row(key(number, "", 0), version)).collect();
        Batch { deletes: vec![key(100 + i32::from(version % 2 == 0), "", 0)], ..puts(&partition, rows) }
    };
    apply(&*engine, version(0)).await;
    let is_done = Arc::new(AtomicBool::new(false));
    let reader = tokio::spawn({
        let (engine, partition, is_done) = (Arc::clone(&engine), partition.clone(), Arc::clone(&is_done));
        async move {
            while !is_done.load(Ordering::Relaxed) {
                let rows = all(&*engine, &partition).await;
                assert!(rows.iter().all(|row| row.values == rows[0].values), "rows of two batches: {rows:?}");
                let n_lasting = rows.iter().filter(|row| row.key[0] < Value::Int(100)).count();
                assert_eq!(n_lasting, ROWS as usize);
            }
        }
    });
    for number in 1..=BATCHES {
        let mut batch = version(number);
        batch.puts.push(row(key(100 + i32::from(number % 2 != 0), "", 0), number));
        apply(&*engine, batch).await;
    }
    is_done.store(true, Ordering::Relaxed);
    reader.await.expect("the reader saw whole batches only");
}

pub async fn serial_reads_see_every_acknowledged_write(engine: Arc<dyn Engine>) {
    let partition = composite();
    for number in 0..5 {
        let batch = Batch { statics: vec![(0, i64::from(number).into())], ..puts(&partition, numbered([number])) };
        apply(&*engine, batch).await;
        let statics = engine.statics(partition.clone(), Consistency::Serial).await;
        assert_eq!(statics, Ok(vec![Some(i64::from(number).into()), None]));
        let slice = Slice::new(partition.clone(), KeyRange::all(), 100);
        let page = engine.read(Slice { consistency: Consistency::Serial, ..slice }).await.expect("a page is readable");
        assert_eq!(page.rows, numbered(0..=number));
    }
}
