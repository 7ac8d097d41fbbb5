//! The embedded engine under kill -9, on a full disk and without file descriptors: nothing acknowledged is lost, nothing
//! is half there, and it recovers by itself.
//!
//! The test binary runs itself as the process that comes to harm: `writes_until_killed` and the others below do nothing
//! unless `PERSISTENCE_CRASH_DIRECTORY` names where to write.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use persistence::embedded::{Durability, Embedded, Options};
use persistence::engine::{
    Availability, Batch, Condition, Consistency, Engine, KeyRange, Order, Outcome, Partition, Row, Slice,
};
use persistence::error::StoreError;
use persistence::table::{Column, Kind, Table, Value};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const DIRECTORY: &str = "PERSISTENCE_CRASH_DIRECTORY";
const SEED: u64 = 20_260_727;
const ROUNDS: usize = 10;
const WRITERS: i32 = 4;
/// Rows of one batch; enough of them, and large enough, to be cut in the middle.
const ROWS: i64 = 12;

static LEDGER: Table = Table {
    name: "ledger",
    partition: &[Column::new("writer", Kind::Int)],
    clustering: &[Column::new("batch", Kind::Bigint), Column::new("row", Kind::Bigint)],
    statics: &[Column::new("count", Kind::Bigint)],
    values: &[Column::new("data", Kind::Blob)],
    is_versioned: false,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_and_nothing_is_half_there() {
    let directory = tempfile::tempdir().unwrap();
    let mut random = StdRng::seed_from_u64(SEED);
    let mut acknowledged = vec![0_i64; WRITERS as usize];
    for round in 0..ROUNDS {
        let n_acknowledgements = random.random_range(1..60);
        let moment = Duration::from_micros(random.random_range(0..3000));
        for (writer, count) in run_and_kill(directory.path(), n_acknowledgements, moment) {
            assert!(count > acknowledged[writer], "round {round}: counts grow");
            acknowledged[writer] = count;
        }
        // Without fsync: what the killed process left is read the same way, and this one writes nothing.
        let options = Options { durability: Durability::None, ..Options::default() };
        let engine = Embedded::open(directory.path(), options).unwrap();
        for (writer, acknowledged) in (0_i32..).zip(&mut acknowledged) {
            *acknowledged = check_ledger(&*engine, writer, *acknowledged, round).await;
        }
    }
    assert!(acknowledged.iter().sum::<i64>() > 50, "the rounds have written something: {acknowledged:?}");
}

/// The limit on the size of files stands for a full disk: it needs no mount and no privilege, and is lifted from outside.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_unavailable_at_once_and_recovers_by_itself() {
    let directory = tempfile::tempdir().unwrap();
    // Made in advance: a new journal is given more room at once than the limit allows.
    drop(Embedded::open(directory.path(), Options::default()).unwrap());
    let mut process = run_limited("trap '' XFSZ; ulimit -S -f 2048", "writes_through_a_full_disk", directory.path());
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut acknowledged = 0;
    for line in lines.by_ref() {
        acknowledged = acknowledgement(&line).map_or(acknowledged, |(_, count)| count);
        if line.contains("the disk is full") {
            break;
        }
    }
    let lifted =
        Command::new("prlimit").args(["--pid", &process.id().to_string(), "--fsize=unlimited"]).status().unwrap();
    assert!(lifted.success());
    let rest: Vec<String> = lines.collect();
    assert!(process.wait().unwrap().success(), "{rest:?}");
    rest.iter().filter(|line| line.contains("recovered")).for_each(|line| say(line));
    acknowledged =
        rest.iter().filter_map(|line| acknowledgement(line)).map(|(_, count)| count).max().unwrap_or(acknowledged);
    let engine = Embedded::open(directory.path(), Options::default()).unwrap();
    check_ledger(&*engine, 0, acknowledged, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lack_of_file_descriptors_is_unavailable_at_once_and_recovers_by_itself() {
    let directory = tempfile::tempdir().unwrap();
    drop(Embedded::open(directory.path(), Options::default()).unwrap());
    let process = run_limited("ulimit -n 64", "writes_without_file_descriptors", directory.path());
    let output = process.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    said.lines().filter(|line| line.contains("recovered")).for_each(say);
    let acknowledged = said.lines().filter_map(acknowledgement).map(|(_, count)| count).max().unwrap();
    let engine = Embedded::open(directory.path(), Options::default()).unwrap();
    check_ledger(&*engine, 0, acknowledged, 0).await;
}

fn run_limited(limit: &str, test: &str, directory: &Path) -> std::process::Child {
    Command::new("sh")
        .args(["-c", &format!("{limit}; exec \"$0\" \"$@\"")])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &format!("crash::{test}"), "--nocapture"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Starts a writer, kills it a moment after `n_acknowledgements`, and returns all acknowledgements.
fn run_and_kill(directory: &Path, n_acknowledgements: usize, moment: Duration) -> Vec<(usize, i64)> {
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::writes_until_killed", "--nocapture"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut acknowledged: Vec<_> =
        lines.by_ref().filter_map(|line| acknowledgement(&line)).take(n_acknowledgements).collect();
    assert_eq!(acknowledged.len(), n_acknowledgements, "the writer ended before it was killed");
    // Not to wait for anything: to let the kill fall at another point of what the writer does.
    std::thread::sleep(moment);
    process.kill().unwrap();
    // What it had said before it died counts too. A line cut by the kill was not said.
    acknowledged.extend(lines.filter_map(|line| acknowledgement(&line)));
    process.wait().unwrap();
    acknowledged
}

/// The writer and its count, if the line reports an acknowledged batch.
fn acknowledgement(line: &str) -> Option<(usize, i64)> {
    // The test harness may have begun the line with the test's name.
    let (writer, count) = line.split_once("acknowledged ")?.1.strip_suffix('.')?.split_once(' ')?;
    Some((writer.parse().ok()?, count.parse().ok()?))
}

/// Returns how far the writer had got: at least as far as it was acknowledged, and at most one batch further.
async fn check_ledger(engine: &dyn Engine, writer: i32, acknowledged: i64, round: usize) -> i64 {
    let statics = engine.statics(ledger(writer), Consistency::Quorum).await.unwrap();
    let count = statics[0].as_ref().map_or(0, |value| if let Value::Bigint(count) = value { *count } else { -1 });
    let place = format!("seed {SEED}, round {round}, writer {writer}");
    assert!(
        count == acknowledged || count == acknowledged + 1,
        "{place}: {count} after {acknowledged} were acknowledged"
    );
    let slice = Slice { order: Order::Descending, ..Slice::new(ledger(writer), KeyRange::all(), 1000) };
    let rows = engine.read(slice).await.unwrap().rows;
    // Every batch deletes the one before the last: two are there, whole, and nothing else.
    let expected: Vec<Row> = batch_rows(count).into_iter().chain(batch_rows(count - 1)).collect();
    assert!(rows == expected, "{place}: {} rows at count {count}", rows.len());
    count
}

/// The process that is killed.
#[test]
fn writes_until_killed() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let engine = Embedded::open(directory, Options::default()).unwrap();
    runtime.block_on(async {
        let writers: Vec<_> =
            (0..WRITERS).map(|writer| tokio::spawn(keep_writing(Arc::clone(&engine), writer))).collect();
        for writer in writers {
            writer.await.unwrap();
        }
    });
}

/// The process whose files may not grow any more, until the limit is lifted.
#[tokio::test]
async fn writes_through_a_full_disk() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let engine = Embedded::open(directory, Options::default()).unwrap();
    let mut current = None;
    let failure = loop {
        if let Err(failure) = write_next(&engine, 0, &mut current).await {
            break failure;
        }
    };
    assert!(matches!(failure, StoreError::OutcomeUnknown(_)), "{failure}");
    say("the disk is full");
    recovers(&engine, current).await;
}

/// The process that has used up its file descriptors, until it closes some.
#[tokio::test]
async fn writes_without_file_descriptors() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let engine = Embedded::open(directory, Options::default()).unwrap();
    let mut current = None;
    write_next(&engine, 0, &mut current).await.unwrap();
    let taken: Vec<_> = std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
    // Enough for several flushes, which need files.
    let failure = loop {
        if let Err(failure) = write_next(&engine, 0, &mut current).await {
            break failure;
        }
        assert!(current < Some(5000_i64.into()), "a store without file descriptors goes on");
    };
    assert!(matches!(failure, StoreError::Unavailable(_) | StoreError::OutcomeUnknown(_)), "{failure}");
    let mut availability = engine.availability();
    let is_down = |availability: &Availability| *availability == Availability::Down("no file descriptors are left");
    availability.wait_for(is_down).await.unwrap();
    drop(taken);
    recovers(&engine, current).await;
}

/// Until then every call is answered at once, and nothing acknowledged is missing after it.
async fn recovers(engine: &Arc<Embedded>, mut current: Option<Value>) {
    let began = std::time::Instant::now();
    let known = current.clone();
    loop {
        let asked = std::time::Instant::now();
        let read = engine.statics(ledger(0), Consistency::Serial).await;
        assert!(asked.elapsed() < Duration::from_secs(1), "an answer takes {:?}", asked.elapsed());
        match read {
            Ok(statics) => {
                current = statics.into_iter().next().unwrap();
                assert!(current >= known, "{current:?} after {known:?} was acknowledged");
                if write_next(engine, 0, &mut current).await.is_ok() {
                    break;
                }
            }
            Err(StoreError::Unavailable(_)) => {}
            Err(error) => panic!("{error}"),
        }
        assert!(began.elapsed() < Duration::from_secs(60), "it does not recover");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    say(&format!("recovered in {:?}", began.elapsed()));
    assert_eq!(*engine.availability().borrow(), Availability::Up);
}

fn say(line: &str) {
    std::io::stdout().lock().write_all(format!("{line}\n").as_bytes()).unwrap();
}

async fn keep_writing(engine: Arc<Embedded>, writer: i32) {
    let mut current = engine.statics(ledger(writer), Consistency::Serial).await.unwrap().remove(0);
    loop {
        write_next(&engine, writer, &mut current).await.unwrap();
    }
}

/// Writes one batch and reports its acknowledgement.
async fn write_next(engine: &Embedded, writer: i32, current: &mut Option<Value>) -> Result<(), StoreError> {
    let next = if let Some(Value::Bigint(count)) = &current { count + 1 } else { 1 };
    let batch = Batch {
        conditions: vec![Condition::Static { column: 0, equals: current.clone() }],
        statics: vec![(0, next.into())],
        puts: batch_rows(next),
        range_deletes: vec![KeyRange::prefix(vec![(next - 2).into()])],
        ..Batch::new(ledger(writer))
    };
    assert_eq!(engine.write(batch).await?, Outcome::Applied);
    say(&format!("acknowledged {writer} {next}."));
    *current = Some(next.into());
    Ok(())
}

fn ledger(writer: i32) -> Partition {
    Partition::new(&LEDGER, vec![writer.into()])
}

/// In descending order of their keys. None before the first batch.
fn batch_rows(batch: i64) -> Vec<Row> {
    let rows = (0..if batch > 0 { ROWS } else { 0 }).rev();
    let data = Bytes::from(vec![batch.to_le_bytes()[0]; 1500]);
    rows.map(|row| Row { key: vec![batch.into(), row.into()], values: vec![data.clone().into()] }).collect()
}
