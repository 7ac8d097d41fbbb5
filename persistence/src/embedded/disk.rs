//! The files: one fjall keyspace with all rows, read through views and changed by atomic commits.
//!
//! fjall's batch commit appends to the journal, syncs it, puts the entries into the memtable, and only then moves the
//! number that new snapshots start from. So a reader that goes through a snapshot, as every `View` does, sees all of a
//! commit or nothing of it, and nothing that is not durable yet. (A keyspace's own `get` and `range` take no snapshot
//! and would see entries as they arrive.)

use std::collections::BTreeMap;
use std::fs::File;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use fjall::{AbstractTree, Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable, Snapshot};
use uuid::Uuid;

use super::journal::{Note, SeqNo};
use super::keys::{self, Span};
use super::layout::{self, Layout, Verdict};
use super::marker::{Found, Marker};
use super::{Durability, Options};
use crate::error::StoreError;

/// Format version of keys and cells. A directory with another version is left alone.
const FORMAT: u32 = 1;

/// One memtable is filled and up to four wait to be flushed: 40 MiB when writes outrun the disk, nothing when idle.
const MEMTABLE_BYTES: u64 = 8 << 20;

/// The least that fjall accepts. A journal is deleted once its rows are in tables, which a memtable this small ensures.
const JOURNAL_BYTES: u64 = 64 << 20;

/// One flushes and compacts. With two, fjall's first worker spins while the second compacts.
const WORKERS: usize = 1;

/// fjall blocks a commit, without a timeout, while four memtables wait to be flushed or level 0 has 30 runs: for good
/// if its worker has died. We wait below these limits, and notice a dead worker.
const SEALED_MAX: usize = 3;
const LEVEL0_MAX: usize = 28;
const ROOM_PAUSE: Duration = Duration::from_millis(5);

pub(super) struct Disk {
    database: Database,
    rows: Keyspace,
    persist: PersistMode,
    progress: Mutex<Progress>,
    /// Spans whose rows are deleted but not all removed yet: no view shows them.
    hidden: RwLock<Arc<[Span]>>,
}

/// Last written and last synced batch of the journal.
struct Progress {
    /// The number of the last batch (`Note::number`).
    last: SeqNo,
    marker: Marker,
    file: File,
}

/// A snapshot of all that is committed, save hidden spans.
pub(super) struct View {
    snapshot: Snapshot,
    hidden: Arc<[Span]>,
    /// The last field: once no view holds the disk, the snapshot must be dropped too.
    disk: Arc<Disk>,
}

/// New values by key; `None` removes the key.
pub(super) type Changes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// A commit that failed.
#[derive(Debug)]
pub(super) enum CommitError {
    /// Rejected before the journal was touched.
    NotApplied(fjall::Error),
    /// The journal may hold it: settled when the directory is reopened.
    Unknown(fjall::Error),
}

impl Disk {
    /// Opens or creates the directory. An unsynced tail, left by a write that did not finish, is cut off and reported;
    /// anything else that is missing or damaged is an error.
    pub(super) fn open(directory: &Path, options: Options) -> Result<Self, StoreError> {
        let failed =
            |error: std::io::Error| StoreError::Unavailable(format!("cannot open {}: {error}", directory.display()));
        layout::secure(directory).map_err(failed)?;
        let locked = layout::lock(directory)?;
        let layout = Layout::read(directory).map_err(failed)?;
        match layout.verdict() {
            Verdict::New => layout.clear_unfinished().map_err(failed)?,
            Verdict::Sound => {}
            Verdict::TornTail(damage) => {
                layout.cut().map_err(failed)?;
                tracing::warn!(
                    directory = %directory.display(), bytes = damage.bytes, batches = damage.later.n_batches + 1,
                    reason = %damage.flaw, "cut an unfinished tail off the journal; nothing of it was acknowledged"
                );
            }
            Verdict::Lost(problems) => return Err(layout::way_out(directory, &problems)),
        }
        // fjall takes the same lock itself.
        drop(locked);
        Self::open_judged(directory, options, &layout)
    }

    /// Opens a directory whose journals are known to be intact.
    fn open_judged(directory: &Path, options: Options, layout: &Layout) -> Result<Self, StoreError> {
        // fjall panics on some damaged files.
        let opened = std::panic::catch_unwind(AssertUnwindSafe(|| open_fjall(directory, options)));
        let (database, rows) = match opened {
            Ok(opened) => opened.map_err(|error| explain_open(directory, &error))?,
            Err(_) => return Err(layout::way_out(directory, &["its tables cannot be read".into()])),
        };
        let (synced, tables) = layout.expected();
        let reached = rows.tree.get_highest_seqno().unwrap_or(0);
        let persisted = rows.tree.get_highest_persisted_seqno().unwrap_or(0);
        if reached < synced {
            let problem = format!("it ends with batch {reached}, and batch {synced} was synced");
            return Err(layout::way_out(directory, &[problem]));
        }
        if persisted < tables {
            let problem = format!("its tables end with batch {persisted}, and its journals begin after batch {tables}");
            return Err(layout::way_out(directory, &[problem]));
        }
        let persist = match options.durability {
            Durability::Fsync => PersistMode::SyncData,
            Durability::None => PersistMode::Buffer,
        };
        let (store_id, is_new) = store_id(&database, &rows, directory, layout)?;
        let marker = Marker { store_id, synced, forgiven: layout.forgiven() };
        let file = marker.create(directory).map_err(|error| {
            StoreError::Unavailable(format!("cannot write {}: {error}", Marker::path(directory).display()))
        })?;
        let last = if layout.chain.n_batches > 0 { layout.chain.last } else { reached };
        let progress = Mutex::new(Progress { last, marker, file });
        let disk = Self { database, rows, persist, progress, hidden: RwLock::new(Arc::new([])) };
        if is_new {
            disk.write_header(store_id)?;
        }
        Ok(disk)
    }

    pub(super) fn view(self: &Arc<Self>) -> View {
        // Taken together: `commit_hiding` changes hidden spans and committed rows while no view is being opened.
        let hidden = self.hidden.read().unwrap_or_else(PoisonError::into_inner);
        View { snapshot: self.database.snapshot(), hidden: Arc::clone(&hidden), disk: Arc::clone(self) }
    }

    /// The keys of a span that no view shows any more.
    pub(super) fn hidden_keys(&self, span: &Span) -> impl Iterator<Item = Result<Vec<u8>, fjall::Error>> + use<> {
        let entries = self.database.snapshot().range(&self.rows, span.from.as_slice()..span.to.as_slice());
        entries.map(|entry| entry.key().map(|key| key.to_vec()))
    }

    /// Makes all changes durable, then visible, atomically.
    pub(super) fn commit(&self, changes: Changes) -> Result<(), CommitError> {
        self.write(changes, self.persist)
    }

    /// Commits, and atomically replaces the hidden spans by these. New views wait for it, which happens only for the
    /// rare delete of a very large range.
    pub(super) fn commit_hiding(&self, changes: Changes, spans: Arc<[Span]>) -> Result<(), CommitError> {
        let mut hidden = self.hidden.write().unwrap_or_else(PoisonError::into_inner);
        self.commit(changes)?;
        *hidden = spans;
        Ok(())
    }

    /// Commits without a sync. The next synced commit makes it durable too, for there is one journal, and it is synced
    /// before the next one begins.
    pub(super) fn commit_unsynced(&self, changes: Changes) -> Result<(), CommitError> {
        self.write(changes, PersistMode::Buffer)
    }

    /// Makes all earlier commits durable.
    pub(super) fn sync(&self) -> Result<(), CommitError> {
        let mut progress = self.progress();
        self.database.persist(PersistMode::SyncAll).map_err(CommitError::Unknown)?;
        let last = progress.last;
        progress.note_synced(last);
        progress.file.sync_all().map_err(|error| CommitError::Unknown(error.into()))
    }

    fn write(&self, changes: Changes, persist: PersistMode) -> Result<(), CommitError> {
        if changes.is_empty() {
            return Ok(());
        }
        self.wait_for_room()?;
        let mut progress = self.progress();
        // The batch gets this number or, if fjall's worker takes some concurrently, a higher one.
        let number = self.database.seqno();
        let note = Note { number, after: progress.last, synced: progress.marker.synced };
        let mut batch = self.database.batch().durability(Some(persist));
        batch.insert(&self.rows, keys::JOURNAL, note.encode());
        for (key, value) in changes {
            match value {
                Some(value) => batch.insert(&self.rows, key, value),
                None => batch.remove(&self.rows, key),
            }
        }
        batch.commit().map_err(|error| {
            // fjall poisons itself when a write, a sync or background work fails, and checks that before it writes.
            if let fjall::Error::Poisoned = error {
                CommitError::NotApplied(error)
            } else {
                CommitError::Unknown(error)
            }
        })?;
        progress.last = number;
        if persist != PersistMode::Buffer {
            progress.note_synced(number);
        }
        Ok(())
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until fjall would not block the next commit.
    fn wait_for_room(&self) -> Result<(), CommitError> {
        while self.rows.tree.sealed_memtable_count() >= SEALED_MAX || self.rows.tree.l0_run_count() >= LEVEL0_MAX {
            // Without a sync this only checks whether fjall's worker has failed.
            self.database.persist(PersistMode::Buffer).map_err(CommitError::NotApplied)?;
            std::thread::sleep(ROOM_PAUSE);
        }
        Ok(())
    }

    fn write_header(&self, store_id: Uuid) -> Result<(), StoreError> {
        let header = Changes::from([
            (keys::FORMAT.to_vec(), Some(FORMAT.to_be_bytes().to_vec())),
            (keys::STORE_ID.to_vec(), Some(store_id.as_bytes().to_vec())),
        ]);
        self.commit(header).map_err(|error| StoreError::Unavailable(error.to_string()))
    }
}

impl Progress {
    /// A marker that cannot be written stays behind, which is safe: it only claims less.
    fn note_synced(&mut self, number: SeqNo) {
        self.marker.synced = number;
        if let Err(error) = self.marker.update(&self.file) {
            tracing::debug!(%error, "cannot update the store marker; it keeps the previous synced batch");
        }
    }
}

fn open_fjall(directory: &Path, options: Options) -> fjall::Result<(Database, Keyspace)> {
    let database = Database::builder(directory)
        .cache_size(options.cache_bytes)
        .max_journaling_size(JOURNAL_BYTES)
        .worker_threads(WORKERS)
        // Each commit chooses its own persist mode.
        .manual_journal_persist(true)
        .open()?;
    let rows = database.keyspace("rows", || KeyspaceCreateOptions::default().max_memtable_size(MEMTABLE_BYTES))?;
    Ok((database, rows))
}

/// The id of the store, and whether it must be written: for a new store, or one of a version without ids.
fn store_id(
    database: &Database,
    rows: &Keyspace,
    directory: &Path,
    layout: &Layout,
) -> Result<(Uuid, bool), StoreError> {
    let snapshot = database.snapshot();
    let get = |key: &[u8]| snapshot.get(rows, key).map_err(|error| unreadable(&error));
    let named = directory.display();
    let marked = match layout.marker {
        // Nil: a repair did not know the id.
        Found::Marker(marker) => Some(marker.store_id).filter(|id| !id.is_nil()),
        Found::Nothing | Found::Damaged => None,
    };
    match get(keys::FORMAT)? {
        // Unless a repair has accepted the loss.
        None if marked.is_some() && layout.forgiven() == 0 => {
            return Err(layout::way_out(directory, &["its tables are empty".into()]));
        }
        Some(found) if found != FORMAT.to_be_bytes() => {
            return Err(StoreError::Corrupt(format!(
                "{named} has format {found:?}, this version reads format {FORMAT}"
            )));
        }
        None | Some(_) => {}
    }
    let stored = get(keys::STORE_ID)?.and_then(|bytes| Uuid::from_slice(&bytes).ok());
    match (stored, marked) {
        (Some(stored), Some(marked)) if stored != marked => {
            let problem = format!("its tables are of store {stored}, its marker of store {marked}");
            Err(layout::way_out(directory, &[problem]))
        }
        (Some(stored), _) => Ok((stored, false)),
        (None, Some(marked)) => Ok((marked, true)),
        (None, None) => Ok((Uuid::from_bytes(rand::random()), true)),
    }
}

impl View {
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<fjall::Slice>, StoreError> {
        if self.hides(key) {
            return Ok(None);
        }
        self.snapshot.get(&self.disk.rows, key).map_err(|error| unreadable(&error))
    }

    /// The entries of a span, from either end.
    pub(super) fn range(&self, span: &Span) -> impl DoubleEndedIterator<Item = Result<fjall::KvPair, StoreError>> {
        // fjall does not document what an empty range does.
        let entries =
            (!span.is_empty()).then(|| self.snapshot.range(&self.disk.rows, span.from.as_slice()..span.to.as_slice()));
        entries
            .into_iter()
            .flatten()
            .map(|entry| entry.into_inner().map_err(|error| unreadable(&error)))
            .filter(|entry| entry.as_ref().map_or(true, |(key, _)| !self.hides(key)))
    }

    /// Every entry: all rows, and our own keys.
    pub(super) fn everything(&self) -> impl Iterator<Item = Result<fjall::KvPair, StoreError>> {
        self.snapshot.iter(&self.disk.rows).map(|entry| entry.into_inner().map_err(|error| unreadable(&error)))
    }

    fn hides(&self, key: &[u8]) -> bool {
        self.hidden.iter().any(|span| span.contains(key))
    }
}

impl CommitError {
    /// In words for clients.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::NotApplied(fjall::Error::Io(error)) | Self::Unknown(fjall::Error::Io(error)) => plain_reason(error),
            // The cause is unknown; the reopen attempt reports it.
            Self::NotApplied(_) | Self::Unknown(_) => "a write failed",
        }
    }
}

/// Why the disk does not serve, in words for clients: without file names or the store's own messages.
pub(super) fn plain_reason(error: &std::io::Error) -> &'static str {
    /// `EMFILE` and `ENFILE`, which have no kind of their own.
    const NO_DESCRIPTORS: [i32; 2] = [24, 23];
    let kind = error.kind();
    if matches!(kind, std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded) {
        "the disk is full"
    } else if kind == std::io::ErrorKind::FileTooLarge {
        "a file has reached its largest size"
    } else if kind == std::io::ErrorKind::ReadOnlyFilesystem {
        "the disk is read-only"
    } else if error.raw_os_error().is_some_and(|code| NO_DESCRIPTORS.contains(&code)) {
        "no file descriptors are left"
    } else {
        "the disk does not work"
    }
}

impl std::fmt::Display for CommitError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotApplied(error) | Self::Unknown(error) => write!(formatter, "{error}"),
        }
    }
}

fn explain_open(directory: &Path, error: &fjall::Error) -> StoreError {
    if let fjall::Error::Locked = error {
        return layout::in_use(directory);
    }
    let directory = directory.display();
    if let fjall::Error::Io(error) | fjall::Error::Storage(fjall::LsmError::Io(error)) = error {
        return StoreError::Unavailable(format!("cannot open {directory}: {error}"));
    }
    StoreError::Corrupt(format!("cannot open {directory}: {error}"))
}

/// `Unavailable` if a later read may succeed, `Corrupt` if what is stored is damaged.
fn unreadable(error: &fjall::Error) -> StoreError {
    use fjall::Error::{Io, Poisoned, Storage};
    if matches!(error, Io(_) | Storage(fjall::LsmError::Io(_)) | Poisoned) {
        return StoreError::Unavailable(format!("cannot read: {error}"));
    }
    StoreError::Corrupt(format!("cannot read: {error}"))
}
