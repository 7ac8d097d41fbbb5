//! How large a batch may be on a node as it is delivered.

use bytes::Bytes;
use persistence::engine::{Batch, Condition, Outcome, Partition, Row};
use persistence::error::StoreError;
use persistence::tables::EXECUTIONS;
use uuid::Uuid;

use crate::cluster::Keyspace;

/// Rows of 64 KiB.
fn batch(n_mebibytes: i64, conditions: Vec<Condition>) -> Batch {
    let row = |number: i64| Row {
        key: vec![1.into(), Uuid::nil().into(), "workflow".into(), Uuid::nil().into(), number.into(), 0_i64.into()],
        values: vec![1_i64.into(), Bytes::from(vec![7; 64 << 10]).into()],
    };
    let puts = (0..n_mebibytes * 16).map(row).collect();
    Batch { puts, conditions, ..Batch::new(Partition::new(&EXECUTIONS, vec![1.into()])) }
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_of_many_mebibytes_are_applied_and_larger_ones_are_not_sent() {
    let keyspace = Keyspace::unused();
    keyspace.drop_and_create(&[&EXECUTIONS]).await;
    let engine = keyspace.engine().await;
    let unleased = || vec![Condition::Static { column: 0, equals: None }];
    for conditions in [Vec::new(), unleased()] {
        assert_eq!(engine.write(batch(14, conditions.clone())).await, Ok(Outcome::Applied));
        let too_large = engine.write(batch(15, conditions)).await;
        assert!(matches!(too_large, Err(StoreError::TooLarge(_))), "{too_large:?}");
    }
    keyspace.drop().await;
}
