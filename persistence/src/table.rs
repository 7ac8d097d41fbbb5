//! Tables: partition, clustering, static and value columns, described once for all engines.

use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;

/// A table of wide rows. Rows of one partition are ordered by their clustering columns, ascending.
#[derive(Debug)]
pub struct Table {
    pub name: &'static str,
    pub partition: &'static [Column],
    pub clustering: &'static [Column],
    /// One value per partition, not per row. May be unset.
    pub statics: &'static [Column],
    /// Every row has all of them.
    pub values: &'static [Column],
    /// Rows change by `engine::Versioned` only.
    pub is_versioned: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    pub kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Int,
    Bigint,
    /// Ordered by its UTF-8 bytes.
    Text,
    /// Ordered by its bytes. CQL agrees among UUIDs of one version; it sorts by version first (nil, 4, 7). Run ids are
    /// of version 7, older ones of version 4: no store may rely on the order between the two.
    Uuid,
    /// Ordered by unsigned bytes.
    Blob,
}

/// The derived order is the clustering order: two values of one column are always of the same variant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    Int(i32),
    Bigint(i64),
    Text(Arc<str>),
    Uuid(Uuid),
    Blob(Bytes),
}

impl Column {
    #[must_use]
    pub const fn new(name: &'static str, kind: Kind) -> Self {
        Self { name, kind }
    }
}

impl Value {
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Int(_) => Kind::Int,
            Self::Bigint(_) => Kind::Bigint,
            Self::Text(_) => Kind::Text,
            Self::Uuid(_) => Kind::Uuid,
            Self::Blob(_) => Kind::Blob,
        }
    }

    /// Approximate size on the wire in bytes, to bound a batch.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Self::Int(_) => 4,
            Self::Bigint(_) => 8,
            Self::Text(text) => text.len(),
            Self::Uuid(_) => 16,
            Self::Blob(blob) => blob.len(),
        }
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Self {
        Self::Int(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Bigint(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.into())
    }
}

impl From<Arc<str>> for Value {
    fn from(value: Arc<str>) -> Self {
        Self::Text(value)
    }
}

impl From<Uuid> for Value {
    fn from(value: Uuid) -> Self {
        Self::Uuid(value)
    }
}

impl From<Bytes> for Value {
    fn from(value: Bytes) -> Self {
        Self::Blob(value)
    }
}
