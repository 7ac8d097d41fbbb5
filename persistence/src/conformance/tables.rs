//! The tables of the suite.

use crate::table::{Column, Kind, Table};

const KEY: &[Column] = &[Column::new("partition_id", Kind::Uuid)];
const ONE_NUMBER: &[Column] = &[Column::new("number", Kind::Int)];

/// Ordered by one column of each kind.
pub(super) static BY_INT: Table = ordered_by("conformance_by_int", &[Column::new("k", Kind::Int)]);
pub(super) static BY_BIGINT: Table = ordered_by("conformance_by_bigint", &[Column::new("k", Kind::Bigint)]);
pub(super) static BY_TEXT: Table = ordered_by("conformance_by_text", &[Column::new("k", Kind::Text)]);
pub(super) static BY_UUID: Table = ordered_by("conformance_by_uuid", &[Column::new("k", Kind::Uuid)]);
pub(super) static BY_BLOB: Table = ordered_by("conformance_by_blob", &[Column::new("k", Kind::Blob)]);

/// Like the tables of the stores: a lease and a commit number above rows with a composite key.
pub(super) static COMPOSITE: Table = Table {
    name: "conformance_composite",
    partition: &[Column::new("partition_id", Kind::Uuid), Column::new("name", Kind::Text)],
    clustering: &[Column::new("a", Kind::Int), Column::new("b", Kind::Text), Column::new("c", Kind::Bigint)],
    statics: &[Column::new("range_id", Kind::Bigint), Column::new("owner", Kind::Text)],
    values: &[Column::new("version", Kind::Bigint), Column::new("data", Kind::Blob)],
    is_versioned: false,
};

/// Every kind wherever a value can be.
pub(super) static KINDS: Table = Table {
    name: "conformance_kinds",
    partition: &[
        Column::new("p_uuid", Kind::Uuid),
        Column::new("p_int", Kind::Int),
        Column::new("p_bigint", Kind::Bigint),
        Column::new("p_text", Kind::Text),
        Column::new("p_blob", Kind::Blob),
    ],
    clustering: &[Column::new("k", Kind::Int)],
    statics: &[
        Column::new("s_uuid", Kind::Uuid),
        Column::new("s_int", Kind::Int),
        Column::new("s_bigint", Kind::Bigint),
        Column::new("s_text", Kind::Text),
        Column::new("s_blob", Kind::Blob),
    ],
    values: &[
        Column::new("v_uuid", Kind::Uuid),
        Column::new("v_int", Kind::Int),
        Column::new("v_bigint", Kind::Bigint),
        Column::new("v_text", Kind::Text),
        Column::new("v_blob", Kind::Blob),
    ],
    is_versioned: false,
};

/// Its rows change by versions.
pub(super) static VERSIONED: Table = Table {
    name: "conformance_versioned",
    partition: KEY,
    clustering: &[Column::new("a", Kind::Int), Column::new("b", Kind::Text)],
    statics: &[],
    values: &[Column::new("number", Kind::Int), Column::new("data", Kind::Blob)],
    is_versioned: true,
};

pub(super) static ALL: [&Table; 8] =
    [&BY_INT, &BY_BIGINT, &BY_TEXT, &BY_UUID, &BY_BLOB, &COMPOSITE, &KINDS, &VERSIONED];

const fn ordered_by(name: &'static str, clustering: &'static [Column]) -> Table {
    Table { name, partition: KEY, clustering, statics: &[], values: ONE_NUMBER, is_versioned: false }
}
