//! Offline check and repair of a data directory that no server has open.

use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use uuid::Uuid;

use super::cells;
use super::disk::Disk;
use super::journal::{Journal, Scan};
use super::keys::{self, Named};
use super::layout::{self, Layout, Verdict};
use super::marker::{Found, Marker};
use super::{Options, sweep};
use crate::error::StoreError;
use crate::table::Table;
use crate::tables;

/// Damaged keys named per table in a report; the rest is counted.
const NAMED_MAX: usize = 10;

/// Findings and actions, line by line.
#[derive(Debug, Default)]
pub struct Report {
    pub lines: Vec<String>,
    /// Nothing that was acknowledged is missing or damaged.
    pub is_sound: bool,
}

/// Reads everything, and reports. Changes nothing that a start of the server would not.
///
/// # Errors
/// `Unavailable` if there is no store, another process has it open, or it cannot be read.
pub fn check(directory: &Path) -> Result<Report, StoreError> {
    let locked = layout::lock(directory)?;
    let layout = read(directory)?;
    let mut report = Report { lines: journal_lines(&layout), is_sound: false };
    match layout.verdict() {
        Verdict::New => return Err(no_store(directory)),
        Verdict::Sound => {
            drop(locked);
            report.check_rows(directory)?;
        }
        Verdict::TornTail(damage) => {
            report.is_sound = true;
            report.lines.push(format!(
                "the last journal has an unfinished tail of {} bytes that was never acknowledged; the next start cuts it",
                damage.bytes
            ));
        }
        Verdict::Lost(problems) => report.lines.extend(problems),
    }
    Ok(report)
}

/// Cuts what cannot be read, so that the store opens with all that was written before. Files that it changes are first
/// copied into a new folder of the directory.
///
/// # Errors
/// As `check`; `Corrupt` if the tables are not there or cannot be opened: only a backup helps then.
pub fn repair(directory: &Path) -> Result<Report, StoreError> {
    let locked = layout::lock(directory)?;
    let layout = read(directory)?;
    let mut report = Report::default();
    match layout.verdict() {
        Verdict::New => return Err(no_store(directory)),
        Verdict::Sound | Verdict::TornTail(_) => {}
        Verdict::Lost(problems) => {
            if let Some(problem) = layout.beyond_repair() {
                return Err(StoreError::Corrupt(format!("{problem}: this cannot be repaired, restore a backup")));
            }
            report.lines.extend(problems);
            report.cut(directory, &layout).map_err(|error| failed(directory, &error))?;
        }
    }
    drop(locked);
    // The journals are intact now, but may end before what was synced.
    if let Err(StoreError::Corrupt(problem)) = Disk::open(directory, Options::default()) {
        report.lines.push(problem);
        forgive_or_restore(directory)?;
        report.lines.push("accepted that the end of the journal is missing".into());
    }
    if report.lines.is_empty() {
        report.lines.push("nothing was to be repaired".into());
    }
    report.check_rows(directory)?;
    Ok(report)
}

fn read(directory: &Path) -> Result<Layout, StoreError> {
    if !directory.is_dir() {
        return Err(no_store(directory));
    }
    Layout::read(directory).map_err(|error| failed(directory, &error))
}

fn no_store(directory: &Path) -> StoreError {
    StoreError::Unavailable(format!("there is no store in {}", directory.display()))
}

fn failed(directory: &Path, error: &io::Error) -> StoreError {
    StoreError::Unavailable(format!("cannot use {}: {error}", directory.display()))
}

fn journal_lines(layout: &Layout) -> Vec<String> {
    let line = |(journal, scan): &(Journal, Scan)| {
        let (number, batches, end) = (journal.number, scan.n_batches, scan.end);
        let damage = scan.damage.as_ref().map(|damage| {
            let later = damage.later.n_batches;
            format!(
                "; then {} bytes that are no batch ({}), {later} whole batches among them",
                damage.bytes, damage.flaw
            )
        });
        format!("journal {number}: {batches} batches in {end} bytes{}", damage.unwrap_or_default())
    };
    layout.journals.iter().map(line).collect()
}

/// Accepts that the end of the journal is missing. If the store still cannot be opened, its tables are damaged, and the
/// marker is restored.
fn forgive_or_restore(directory: &Path) -> Result<(), StoreError> {
    let path = Marker::path(directory);
    let of_io = |error: io::Error| failed(directory, &error);
    let marker = if path.try_exists().map_err(of_io)? { Some(std::fs::read(&path).map_err(of_io)?) } else { None };
    forgive(directory, &read(directory)?).map_err(of_io)?;
    let Err(StoreError::Corrupt(problem)) = Disk::open(directory, Options::default()) else { return Ok(()) };
    match marker {
        Some(marker) => std::fs::write(&path, marker).map_err(of_io)?,
        None => std::fs::remove_file(&path).map_err(of_io)?,
    }
    Err(StoreError::Corrupt(format!("{problem}: this cannot be repaired, restore a backup")))
}

/// Accepts the loss of all batches up to the highest known number.
fn forgive(directory: &Path, layout: &Layout) -> io::Result<()> {
    let store_id = if let Found::Marker(marker) = layout.marker { marker.store_id } else { Uuid::nil() };
    Marker { store_id, synced: 0, forgiven: layout.highest_named() }.create(directory).map(|_| ())
}

impl Report {
    /// Cuts the first damaged journal at its damage and removes all journals after it or after a gap: they depend on
    /// lost batches.
    fn cut(&mut self, directory: &Path, layout: &Layout) -> io::Result<()> {
        let copies = new_folder(directory)?;
        let keep = |path: &Path| std::fs::copy(path, copies.join(path.file_name().unwrap_or_default())).map(|_| ());
        if Marker::path(directory).try_exists()? {
            keep(&Marker::path(directory))?;
        }
        if layout.journals.is_empty() {
            std::fs::File::create_new(directory.join("0.jnl"))?.sync_all()?;
            self.lines.push("made a new journal; what was only in the missing one is lost".into());
        }
        let mut before: Option<u64> = None;
        let mut is_dropping = false;
        for (journal, scan) in &layout.journals {
            let number = journal.number;
            is_dropping |= before.replace(number).is_some_and(|before| number > before + 1);
            if is_dropping {
                keep(&journal.path)?;
                std::fs::remove_file(&journal.path)?;
                self.lines.push(format!("journal {number}: dropped, with {} batches", scan.n_batches));
            } else if let Some(damage) = &scan.damage {
                keep(&journal.path)?;
                journal.cut(scan.end)?;
                let (end, bytes, later) = (scan.end, damage.bytes, damage.later.n_batches);
                self.lines.push(format!(
                    "journal {number}: cut at byte {end}, dropped {bytes} bytes with {later} whole batches in them"
                ));
                is_dropping = true;
            }
        }
        forgive(directory, layout)?;
        self.lines.push(format!("the files as they were are in {}", copies.display()));
        Ok(())
    }

    /// Reads every row of every table.
    fn check_rows(&mut self, directory: &Path) -> Result<(), StoreError> {
        let disk = match Disk::open(directory, Options::default()) {
            Ok(disk) => Arc::new(disk),
            Err(StoreError::Corrupt(problem)) => {
                self.lines.push(problem);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        sweep::resume(&disk)?;
        let mut found: BTreeMap<&'static str, FoundRows> = BTreeMap::new();
        self.is_sound = true;
        for entry in disk.view().everything() {
            let (key, value) = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    self.is_sound = false;
                    self.lines.push(format!("tables: {error}"));
                    break;
                }
            };
            if key.first() == Some(&0x00) {
                continue;
            }
            let table = tables::ALL
                .iter()
                .find(|table| key.starts_with(table.name.as_bytes()) && key.get(table.name.len()) == Some(&0x00));
            let rows = found.entry(table.map_or("(no table)", |table| table.name)).or_default();
            rows.n_rows += 1;
            if !table.is_some_and(|table| is_sound(table, &key, &value)) {
                rows.damaged.push(key.to_vec());
            }
        }
        for (table, rows) in found {
            self.is_sound &= rows.damaged.is_empty();
            self.lines.push(rows.line(table));
        }
        Ok(())
    }
}

#[derive(Default)]
struct FoundRows {
    n_rows: u64,
    damaged: Vec<Vec<u8>>,
}

impl FoundRows {
    fn line(&self, table: &str) -> String {
        let mut line = format!("table {table}: {} rows", self.n_rows);
        if !self.damaged.is_empty() {
            let named: Vec<String> = self.damaged.iter().take(NAMED_MAX).map(|key| format!("{key:02x?}")).collect();
            line += &format!(", {} of them damaged: {}", self.damaged.len(), named.join(", "));
        }
        line
    }
}

fn is_sound(table: &Table, key: &[u8], value: &[u8]) -> bool {
    match keys::named(table, key) {
        Some(Named::Row) => cells::decode(table.values, value).is_some(),
        Some(Named::Static(column)) => cells::decode(&table.statics[column..=column], value).is_some(),
        None => false,
    }
}

/// Creates a new folder in the directory.
fn new_folder(directory: &Path) -> io::Result<PathBuf> {
    let mut number = 1;
    loop {
        let folder = directory.join(format!("before-repair-{number}"));
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
        }
    }
}
