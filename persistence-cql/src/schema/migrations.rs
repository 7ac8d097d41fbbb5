//! The numbered schema files, embedded in the binary.

/// One file of the schema.
pub(super) struct Migration {
    pub(super) version: i32,
    pub(super) name: &'static str,
    pub(super) text: &'static str,
}

macro_rules! migration {
    ($version:literal, $name:literal) => {
        Migration { version: $version, name: $name, text: include_str!(concat!("../../../schema/cql/", $name, ".cql")) }
    };
}

/// The table that holds the lock, created before anything is locked.
pub(super) static BOOKKEEPING: Migration = migration!(0, "0000_schema_version");

/// In order and without gaps. A new file is added here and nowhere else; a released one is never changed.
pub(super) static MIGRATIONS: [Migration; 4] = [
    migration!(1, "0001_tables"),
    migration!(2, "0002_visibility"),
    migration!(3, "0003_task_queue_names"),
    migration!(4, "0004_size_tiered"),
];

/// The statements of a file, without comments. No literal in a file has a semicolon or two dashes.
pub(super) fn split(text: &str) -> impl Iterator<Item = String> + '_ {
    let code: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("--")).collect();
    let statements: Vec<String> = code.join("\n").split(';').map(|statement| statement.trim().to_owned()).collect();
    statements.into_iter().filter(|statement| !statement.is_empty())
}
