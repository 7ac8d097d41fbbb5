//! The store marker: a small file of our own in the data directory with the store id and the last synced batch.
//!
//! It is written after every sync without a sync of its own, so it never claims too much: after a loss of power it may
//! be some seconds old, after the end of the process it is exact.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_64;

use super::journal::SeqNo;

const FILE: &str = "everrow-store";
const MAGIC: [u8; 8] = *b"everrow1";
const CONTENT_BYTES: usize = 8 + 16 + 8 + 8;
/// Far less than a sector, so that it is written whole or not at all.
const BYTES: usize = CONTENT_BYTES + 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Marker {
    pub(super) store_id: Uuid,
    /// A batch with at least this number, and all before it, are on the disk.
    pub(super) synced: SeqNo,
    /// A repair accepted that batches up to this number may be missing.
    pub(super) forgiven: SeqNo,
}

/// Content of the marker file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// A new directory, or one of a version without markers.
    Nothing,
    Damaged,
    Marker(Marker),
}

impl Marker {
    pub(super) fn path(directory: &Path) -> PathBuf {
        directory.join(FILE)
    }

    pub(super) fn read(directory: &Path) -> io::Result<Found> {
        let mut bytes = Vec::new();
        match File::open(Self::path(directory)) {
            Ok(file) => file.take(BYTES as u64 + 1).read_to_end(&mut bytes)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
            Err(error) => return Err(error),
        };
        Ok(Self::decode(&bytes).map_or(Found::Damaged, Found::Marker))
    }

    /// Creates or replaces the file, atomically and durably. The handle is for `update`.
    pub(super) fn create(self, directory: &Path) -> io::Result<File> {
        let unfinished = directory.join(format!("{FILE}.new"));
        let file = File::options().write(true).create(true).truncate(true).open(&unfinished)?;
        self.update(&file)?;
        file.sync_all()?;
        std::fs::rename(&unfinished, Self::path(directory))?;
        File::open(directory)?.sync_all()?;
        Ok(file)
    }

    /// Overwrites the file without a sync.
    pub(super) fn update(self, file: &File) -> io::Result<()> {
        file.write_all_at(&self.encode(), 0)
    }

    fn encode(self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..24].copy_from_slice(self.store_id.as_bytes());
        bytes[24..32].copy_from_slice(&self.synced.to_be_bytes());
        bytes[32..40].copy_from_slice(&self.forgiven.to_be_bytes());
        let checksum = xxh3_64(&bytes[..CONTENT_BYTES]);
        bytes[CONTENT_BYTES..].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; BYTES] = bytes.try_into().ok()?;
        let number = |from: usize| Some(u64::from_be_bytes(bytes[from..from + 8].try_into().ok()?));
        let is_ours = bytes[..8] == MAGIC && number(CONTENT_BYTES)? == xxh3_64(&bytes[..CONTENT_BYTES]);
        let store_id = Uuid::from_slice(&bytes[8..24]).ok()?;
        is_ours.then_some(Self { store_id, synced: number(24)?, forgiven: number(32)? })
    }
}
