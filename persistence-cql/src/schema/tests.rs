//! The files of the schema against the tables that are described.

use std::collections::BTreeMap;

use persistence::tables;

use super::*;

/// What a CREATE TABLE says: for each part of the key and of the row, names and kinds in order.
#[derive(Debug, PartialEq, Eq)]
struct Spelled {
    partition: Vec<(String, Kind)>,
    clustering: Vec<(String, Kind)>,
    statics: Vec<(String, Kind)>,
    values: Vec<(String, Kind)>,
}

impl Spelled {
    fn described(table: &Table) -> Self {
        let part = |columns: &[Column]| columns.iter().map(|column| (column.name.to_owned(), column.kind)).collect();
        Self {
            partition: part(table.partition),
            clustering: part(table.clustering),
            statics: part(table.statics),
            values: part(table.values),
        }
    }

    /// The name of the table, and what is spelled of it.
    fn parse(statement: &str) -> (String, Self) {
        let rest = statement.strip_prefix("CREATE TABLE IF NOT EXISTS ").expect("only tables are made");
        let (name, rest) = rest.split_once(" (\n").expect("a table has columns");
        let (columns, _options) = rest.split_once("\n)").expect("the columns end");
        let (columns, key) = columns.split_once("PRIMARY KEY (").expect("a table has a key");
        let (partition, clustering) = parse_key(key.trim_end().strip_suffix(')').expect("the key ends"));

        let mut kinds = BTreeMap::new();
        let (mut statics, mut values) = (Vec::new(), Vec::new());
        for column in columns.split(',').map(str::trim).filter(|column| !column.is_empty()) {
            let words: Vec<&str> = column.split_whitespace().collect();
            let (column, kind) = (words[0].to_owned(), parse_kind(words[1]));
            match words[2..] {
                ["STATIC"] => statics.push((column, kind)),
                [] if partition.contains(&column) || clustering.contains(&column) => drop(kinds.insert(column, kind)),
                [] => values.push((column, kind)),
                _ => panic!("{name}.{column}: {words:?}"),
            }
        }
        let with_kinds = |names: Vec<String>| names.into_iter().map(|name| (name.clone(), kinds[&name])).collect();
        let spelled = Self { partition: with_kinds(partition), clustering: with_kinds(clustering), statics, values };
        (name.to_owned(), spelled)
    }
}

/// `(a, b), c, d` or `a, b, c`.
fn parse_key(key: &str) -> (Vec<String>, Vec<String>) {
    let names = |text: &str| text.split(',').map(|name| name.trim().to_owned()).collect::<Vec<_>>();
    match key.strip_prefix('(') {
        Some(key) => {
            let (partition, clustering) = key.split_once("), ").expect("a composite partition key ends");
            (names(partition), names(clustering))
        }
        None => {
            let (partition, clustering) = key.split_once(", ").expect("rows are ordered by something");
            (names(partition), names(clustering))
        }
    }
}

fn parse_kind(text: &str) -> Kind {
    match text {
        "int" => Kind::Int,
        "bigint" => Kind::Bigint,
        "text" => Kind::Text,
        "uuid" => Kind::Uuid,
        "blob" => Kind::Blob,
        other => panic!("no table has a column of kind {other}"),
    }
}

/// Columns are as they were.
fn sets_options(statement: &str) -> bool {
    statement.starts_with("ALTER TABLE ") && statement.contains(" WITH ")
}

fn spelled(files: &[Migration]) -> BTreeMap<String, Spelled> {
    let tables = files.iter().flat_map(|file| split(file.text)).filter(|statement| !sets_options(statement));
    tables.map(|statement| Spelled::parse(&statement)).collect()
}

fn described(tables: &[&'static Table]) -> BTreeMap<String, Spelled> {
    tables.iter().map(|table| (table.name.to_owned(), Spelled::described(table))).collect()
}

#[test]
fn the_files_spell_the_tables_that_are_described() {
    let (mut spelled, described) = (spelled(&MIGRATIONS), described(&tables::ALL));
    for (name, table) in described {
        assert_eq!(spelled.remove(&name), Some(table), "schema/cql spells {name} otherwise, or not at all");
    }
    assert!(spelled.is_empty(), "schema/cql has tables that nobody describes: {:?}", spelled.keys());
}

#[test]
fn the_bookkeeping_is_spelled_as_it_is_described() {
    assert_eq!(spelled(std::slice::from_ref(&BOOKKEEPING)), described(&[&SCHEMA_VERSION]));
}

#[test]
fn versions_have_no_gaps_and_every_file_is_embedded() {
    for (number, migration) in (1..).zip(&MIGRATIONS) {
        assert_eq!(migration.version, number);
        assert!(migration.name.starts_with(&format!("{number:04}_")), "{} is out of order", migration.name);
    }
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../schema/cql");
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), MIGRATIONS.len() + 1);
}

#[test]
fn statements_are_distinguishable() {
    for statement in [&BOOKKEEPING].into_iter().chain(&MIGRATIONS).flat_map(|file| split(file.text)) {
        let can_be_repeated = statement.contains(" IF NOT EXISTS ") || sets_options(&statement);
        assert!(can_be_repeated, "cannot be repeated: {statement}");
        assert!(!statement.contains("--"), "has a comment within: {statement}");
        assert_eq!(statement.matches('\'').count() % 2, 0, "was cut within a literal: {statement}");
    }
}

#[test]
fn what_is_printed_can_be_run_as_it_is() {
    let config = CqlConfig { replication: Some(crate::config::Replication::Copies(3)), ..CqlConfig::default() };
    let text = print(&config);
    assert!(text.starts_with("CREATE KEYSPACE IF NOT EXISTS everrow "));
    assert!(text.contains("USE everrow;"));
    for table in tables::ALL {
        assert!(text.contains(&format!("CREATE TABLE IF NOT EXISTS {} (", table.name)), "{} is missing", table.name);
    }
}
