//! Reopens a store that failed: a full disk or a lack of file descriptors passes, and must not require a restart.
//!
//! fjall refuses writes after one that failed, because the content of the file is unknown then. So the database is
//! dropped, and the directory is checked and opened as after a crash, which settles writes of unknown outcome.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use super::disk::{Disk, plain_reason};
use super::{Options, sweep};
use crate::error::StoreError;

/// Free space required to reopen the store: one memtable, so that its first flush does not fail again.
const ROOM_BYTES: usize = 8 << 20;
/// Files that a flush and a compaction have open at once.
const ROOM_FILES: usize = 8;
/// Bytes per write of the probe.
const ROOM_PIECE: usize = 256 << 10;
const ROOM_FILE: &str = "room-probe";
/// First backoff between attempts; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// Longest backoff. Small, because a store may stay closed this long after the failure has passed.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Poll interval of all waits.
const GLANCE: Duration = Duration::from_millis(5);

/// A reopen in progress, on its own thread: a disk that hangs must not block callers.
pub(super) struct Reopening {
    pub(super) progress: Receiver<Attempt>,
    thread: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

pub(super) enum Attempt {
    Opened(Disk),
    /// The reason, in words for clients.
    Failed(&'static str),
}

impl Reopening {
    /// Takes the failed disk. Readers that still have a view of it finish first.
    pub(super) fn start(failed: Arc<Disk>, directory: PathBuf, options: Options) -> io::Result<Self> {
        let (report, progress) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let is_stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("embedded-reopen".into()).spawn(move || {
            let mut pause = FIRST_PAUSE;
            let mut said = None;
            close(failed, &directory, &is_stopped);
            while !is_stopped.load(Ordering::Relaxed) {
                let attempt = match attempt(&directory, options) {
                    Ok(disk) => Attempt::Opened(disk),
                    Err(Refusal { reason, error }) => {
                        if said.replace(reason) != Some(reason) {
                            tracing::error!(%error, "cannot reopen the embedded store; retrying every second");
                        }
                        Attempt::Failed(reason)
                    }
                };
                let is_opened = matches!(attempt, Attempt::Opened(_));
                if report.send(attempt).is_err() || is_opened {
                    return;
                }
                rest(pause, &is_stopped);
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        })?;
        Ok(Self { progress, thread: Some(thread), stop })
    }
}

impl Drop for Reopening {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Refusal {
    reason: &'static str,
    error: String,
}

fn attempt(directory: &Path, options: Options) -> Result<Disk, Refusal> {
    probe_room(directory)
        .map_err(|error| Refusal { reason: plain_reason(&error), error: format!("no room for a flush: {error}") })?;
    let opened = Disk::open(directory, options).map(Arc::new).and_then(|disk| {
        sweep::resume(&disk)?;
        Arc::into_inner(disk).ok_or_else(|| StoreError::Unavailable("a view is still open".into()))
    });
    opened.map_err(|error| Refusal { reason: "its files cannot be opened", error: error.to_string() })
}

/// Without this a store on a full disk would reopen and fail on its next write, in a loop.
fn probe_room(directory: &Path) -> io::Result<()> {
    let name = |number: usize| directory.join(format!("{ROOM_FILE}-{number}"));
    let probed = (0..ROOM_FILES).try_fold(Vec::new(), |mut files, number| {
        files.push(File::create(name(number))?);
        Ok(files)
    });
    let probed = probed.and_then(|mut files: Vec<File>| {
        let Some(file) = files.first_mut() else { return Ok(()) };
        let piece = vec![0xff; ROOM_PIECE];
        (0..ROOM_BYTES / ROOM_PIECE).try_for_each(|_| file.write_all(&piece))?;
        file.sync_data()
    });
    for number in 0..ROOM_FILES {
        // The file may not have been created.
        let _ = std::fs::remove_file(name(number));
    }
    probed
}

/// Returns when the failed database is fully dropped. Its journal flushes its buffer when dropped, so the file must not
/// be opened before.
fn close(failed: Arc<Disk>, directory: &Path, is_stopped: &AtomicBool) {
    let left: Weak<Disk> = Arc::downgrade(&failed);
    drop(failed);
    while left.strong_count() > 0 && !is_stopped.load(Ordering::Relaxed) {
        std::thread::sleep(GLANCE);
    }
    while has_journal_open(directory) && !is_stopped.load(Ordering::Relaxed) {
        std::thread::sleep(GLANCE);
    }
}

/// Whether this process has a journal of the directory open. fjall's worker releases its part shortly after the
/// database is dropped, and only the system's list of descriptors shows when.
fn has_journal_open(directory: &Path) -> bool {
    let Ok(directory) = directory.canonicalize() else { return false };
    match std::fs::read_dir("/proc/self/fd") {
        Ok(descriptors) => descriptors
            .filter_map(|descriptor| std::fs::read_link(descriptor.ok()?.path()).ok())
            .any(|file| file.parent() == Some(&directory) && file.extension().is_some_and(|ending| ending == "jnl")),
        // `NotFound`: a system without such a list. Any other error is a lack of descriptors: poll again.
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

fn rest(pause: Duration, is_stopped: &AtomicBool) {
    let mut left = pause;
    while left > Duration::ZERO && !is_stopped.load(Ordering::Relaxed) {
        std::thread::sleep(GLANCE.min(left));
        left = left.saturating_sub(GLANCE);
    }
}
