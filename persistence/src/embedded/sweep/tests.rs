//! A large range delete is whole from its commit on, even if the process ends before the rows are gone.

use super::*;
use crate::embedded::{Durability, Options};
use crate::engine::{KeyRange, Partition};
use crate::table::Table;

static TABLE: Table = Table {
    name: "t",
    partition: &[Column::new("p", Kind::Int)],
    clustering: &[Column::new("a", Kind::Int)],
    statics: &[],
    values: &[],
    is_versioned: false,
};

const ROWS: i32 = 25_000;

fn partition() -> Partition {
    Partition::new(&TABLE, vec![1.into()])
}

fn open(directory: &std::path::Path) -> Arc<Disk> {
    Arc::new(Disk::open(directory, Options { durability: Durability::None, ..Options::default() }).unwrap())
}

fn visible(disk: &Arc<Disk>, span: &Span) -> usize {
    disk.view().range(span).map(Result::unwrap).count()
}

#[test]
fn an_interrupted_sweep_hides_its_rows_at_once_and_is_finished_on_opening() {
    let directory = tempfile::tempdir().unwrap();
    let disk = open(directory.path());
    let rows = (0..ROWS).map(|row| (keys::row(&partition(), &[row.into()]), Some(Vec::new()))).collect();
    disk.commit(rows).unwrap();
    let all = keys::span(&partition(), &KeyRange::all());
    let before = disk.view();

    let doomed =
        KeyRange { lower: std::ops::Bound::Unbounded, upper: std::ops::Bound::Excluded(vec![(ROWS - 1).into()]) };
    commit(&disk, Changes::new(), &[keys::span(&partition(), &doomed)]).unwrap();
    assert_eq!(visible(&disk, &all), 1);
    assert_eq!(disk.hidden_keys(&all).count(), 25_000, "they are still there");
    assert_eq!(before.range(&all).count(), 25_000, "a view does not change");

    drop((before, disk));
    let disk = open(directory.path());
    resume(&disk).unwrap();
    assert_eq!(disk.hidden_keys(&all).count(), 1);
    assert_eq!(visible(&disk, &all), 1);
    assert_eq!(
        disk.view().range(&Span { from: keys::SWEEPS.to_vec(), to: note(usize::MAX) }).count(),
        0,
        "no note is left"
    );
}
