//! Claims about static columns: they belong to the partition, not to its rows.

use std::sync::Arc;

use super::given::{all, apply, composite, numbered, page, puts, statics};
use crate::engine::{Batch, Consistency, Engine, KeyRange, Slice};

pub async fn statics_do_not_need_rows(engine: Arc<dyn Engine>) {
    let partition = composite();
    assert_eq!(statics(&*engine, &partition).await, [None, None]);
    apply(&*engine, Batch { statics: vec![(0, 5_i64.into())], ..Batch::new(partition.clone()) }).await;
    assert_eq!(statics(&*engine, &partition).await, [Some(5_i64.into()), None]);
    let serial = engine.statics(partition.clone(), Consistency::Serial).await;
    assert_eq!(serial, Ok(vec![Some(5_i64.into()), None]));
    let page = page(&*engine, Slice::new(partition, KeyRange::all(), 1)).await;
    assert_eq!(page.rows, [], "a partition with statics alone has no row");
    assert_eq!(page.next, None);
}

pub async fn setting_one_static_leaves_the_others(engine: Arc<dyn Engine>) {
    let partition = composite();
    let both = vec![(0, 1_i64.into()), (1, "first".into())];
    apply(&*engine, Batch { statics: both, ..Batch::new(partition.clone()) }).await;
    apply(&*engine, Batch { statics: vec![(0, 2_i64.into())], ..Batch::new(partition.clone()) }).await;
    assert_eq!(statics(&*engine, &partition).await, [Some(2_i64.into()), Some("first".into())]);
    apply(&*engine, Batch { statics: vec![(1, "second".into())], ..Batch::new(partition.clone()) }).await;
    assert_eq!(statics(&*engine, &partition).await, [Some(2_i64.into()), Some("second".into())]);
}

pub async fn statics_outlive_all_rows(engine: Arc<dyn Engine>) {
    for deletion in [
        |batch: &mut Batch| batch.range_deletes.push(KeyRange::all()),
        |batch: &mut Batch| batch.deletes = numbered(0..3).into_iter().map(|row| row.key).collect(),
    ] {
        let partition = composite();
        let mut batch = puts(&partition, numbered(0..3));
        batch.statics = vec![(0, 9_i64.into())];
        apply(&*engine, batch).await;
        let mut batch = Batch::new(partition.clone());
        deletion(&mut batch);
        apply(&*engine, batch).await;
        assert_eq!(all(&*engine, &partition).await, []);
        assert_eq!(statics(&*engine, &partition).await, [Some(9_i64.into()), None]);
    }
}

pub async fn rows_do_not_need_statics(engine: Arc<dyn Engine>) {
    let partition = composite();
    apply(&*engine, puts(&partition, numbered(0..3))).await;
    assert_eq!(statics(&*engine, &partition).await, [None, None]);
    assert_eq!(all(&*engine, &partition).await, numbered(0..3));
}
