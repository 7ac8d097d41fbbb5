//! Scans fjall's journal files: where intact batches end, and what follows.
//!
//! A batch is `start · item… · end`; the end carries a checksum of the items. fjall silently drops everything from the
//! first byte that it cannot parse, also in the middle of a file, and refuses to open on a wrong checksum, also in a
//! tail that was never synced. So every journal is checked here before fjall opens it.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use thiserror::Error;
use xxhash_rust::xxh3::Xxh3;

use super::keys;

const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const CLEAR: u8 = 4;
/// Last bytes of an end marker.
const TRAILER: [u8; 4] = [b'F', b'J', b'L', 3];
/// Sizes of the markers without their tags; an item is followed by its key and value.
const START_BYTES: usize = 12;
const ITEM_BYTES: usize = 20;
const END_BYTES: usize = 12;
const CLEAR_BYTES: usize = 8;
/// The numbers of fjall's kinds of values: a value, a tombstone, a weak tombstone.
const VALUE_KINDS: [u8; 3] = [0, 1, 2];
/// Our build has no compression.
const UNCOMPRESSED: u8 = 0;
const EXTENSION: &str = "jnl";

/// The number of a batch in fjall's own sequence, which grows with every batch.
pub(super) type SeqNo = u64;

/// A journal file. They are written one after the other, in the order of their numbers; only the last one grows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Journal {
    pub(super) number: u64,
    pub(super) path: PathBuf,
}

/// Links each commit to those before it; written in its own batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Note {
    /// The next free number just before the batch was written: fjall's number of it is this, or a little higher,
    /// because fjall's worker takes numbers too. Earlier batches have lower ones. Identifies the batch, as fjall's
    /// number is not covered by a checksum.
    pub(super) number: SeqNo,
    /// The number of the batch before this one.
    pub(super) after: SeqNo,
    /// The number of the last batch that was synced when this one was written.
    pub(super) synced: SeqNo,
}

const NOTE_BYTES: usize = 24;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Batch {
    pub(super) seqno: SeqNo,
    /// Absent in batches of versions without notes.
    pub(super) note: Option<Note>,
}

/// Batches in write order, of one or more journals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Chain {
    pub(super) n_batches: u64,
    pub(super) first: Option<Batch>,
    /// Number of the last batch.
    pub(super) last: SeqNo,
    /// fjall's number of the last batch.
    seqno: SeqNo,
    /// The highest number that a note reports as synced.
    pub(super) synced: SeqNo,
    pub(super) gap: Option<Gap>,
}

/// A batch whose note names a predecessor that is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) last: SeqNo,
    pub(super) expected: SeqNo,
}

/// Result of a journal scan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Scan {
    pub(super) n_batches: u64,
    /// Where the last intact batch ends.
    pub(super) end: u64,
    /// Bytes after `end` that are not the unwritten rest of the file.
    pub(super) damage: Option<Damage>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Damage {
    pub(super) flaw: Flaw,
    /// From the end of the last intact batch to the last byte that is not zero.
    pub(super) bytes: u64,
    /// Intact batches after the damage.
    pub(super) later: Chain,
}

/// Why bytes are no batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(super) enum Flaw {
    #[error("a batch is cut short")]
    Short,
    #[error("a batch holds something that is no entry")]
    NoEntry,
    #[error("a batch has a wrong checksum")]
    Checksum,
    #[error("a batch has a wrong number of entries")]
    Count,
    #[error("a batch is out of order")]
    Order,
}

impl Note {
    pub(super) fn encode(self) -> [u8; NOTE_BYTES] {
        let mut bytes = [0; NOTE_BYTES];
        for (place, number) in bytes.chunks_exact_mut(8).zip([self.number, self.after, self.synced]) {
            place.copy_from_slice(&number.to_be_bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; NOTE_BYTES] = bytes.try_into().ok()?;
        let number = |from: usize| u64::from_be_bytes(field(bytes, from));
        Some(Self { number: number(0), after: number(8), synced: number(16) })
    }
}

impl Batch {
    fn number(&self) -> SeqNo {
        self.note.map_or(self.seqno, |note| note.number)
    }
}

impl Chain {
    fn push(&mut self, batch: Batch) {
        if let Some(note) = batch.note {
            if self.n_batches > 0 && note.after > self.last && self.gap.is_none() {
                self.gap = Some(Gap { last: self.last, expected: note.after });
            }
            self.synced = self.synced.max(note.synced);
        }
        self.n_batches += 1;
        self.first = self.first.or(Some(batch));
        self.last = batch.number();
        self.seqno = batch.seqno;
    }

    /// Whether the batch can follow; if not, it or the one before it is damaged.
    fn accepts(&self, batch: &Batch) -> bool {
        self.n_batches == 0 || (batch.seqno >= batch.number() && batch.number() > self.seqno)
    }
}

impl Journal {
    /// All journals of a directory, in the order of their numbers.
    pub(super) fn list(directory: &Path) -> io::Result<Vec<Self>> {
        let mut journals = Vec::new();
        for entry in std::fs::read_dir(directory)? {
            let path = entry?.path();
            let number = path.file_stem().and_then(|name| name.to_str()).and_then(|name| name.parse().ok());
            if path.extension().is_some_and(|extension| extension == EXTENSION)
                && let Some(number) = number
            {
                journals.push(Self { number, path });
            }
        }
        journals.sort();
        Ok(journals)
    }

    /// Appends the intact batches to the chain.
    pub(super) fn scan(&self, chain: &mut Chain) -> io::Result<Scan> {
        let file = File::open(&self.path)?;
        let length = file.metadata()?.len();
        let mut source = Source { reader: BufReader::with_capacity(1 << 16, file), left: length, buffer: Vec::new() };
        let mut scan = Scan::default();
        loop {
            match source.next_batch() {
                Ok(batch) if !chain.accepts(&batch) => {
                    scan.damage = self.behind(scan.end, Flaw::Order)?;
                    return Ok(scan);
                }
                Ok(batch) => {
                    chain.push(batch);
                    scan.n_batches += 1;
                    scan.end = length - source.left;
                }
                Err(Stop::Failed(error)) => return Err(error),
                Err(Stop::Flawed(flaw)) => {
                    scan.damage = self.behind(scan.end, flaw)?;
                    return Ok(scan);
                }
            }
        }
    }

    /// Truncates the file, durably.
    pub(super) fn cut(&self, end: u64) -> io::Result<()> {
        let file = File::options().write(true).open(&self.path)?;
        file.set_len(end)?;
        file.sync_all()
    }

    /// Damage after the last intact batch. A new journal is a file of zeros, so zeros alone are its unwritten rest.
    fn behind(&self, end: u64, flaw: Flaw) -> io::Result<Option<Damage>> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(end))?;
        let Some(bytes) = without_zeros(file)? else { return Ok(None) };
        Ok(Some(Damage { flaw, bytes: bytes.len() as u64, later: intact(&bytes) }))
    }
}

/// The rest of a file up to its last byte that is not zero; `None` if there is none.
fn without_zeros(file: File) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let mut n_zeros = 0;
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let mut piece = vec![0; 1 << 16];
    loop {
        let n_read = reader.read(&mut piece)?;
        if n_read == 0 {
            return Ok((!bytes.is_empty()).then_some(bytes));
        }
        let used = piece[..n_read].iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        if used > 0 {
            // Zeros are kept only once something follows: a fresh journal is 64 MiB of zeros.
            bytes.resize(bytes.len() + n_zeros, 0);
            bytes.extend_from_slice(&piece[..used]);
            n_zeros = 0;
        }
        n_zeros += n_read - used;
    }
}

/// All intact batches, at any offset.
fn intact(bytes: &[u8]) -> Chain {
    let mut batches = Chain::default();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        if may_begin(rest) {
            let mut source = Source { reader: rest, left: rest.len() as u64, buffer: Vec::new() };
            if let Ok(batch) = source.next_batch() {
                batches.push(batch);
                at = bytes.len() - source.reader.len();
                continue;
            }
        }
        at += 1;
    }
    batches
}

/// Cheap check that rejects nearly every offset at which no batch begins.
fn may_begin(bytes: &[u8]) -> bool {
    let follows = |place: usize| bytes.get(1 + START_BYTES + place).copied();
    let is_item = follows(0) == Some(ITEM)
        && follows(1).is_some_and(|kind| VALUE_KINDS.contains(&kind))
        && follows(2) == Some(UNCOMPRESSED);
    bytes.first() == Some(&START) && (is_item || follows(0) == Some(CLEAR))
}

enum Stop {
    Failed(io::Error),
    Flawed(Flaw),
}

/// A reader of a journal, and the number of bytes left.
struct Source<R> {
    reader: R,
    left: u64,
    buffer: Vec<u8>,
}

impl<R: Read> Source<R> {
    fn next_batch(&mut self) -> Result<Batch, Stop> {
        if self.array::<1>()? != [START] {
            return Err(Stop::Flawed(Flaw::NoEntry));
        }
        let start = self.array::<START_BYTES>()?;
        let n_items = u32::from_le_bytes(field(&start, 0));
        let seqno = u64::from_le_bytes(field(&start, 4));
        let mut checksum = Xxh3::new();
        let mut note = None;
        for _ in 0..n_items {
            match self.array::<1>()?[0] {
                ITEM => note = self.item(&mut checksum)?.or(note),
                CLEAR => {
                    checksum.update(&[CLEAR]);
                    checksum.update(&self.array::<CLEAR_BYTES>()?);
                }
                START | END => return Err(Stop::Flawed(Flaw::Count)),
                _ => return Err(Stop::Flawed(Flaw::NoEntry)),
            }
        }
        if self.array::<1>()? != [END] {
            return Err(Stop::Flawed(Flaw::Count));
        }
        let end = self.array::<END_BYTES>()?;
        if end[8..] != TRAILER {
            return Err(Stop::Flawed(Flaw::NoEntry));
        }
        if u64::from_le_bytes(field(&end, 0)) != checksum.digest() {
            return Err(Stop::Flawed(Flaw::Checksum));
        }
        Ok(Batch { seqno, note })
    }

    fn item(&mut self, checksum: &mut Xxh3) -> Result<Option<Note>, Stop> {
        let item = self.array::<ITEM_BYTES>()?;
        let key_bytes = usize::from(u16::from_le_bytes(field(&item, 10)));
        let (value_bytes, stored_bytes) = (u32::from_le_bytes(field(&item, 12)), u32::from_le_bytes(field(&item, 16)));
        if !VALUE_KINDS.contains(&item[0]) || item[1] != UNCOMPRESSED || value_bytes != stored_bytes {
            return Err(Stop::Flawed(Flaw::NoEntry));
        }
        let n_bytes = key_bytes + usize::try_from(stored_bytes).unwrap_or(usize::MAX);
        // Checked before memory is allocated: a damaged length may be anything up to 4 GiB.
        if n_bytes as u64 > self.left {
            return Err(Stop::Flawed(Flaw::Short));
        }
        self.buffer.resize(n_bytes, 0);
        self.left -= n_bytes as u64;
        self.reader.read_exact(&mut self.buffer).map_err(stop)?;
        checksum.update(&[ITEM]);
        checksum.update(&item);
        checksum.update(&self.buffer);
        let (key, value) = self.buffer.split_at(key_bytes);
        Ok((key == keys::JOURNAL).then(|| Note::decode(value)).flatten())
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        let mut bytes = [0; N];
        if N as u64 > self.left {
            return Err(Stop::Flawed(Flaw::Short));
        }
        self.left -= N as u64;
        self.reader.read_exact(&mut bytes).map_err(stop)?;
        Ok(bytes)
    }
}

fn stop(error: io::Error) -> Stop {
    if error.kind() == io::ErrorKind::UnexpectedEof { Stop::Flawed(Flaw::Short) } else { Stop::Failed(error) }
}

/// The `N` bytes from an offset.
fn field<const N: usize>(bytes: &[u8], from: usize) -> [u8; N] {
    let mut field = [0; N];
    field.copy_from_slice(&bytes[from..from + N]);
    field
}

#[cfg(test)]
mod tests;
