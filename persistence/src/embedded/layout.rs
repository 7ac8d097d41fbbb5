//! Checks a data directory before fjall opens it, because fjall starts empty or drops data where files are missing or
//! damaged. Knows which files a store has; changes it only in `secure`, `cut` and `clear_unfinished`.

use std::fs::{DirBuilder, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::journal::{Chain, Damage, Journal, Scan, SeqNo};
use super::marker::{Found, Marker};
use crate::error::StoreError;

/// Rows hold payloads of all tenants: no other user of the machine may read them.
const DIRECTORY_MODE: u32 = 0o700;
const LOCK: &str = "lock";
const VERSION: &str = "version";
const KEYSPACES: &str = "keyspaces";
/// fjall deletes a keyspace without it as incomplete.
const CURRENT: &str = "current";
/// fjall's own keyspace, which names the others.
const META: &str = "0";
/// A process that was just killed may still hold the lock.
const LOCK_ATTEMPTS: usize = 4;
const LOCK_PAUSE: Duration = Duration::from_millis(100);

/// The files of a data directory.
#[derive(Debug)]
pub(super) struct Layout {
    directory: PathBuf,
    pub(super) marker: Found,
    has_version: bool,
    keyspaces: Keyspaces,
    pub(super) journals: Vec<(Journal, Scan)>,
    /// All intact batches up to the first damage.
    pub(super) chain: Chain,
}

#[derive(Debug)]
enum Keyspaces {
    /// None was created yet.
    None,
    /// One is incomplete, or the meta keyspace stands alone.
    Incomplete(PathBuf),
    Complete,
}

/// Result of checking a directory.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// There is no store yet.
    New,
    Sound,
    /// The end of the last journal was being written when the process or the machine stopped; nothing of it was synced.
    TornTail(Damage),
    /// Acknowledged data is missing or damaged; each problem in words.
    Lost(Vec<String>),
}

/// Creates the directory if it is missing, and removes other users' access.
pub(super) fn secure(directory: &Path) -> io::Result<()> {
    if !directory.try_exists()? {
        return DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(directory);
    }
    let mode = std::fs::metadata(directory)?.permissions().mode();
    if mode & 0o077 == 0 || !has_store(directory)? {
        return Ok(());
    }
    let directory_name = directory.display();
    match std::fs::set_permissions(directory, Permissions::from_mode(DIRECTORY_MODE)) {
        Ok(()) => {
            tracing::warn!(directory = %directory_name, "others could read the data directory: its mode is now 0700")
        }
        Err(error) => {
            tracing::warn!(directory = %directory_name, %error, "others can read the data directory; make it 0700")
        }
    }
    Ok(())
}

/// Whether the directory holds a store or is empty.
fn has_store(directory: &Path) -> io::Result<bool> {
    let is_known = directory.join(VERSION).try_exists()? || Marker::path(directory).try_exists()?;
    Ok(is_known || std::fs::read_dir(directory)?.next().is_none())
}

/// Locks the directory against other processes until dropped. `None`: there is no lock file yet.
///
/// # Errors
/// `Unavailable` if another process has it.
pub(super) fn lock(directory: &Path) -> Result<Option<File>, StoreError> {
    let failed = |error: io::Error| StoreError::Unavailable(format!("cannot lock {}: {error}", directory.display()));
    let file = match File::options().read(true).write(true).open(directory.join(LOCK)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    for attempt in 1.. {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::Error(error)) => return Err(failed(error)),
            Err(TryLockError::WouldBlock) if attempt == LOCK_ATTEMPTS => return Err(in_use(directory)),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
        }
    }
    Ok(Some(file))
}

pub(super) fn in_use(directory: &Path) -> StoreError {
    let advice = "stop the other process or choose another directory";
    StoreError::Unavailable(format!("{} is in use by another process: {advice}", directory.display()))
}

/// Error for lost data, with the operator's options.
pub(super) fn way_out(directory: &Path, problems: &[String]) -> StoreError {
    let directory = directory.display();
    StoreError::Corrupt(format!(
        "{directory} has lost data that was acknowledged: {}. Restore a backup, or run `everrow data check --data \
         {directory}` for a report and `everrow data repair --data {directory}` to go on with what is left",
        problems.join("; ")
    ))
}

impl Layout {
    /// Reads the directory, and all of its journals.
    pub(super) fn read(directory: &Path) -> io::Result<Self> {
        let mut chain = Chain::default();
        let mut journals: Vec<(Journal, Scan)> = Vec::new();
        for journal in Journal::list(directory)? {
            let is_after_damage = journals.iter().any(|(_, scan)| scan.damage.is_some());
            // Batches after damage are not replayed, only counted.
            let scan = if is_after_damage { journal.scan(&mut Chain::default()) } else { journal.scan(&mut chain) }?;
            journals.push((journal, scan));
        }
        Ok(Self {
            directory: directory.to_owned(),
            marker: Marker::read(directory)?,
            has_version: directory.join(VERSION).try_exists()?,
            keyspaces: Keyspaces::read(directory)?,
            journals,
            chain,
        })
    }

    pub(super) fn verdict(&self) -> Verdict {
        if !self.has_version && self.marker == Found::Nothing && self.chain.n_batches == 0 {
            return Verdict::New;
        }
        let mut problems = self.missing_files();
        if let Some(gap) = self.chain.gap
            && gap.expected > self.forgiven()
        {
            problems.push(format!("the journals miss the batches from {} to {}", gap.last + 1, gap.expected));
        }
        let damaged = self.journals.iter().position(|(_, scan)| scan.damage.is_some());
        if let Some(place) = damaged
            && let (journal, Scan { end, damage: Some(damage), .. }) = &self.journals[place]
        {
            let is_last = place + 1 == self.journals.len();
            if is_last && self.is_unsynced(damage) && problems.is_empty() {
                return Verdict::TornTail(damage.clone());
            }
            let (name, flaw, later) = (journal.path.display(), damage.flaw, damage.later.n_batches);
            problems.push(format!(
                "{name} is damaged at byte {end} ({flaw}), before data that was synced: {} bytes, {later} intact batches \
                 behind it",
                damage.bytes
            ));
        }
        if problems.is_empty() { Verdict::Sound } else { Verdict::Lost(problems) }
    }

    /// The batch number that the store must reach once it is open, and the one that its tables must reach: batches
    /// before the journals are only there.
    pub(super) fn expected(&self) -> (SeqNo, SeqNo) {
        let before = self.chain.first.and_then(|batch| batch.note).map_or(0, |note| note.after);
        (self.synced(), if before > self.forgiven() { before } else { 0 })
    }

    /// Cuts the torn tail off the last journal.
    pub(super) fn cut(&self) -> io::Result<()> {
        for (journal, scan) in &self.journals {
            if scan.damage.is_some() {
                journal.cut(scan.end)?;
            }
        }
        Ok(())
    }

    /// Removes the journals of an interrupted first start: fjall would fail on them.
    pub(super) fn clear_unfinished(&self) -> io::Result<()> {
        for (journal, _) in &self.journals {
            std::fs::remove_file(&journal.path)?;
        }
        Ok(())
    }

    /// A missing file that no cut of a journal replaces.
    pub(super) fn beyond_repair(&self) -> Option<String> {
        let missing = match &self.keyspaces {
            _ if !self.has_version => self.directory.join(VERSION),
            Keyspaces::Complete => return None,
            Keyspaces::Incomplete(path) => path.clone(),
            Keyspaces::None => self.directory.join(KEYSPACES),
        };
        Some(format!("{} is missing", missing.display()))
    }

    /// The highest batch number named anywhere in the directory.
    pub(super) fn highest_named(&self) -> SeqNo {
        let later = self.journals.iter().filter_map(|(_, scan)| Some(scan.damage.as_ref()?.later));
        let (gap, first) = (self.chain.gap.map(|gap| gap.expected), self.chain.first.and_then(|batch| batch.note));
        let damaged = later.map(|later| later.last.max(later.synced)).max();
        [gap, first.map(|note| note.after), damaged]
            .into_iter()
            .flatten()
            .fold(self.synced().max(self.chain.last), SeqNo::max)
    }

    fn is_unsynced(&self, damage: &Damage) -> bool {
        let is_known = match self.marker {
            Found::Marker(_) => true,
            // Of a version without markers: damage followed by intact batches was probably synced.
            Found::Nothing => damage.later.n_batches == 0,
            Found::Damaged => false,
        };
        is_known && self.synced().max(damage.later.synced) <= self.chain.last
    }

    /// The highest batch number known to be synced.
    pub(super) fn synced(&self) -> SeqNo {
        let marked = if let Found::Marker(marker) = self.marker { marker.synced } else { 0 };
        // Remaining batches may still name as synced what a repair dropped.
        let noted = if self.chain.synced > self.forgiven() { self.chain.synced } else { 0 };
        marked.max(noted)
    }

    /// The batch number up to which a repair accepted losses.
    pub(super) fn forgiven(&self) -> SeqNo {
        if let Found::Marker(marker) = self.marker { marker.forgiven } else { 0 }
    }

    fn missing_files(&self) -> Vec<String> {
        let mut missing = Vec::new();
        if !self.has_version {
            missing.push(self.directory.join(VERSION));
        }
        match &self.keyspaces {
            // The first start makes them after the journal, and may have been interrupted.
            _ if !self.is_used() => {}
            Keyspaces::Complete => {}
            Keyspaces::Incomplete(path) => missing.push(path.clone()),
            Keyspaces::None => missing.push(self.directory.join(KEYSPACES)),
        }
        let mut problems: Vec<String> = missing.iter().map(|path| format!("{} is missing", path.display())).collect();
        if self.journals.is_empty() {
            problems.push("the journal is missing".into());
        }
        for pair in self.journals.windows(2) {
            let [(before, _), (after, _)] = pair else { continue };
            if after.number > before.number + 1 {
                problems.push(format!("journals {} to {} are missing", before.number + 1, after.number - 1));
            }
        }
        problems
    }

    /// Whether anything was written to the store.
    fn is_used(&self) -> bool {
        self.marker != Found::Nothing || self.chain.n_batches > 0
    }
}

impl Keyspaces {
    fn read(directory: &Path) -> io::Result<Self> {
        let folder = directory.join(KEYSPACES);
        if !folder.try_exists()? {
            return Ok(Self::None);
        }
        let mut n_complete = 0;
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                if !path.join(CURRENT).try_exists()? {
                    return Ok(Self::Incomplete(path.join(CURRENT)));
                }
                n_complete += 1;
            }
        }
        Ok(match n_complete {
            0 => Self::None,
            _ if !folder.join(META).try_exists()? => Self::Incomplete(folder.join(META)),
            1 => Self::Incomplete(folder.join("1")),
            _ => Self::Complete,
        })
    }
}
