//! How large a batch may be.

use bytes::Bytes;
use persistence::engine::{Batch, Condition, Engine as _, Partition, Row};
use persistence::tables::EXECUTIONS;
use uuid::Uuid;

use crate::cluster::Keyspace;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement, not a claim"]
async fn probe() {
    let keyspace = Keyspace::unused();
    keyspace.drop_and_create(&[&EXECUTIONS]).await;
    let engine = keyspace.engine().await;
    for conditional in [false, true] {
        for mib in [1_usize, 4, 7, 8, 10, 12, 14, 15, 16, 17, 20] {
            let row = |number: i64, size: usize| Row {
                key: vec![1.into(), Uuid::nil().into(), "w".into(), Uuid::nil().into(), number.into(), 0_i64.into()],
                values: vec![1_i64.into(), Bytes::from(vec![7_u8; size]).into()],
            };
            let mut batch = Batch::new(Partition::new(&EXECUTIONS, vec![1.into()]));
            if conditional {
                batch.conditions = vec![Condition::Static { column: 0, equals: None }];
            }
            batch.puts = (0..mib as i64 * 16).map(|number| row(number, 64 << 10)).collect();
            let began = std::time::Instant::now();
            println!("conditional {conditional} {mib} MiB: {:?} in {:?}", engine.write(batch).await, began.elapsed());
        }
    }
    keyspace.drop().await;
}
