//! The files: one fjall keyspace with all rows, read through views and changed by whole sets of changes.
//!
//! fjall's batch commit appends to the journal, syncs it, puts the entries into the memtable, and only then moves the
//! number that new snapshots start from. So a reader that goes through a snapshot, as every `View` does, sees all of a
//! commit or nothing of it, and nothing that is not durable yet. (A keyspace's own `get` and `range` take no snapshot
//! and would see entries as they arrive.)

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable, Snapshot};

use super::keys::{self, Span};
use super::{Durability, Options};
use crate::error::StoreError;

/// The number of the format of keys and cells. A directory with another number is left alone.
const FORMAT: u32 = 1;

/// One memtable is filled and up to four wait to be flushed: 40 MiB when writes outrun the disk, nothing when idle.
const MEMTABLE_BYTES: u64 = 8 << 20;

/// The least that fjall takes. A journal goes once its rows are in tables, which a memtable this small ensures.
const JOURNAL_BYTES: u64 = 64 << 20;

/// One flushes and compacts. With two, fjall's first worker spins while the second compacts.
const WORKERS: usize = 1;

pub(super) struct Disk {
    database: Database,
    rows: Keyspace,
    persist: PersistMode,
    /// Spans whose rows are deleted but not all removed yet: no view shows them.
    hidden: RwLock<Arc<[Span]>>,
}

/// All that was committed at one moment.
pub(super) struct View {
    snapshot: Snapshot,
    rows: Keyspace,
    hidden: Arc<[Span]>,
}

/// What a key becomes; `None` removes it.
pub(super) type Changes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// A commit that failed.
#[derive(Debug)]
pub(super) enum CommitError {
    /// It was turned away before the journal was touched.
    NotApplied(String),
    /// The journal may hold it: whether it counts is decided when the directory is opened again.
    Unknown(String),
}

impl Disk {
    pub(super) fn open(directory: &Path, options: Options) -> Result<Self, StoreError> {
        let open = || -> fjall::Result<(Database, Keyspace)> {
            let database = Database::builder(directory)
                .cache_size(options.cache_bytes)
                .max_journaling_size(JOURNAL_BYTES)
                .worker_threads(WORKERS)
                // Each commit says itself how far it must get.
                .manual_journal_persist(true)
                .open()?;
            let rows =
                database.keyspace("rows", || KeyspaceCreateOptions::default().max_memtable_size(MEMTABLE_BYTES))?;
            Ok((database, rows))
        };
        let (database, rows) = open().map_err(|error| explain_open(directory, &error))?;
        let persist = match options.durability {
            Durability::Fsync => PersistMode::SyncData,
            Durability::None => PersistMode::Buffer,
        };
        let disk = Self { database, rows, persist, hidden: RwLock::new(Arc::new([])) };
        disk.check_format(directory)?;
        Ok(disk)
    }

    pub(super) fn view(&self) -> View {
        // Taken together: `hide` changes what is hidden and what is committed while no view is being opened.
        let hidden = self.hidden.read().unwrap_or_else(PoisonError::into_inner);
        View { snapshot: self.database.snapshot(), rows: self.rows.clone(), hidden: Arc::clone(&hidden) }
    }

    /// The keys of a span that no view shows any more.
    pub(super) fn hidden_keys(&self, span: &Span) -> impl Iterator<Item = Result<Vec<u8>, StoreError>> + use<> {
        let entries = self.database.snapshot().range(&self.rows, span.from.as_slice()..span.to.as_slice());
        entries.map(|entry| entry.key().map(|key| key.to_vec()).map_err(|error| unreadable(&error)))
    }

    /// Makes all of the changes durable, then visible, at once.
    pub(super) fn commit(&self, changes: Changes) -> Result<(), CommitError> {
        self.write(changes, self.persist)
    }

    /// Commits, and from the same moment shows no row of these spans and of no others. Readers wait for it meanwhile,
    /// which only the rare delete of a very large range asks of them.
    pub(super) fn commit_hiding(&self, changes: Changes, spans: Arc<[Span]>) -> Result<(), CommitError> {
        let mut hidden = self.hidden.write().unwrap_or_else(PoisonError::into_inner);
        self.commit(changes)?;
        *hidden = spans;
        Ok(())
    }

    /// Commits what need not be durable by itself: the next commit that is makes it so too, for there is one journal, and it
    /// is synced before another one is begun.
    pub(super) fn commit_unsynced(&self, changes: Changes) -> Result<(), CommitError> {
        self.write(changes, PersistMode::Buffer)
    }

    /// Makes everything durable that was committed, whichever way.
    pub(super) fn sync(&self) -> Result<(), CommitError> {
        self.database.persist(PersistMode::SyncAll).map_err(|error| CommitError::Unknown(error.to_string()))
    }

    fn write(&self, changes: Changes, persist: PersistMode) -> Result<(), CommitError> {
        let mut batch = self.database.batch().durability(Some(persist));
        for (key, value) in changes {
            match value {
                Some(value) => batch.insert(&self.rows, key, value),
                None => batch.remove(&self.rows, key),
            }
        }
        batch.commit().map_err(|error| {
            // It poisons itself when a write, a sync or the background work fails, and checks that before it writes.
            if let fjall::Error::Poisoned = error {
                CommitError::NotApplied(error.to_string())
            } else {
                CommitError::Unknown(error.to_string())
            }
        })
    }

    fn check_format(&self, directory: &Path) -> Result<(), StoreError> {
        let Some(found) = self.view().get(keys::FORMAT)? else {
            let changes = Changes::from([(keys::FORMAT.to_vec(), Some(FORMAT.to_be_bytes().to_vec()))]);
            return self.commit(changes).map_err(|error| StoreError::Unavailable(error.to_string()));
        };
        if found == FORMAT.to_be_bytes() {
            return Ok(());
        }
        let directory = directory.display();
        Err(StoreError::Corrupt(format!("{directory} has format {found:?}, this version reads format {FORMAT}")))
    }
}

impl View {
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<fjall::Slice>, StoreError> {
        if self.hides(key) {
            return Ok(None);
        }
        self.snapshot.get(&self.rows, key).map_err(|error| unreadable(&error))
    }

    /// The entries of a span, from either end.
    pub(super) fn range(&self, span: &Span) -> impl DoubleEndedIterator<Item = Result<fjall::KvPair, StoreError>> {
        // fjall's trees are not asked for an empty range: what they do then is nowhere said.
        let entries =
            (!span.is_empty()).then(|| self.snapshot.range(&self.rows, span.from.as_slice()..span.to.as_slice()));
        entries
            .into_iter()
            .flatten()
            .map(|entry| entry.into_inner().map_err(|error| unreadable(&error)))
            .filter(|entry| entry.as_ref().map_or(true, |(key, _)| !self.hides(key)))
    }

    fn hides(&self, key: &[u8]) -> bool {
        self.hidden.iter().any(|span| span.contains(key))
    }
}

impl std::fmt::Display for CommitError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotApplied(reason) | Self::Unknown(reason) => formatter.write_str(reason),
        }
    }
}

fn explain_open(directory: &Path, error: &fjall::Error) -> StoreError {
    let directory = directory.display();
    if let fjall::Error::Locked = error {
        let advice = "stop the other process or choose another directory";
        return StoreError::Unavailable(format!("{directory} is in use by another process: {advice}"));
    }
    if let fjall::Error::Io(error) = error {
        return StoreError::Unavailable(format!("cannot open {directory}: {error}"));
    }
    StoreError::Corrupt(format!("cannot open {directory}: {error}"))
}

fn unreadable(error: &fjall::Error) -> StoreError {
    StoreError::Unavailable(format!("cannot read: {error}"))
}
