//! What is left of a data directory after a loss of power, a bad disk or a mistake: nothing acknowledged goes missing
//! without an error, and nothing unacknowledged stops a start.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use persistence::embedded::{Embedded, Options, upkeep};
use persistence::engine::{Batch, Consistency, Durable, Engine, KeyRange, Outcome, Partition, Row, Slice};
use persistence::error::StoreError;
use persistence::table::Value;
use persistence::tables::HISTORY_NODE;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tempfile::TempDir;
use uuid::Uuid;

const PAGE: usize = 4096;
const SEED: u64 = 20_261_118;
/// `EVERROW_FUZZ_ROUNDS` sets another number.
const ROUNDS: usize = 60;
const SYNCED_ROWS: i64 = 40;

/// A directory as a process that was killed leaves it: acknowledged rows, then a batch that was not synced.
struct Crashed {
    image: TempDir,
    /// How long the journal was after the last sync.
    synced: usize,
    /// With the batch that was not synced.
    written: usize,
}

#[tokio::test]
async fn a_page_missing_in_the_unsynced_tail_loses_no_acknowledged_row() {
    let crashed = Crashed::new().await;
    for page in crashed.tail_pages() {
        for filling in [0x00, 0xa5] {
            let image = crashed.copy();
            damage(image.path(), page.max(crashed.synced)..(page + PAGE).min(crashed.written), filling);
            let place = format!("page at {page} filled with {filling:#x}");
            let engine =
                Embedded::open(image.path(), Options::default()).unwrap_or_else(|error| panic!("{place}: {error}"));
            check_rows(&engine, &place).await;
            // And it can be written to and opened again.
            write(&engine, SYNCED_ROWS + 2, Durable::AtOnce, 10).await;
            drop(engine);
            drop(Embedded::open(image.path(), Options::default()).unwrap());
        }
    }
}

#[tokio::test]
async fn random_damage_of_the_unsynced_tail_loses_no_acknowledged_row() {
    let crashed = Crashed::new().await;
    let mut random = StdRng::seed_from_u64(SEED);
    for round in 0..rounds(ROUNDS) {
        let image = crashed.copy();
        let journal = journal(image.path());
        let mut bytes = std::fs::read(&journal).unwrap();
        for _ in 0..random.random_range(1..4) {
            let from = random.random_range(crashed.synced..crashed.written);
            let to = (from + random.random_range(1..2 * PAGE)).min(crashed.written);
            match random.random_range(0..4) {
                0 => bytes[from..to].fill(0),
                1 => bytes[from..to].fill_with(|| random.random()),
                2 => bytes[from] ^= 1 << random.random_range(0..8),
                _ => bytes.truncate(from),
            }
            bytes.resize(bytes.len().max(crashed.written), 0);
        }
        std::fs::write(&journal, &bytes).unwrap();
        let place = format!("seed {SEED}, round {round}");
        let engine =
            Embedded::open(image.path(), Options::default()).unwrap_or_else(|error| panic!("{place}: {error}"));
        check_rows(&engine, &place).await;
    }
}

#[tokio::test]
async fn random_damage_of_synced_data_is_an_error_with_a_way_out() {
    let crashed = Crashed::new().await;
    let mut random = StdRng::seed_from_u64(SEED);
    for round in 0..rounds(ROUNDS) {
        let image = crashed.copy();
        let journal = journal(image.path());
        let mut bytes = std::fs::read(&journal).unwrap();
        let from = random.random_range(0..crashed.synced - 64);
        let to = from + random.random_range(1..64);
        match random.random_range(0..3) {
            0 => bytes.truncate(from),
            1 => bytes[from..to].iter_mut().for_each(|byte| *byte = !*byte),
            _ => bytes[from] ^= 1 << random.random_range(0..8),
        }
        std::fs::write(&journal, &bytes).unwrap();
        let place = format!("seed {SEED}, round {round}");
        let Err(StoreError::Corrupt(message)) = Embedded::open(image.path(), Options::default()) else {
            panic!("{place}: damage of synced data at {from}..{to} is not reported");
        };
        assert!(message.contains("everrow data repair"), "{place}: {message}");
        // Nothing was changed by the attempt.
        assert_eq!(std::fs::read(&journal).unwrap(), bytes, "{place}");
    }
}

#[tokio::test]
async fn a_store_that_was_not_empty_never_starts_empty() {
    let crashed = Crashed::new().await;
    for missing in ["0.jnl", "keyspaces", "keyspaces/0", "keyspaces/1", "keyspaces/1/current", "version"] {
        let image = crashed.copy();
        let path = image.path().join(missing);
        if path.is_dir() {
            std::fs::remove_dir_all(&path).unwrap()
        } else {
            std::fs::remove_file(&path).unwrap()
        }
        let Err(StoreError::Corrupt(message)) = Embedded::open(image.path(), Options::default()) else {
            panic!("it starts without {missing}");
        };
        assert!(message.contains("everrow data"), "{missing}: {message}");
    }
}

#[tokio::test]
async fn a_first_start_that_was_interrupted_is_begun_again() {
    let directory = tempfile::tempdir().unwrap();
    // What fjall makes first.
    std::fs::create_dir(directory.path().join("keyspaces")).unwrap();
    std::fs::write(directory.path().join("lock"), []).unwrap();
    std::fs::write(directory.path().join("0.jnl"), vec![0; 1 << 20]).unwrap();
    drop(Embedded::open(directory.path(), Options::default()).unwrap());
}

#[tokio::test]
async fn a_repair_keeps_all_before_the_damage_and_copies_what_it_changes() {
    let crashed = Crashed::new().await;
    let image = crashed.copy();
    let half = crashed.synced / 2;
    damage(image.path(), half..half + PAGE, 0);
    let damaged = std::fs::read(journal(image.path())).unwrap();
    let report = upkeep::check(image.path()).unwrap();
    assert!(!report.is_sound && report.lines.iter().any(|line| line.contains("is damaged at byte")), "{report:?}");

    let report = upkeep::repair(image.path()).unwrap();
    assert!(report.is_sound && report.lines.iter().any(|line| line.contains("cut at byte")), "{report:?}");
    assert_eq!(std::fs::read(image.path().join("before-repair-1/0.jnl")).unwrap(), damaged);
    let engine = Embedded::open(image.path(), Options::default()).unwrap();
    let kept = rows(&engine).await;
    assert!(!kept.is_empty() && kept.len() < SYNCED_ROWS as usize, "{} rows", kept.len());
    assert_eq!(kept, (1..=kept.len() as i64).map(small_row).collect::<Vec<_>>());
    // It goes on as an ordinary store: also damage is noticed again.
    write(&engine, 1000, Durable::AtOnce, 10).await;
    drop(engine);
    assert!(upkeep::check(image.path()).unwrap().is_sound);
    let length = written(&journal(image.path()));
    damage(image.path(), length - 60..length - 40, 0);
    assert!(matches!(Embedded::open(image.path(), Options::default()), Err(StoreError::Corrupt(_))));
}

#[tokio::test]
async fn a_repair_without_the_journal_keeps_the_tables() {
    let crashed = Crashed::new().await;
    let image = crashed.copy();
    std::fs::remove_file(journal(image.path())).unwrap();
    let report = upkeep::repair(image.path()).unwrap();
    assert!(report.lines.iter().any(|line| line.contains("missing")), "{report:?}");
    drop(Embedded::open(image.path(), Options::default()).unwrap());
}

#[tokio::test]
async fn a_repair_refuses_damaged_tables_and_forgives_nothing() {
    let image = Crashed::new().await.copy();
    let tables: Vec<PathBuf> = (0..2)
        .flat_map(|keyspace| std::fs::read_dir(image.path().join(format!("keyspaces/{keyspace}/tables"))))
        .flatten()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(!tables.is_empty(), "the store has no table yet");
    for table in tables {
        let mut bytes = std::fs::read(&table).unwrap();
        bytes.fill(0xa5);
        std::fs::write(&table, bytes).unwrap();
    }
    let marker = || std::fs::read(image.path().join("everrow-store")).unwrap();
    let before = marker();
    for _ in 0..2 {
        let refused = upkeep::repair(image.path());
        assert!(
            matches!(&refused, Err(StoreError::Corrupt(problem)) if problem.contains("restore a backup")),
            "{refused:?}"
        );
        assert_eq!(marker(), before);
    }
}

#[tokio::test]
async fn nobody_else_can_look_into_the_directory() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("data");
    let mode = || std::fs::metadata(&directory).unwrap().permissions().mode() & 0o777;
    drop(Embedded::open(&directory, Options::default()).unwrap());
    assert_eq!(mode(), 0o700);
    std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o755)).unwrap();
    drop(Embedded::open(&directory, Options::default()).unwrap());
    assert_eq!(mode(), 0o700, "a directory of an older version is closed to others");
}

impl Crashed {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let engine = Embedded::open(directory.path(), Options::default()).unwrap();
        for row in 1..=SYNCED_ROWS {
            write(&engine, row, Durable::AtOnce, 700).await;
        }
        let synced = written(&journal(directory.path()));
        write(&engine, SYNCED_ROWS + 1, Durable::WithNext, 5 * PAGE).await;
        let written = written(&journal(directory.path()));
        assert!(written > synced + 4 * PAGE, "the tail is there: {synced}, {written}");
        // Taken while the engine is open: what a kill leaves.
        let image = tempfile::tempdir().unwrap();
        copy(directory.path(), image.path());
        Self { image, synced, written }
    }

    fn copy(&self) -> TempDir {
        let image = tempfile::tempdir().unwrap();
        copy(self.image.path(), image.path());
        image
    }

    fn tail_pages(&self) -> impl Iterator<Item = usize> {
        (self.synced / PAGE * PAGE..self.written).step_by(PAGE)
    }
}

fn rounds(usual: usize) -> usize {
    std::env::var("EVERROW_FUZZ_ROUNDS").map_or(usual, |rounds| rounds.parse().unwrap())
}

fn journal(directory: &Path) -> PathBuf {
    directory.join("0.jnl")
}

/// Up to the last byte that is not zero, as the rest is not written yet.
fn written(journal: &Path) -> usize {
    let bytes = std::fs::read(journal).unwrap();
    bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1
}

fn damage(directory: &Path, range: std::ops::Range<usize>, filling: u8) {
    let journal = journal(directory);
    let mut bytes = std::fs::read(&journal).unwrap();
    bytes[range].fill(filling);
    std::fs::write(&journal, bytes).unwrap();
}

/// Only what is written: a journal is a large file of zeros at first.
fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            std::fs::create_dir(&target).unwrap();
            copy(&path, &target);
        } else if path.extension().is_some_and(|extension| extension == "jnl") {
            let bytes = std::fs::read(&path).unwrap();
            std::fs::write(&target, &bytes[..(written(&path) + 3 * PAGE).min(bytes.len())]).unwrap();
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

fn tree() -> Partition {
    Partition::new(&HISTORY_NODE, vec![Uuid::nil().into()])
}

fn row(number: i64, n_bytes: usize) -> Row {
    let data = Bytes::from(vec![number.to_le_bytes()[0] | 1; n_bytes]);
    Row { key: vec![Uuid::nil().into(), number.into(), 0_i64.into()], values: vec![0_i64.into(), Value::Blob(data)] }
}

fn small_row(number: i64) -> Row {
    row(number, 700)
}

async fn write(engine: &Embedded, number: i64, durable: Durable, n_bytes: usize) {
    let batch = Batch { puts: vec![row(number, n_bytes)], durable, ..Batch::new(tree()) };
    assert_eq!(engine.write(batch).await, Ok(Outcome::Applied));
}

async fn rows(engine: &Embedded) -> Vec<Row> {
    engine.statics(tree(), Consistency::Quorum).await.unwrap();
    engine.read(Slice::new(tree(), KeyRange::all(), 1000)).await.unwrap().rows
}

/// All acknowledged rows are there; the one that was not may be.
async fn check_rows(engine: &Embedded, place: &str) {
    let mut rows = rows(engine).await;
    assert!(rows.len() >= SYNCED_ROWS as usize, "{place}: {} rows", rows.len());
    rows.truncate(SYNCED_ROWS as usize);
    assert!(rows == (1..=SYNCED_ROWS).map(small_row).collect::<Vec<_>>(), "{place}");
}
