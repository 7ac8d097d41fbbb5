//! Who may know whom: crates, the services of the server, and the single homes of CQL text and of gRPC statuses.

use super::{RustFile, Violation, find_word, line_of};

/// A folder of code, and the names it may not use. The arrows are in ARCHITECTURE.md.
const FORBIDDEN: [(&str, &[&str]); 8] = [
    ("proto/src/", &["workflow", "persistence", "persistence_cql", "server", "loadtest"]),
    (
        "workflow/src/",
        &[
            "persistence",
            "persistence_cql",
            "server",
            "loadtest",
            "tonic",
            "tokio",
            "tracing",
            "rand",
            "SystemTime",
            "Instant",
        ],
    ),
    ("persistence/src/", &["persistence_cql", "server", "loadtest", "tonic", "scylla"]),
    ("persistence-cql/src/", &["server", "loadtest", "tonic", "fjall"]),
    ("server/cluster/src/", &["server", "scheduler", "loadtest", "scylla", "fjall"]),
    (
        "server/scheduler/src/",
        &["server", "loadtest", "tonic", "tokio", "tracing", "scylla", "fjall", "SystemTime", "Instant"],
    ),
    ("server/src/", &["loadtest", "scylla", "fjall"]),
    ("loadtest/src/", &["workflow", "persistence", "persistence_cql", "server", "scylla", "fjall"]),
];

/// They meet in `crate::peers`; `node.rs` builds them.
const SERVICES: [&str; 5] = ["frontend", "history", "matching", "worker", "visibility"];

const CQL_HOME: &str = "persistence-cql/src/statements";
/// Tests of the engine go behind its back on purpose, and tidy itself names what it looks for.
const CQL_GUESTS: [&str; 2] = ["persistence-cql/tests/", "xtask/"];
const STATUS_HOME: &str = "server/cluster/src/errors.rs";

pub(super) fn check(files: &[RustFile]) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in files {
        found.extend(arrows(file));
        found.extend(services(file));
        found.extend(cql(file));
        found.extend(statuses(file));
    }
    found
}

fn arrows(file: &RustFile) -> Vec<Violation> {
    let code = &file.source.code;
    let rules = FORBIDDEN.iter().filter(|(folder, _)| file.path.starts_with(folder));
    let names = rules.flat_map(|(folder, names)| names.iter().map(move |name| (folder, name)));
    let uses = names.flat_map(|(folder, name)| uses_of(code, name).map(move |at| (folder, name, at)));
    let tell = |(folder, name, at): (&&str, &&str, usize)| {
        Violation::new(&file.path, line_of(code, at), format!("{folder} may not know {name}"))
    };
    uses.map(tell).collect()
}

/// Where a crate or a type of this name is used: as the first part of a path, or as the name of a type.
fn uses_of<'a>(code: &'a str, name: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_type = name.starts_with(|c: char| c.is_uppercase());
    find_word(code, name).filter(move |at| {
        let is_first = !code[..*at].trim_end().ends_with("::");
        let is_path = code[at + name.len()..].trim_start().starts_with("::");
        is_type || (is_first && is_path)
    })
}

fn services(file: &RustFile) -> Vec<Violation> {
    let Some(inside) = file.path.strip_prefix("server/src/") else { return Vec::new() };
    let Some(own) = SERVICES.iter().find(|service| inside.split(['/', '.']).next() == Some(service)) else {
        return Vec::new();
    };
    let code = &file.source.code;
    let mut found = Vec::new();
    for at in find_word(code, "crate") {
        let Some(path) = code[at + "crate".len()..].strip_prefix("::") else { continue };
        for other in first_names(path).into_iter().filter(|name| SERVICES.contains(name) && name != own) {
            let message = format!("{own} may not know {other}: services meet in crate::peers");
            found.push(Violation::new(&file.path, line_of(code, at), message));
        }
    }
    found
}

/// The names that follow `crate::`, one or a group.
fn first_names(path: &str) -> Vec<&str> {
    fn name(text: &str) -> &str {
        let text = text.trim_start();
        &text[..text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len())]
    }
    let Some(group) = path.strip_prefix('{') else { return vec![name(path)] };
    let mut depth = 0;
    let mut names = vec![name(group)];
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => names.push(name(&group[at + 1..])),
            _ => {}
        }
    }
    names
}

fn cql(file: &RustFile) -> Vec<Violation> {
    let is_at_home = file.path.starts_with(CQL_HOME) || CQL_GUESTS.iter().any(|guest| file.path.starts_with(guest));
    if is_at_home {
        return Vec::new();
    }
    let literals = file.source.strings.iter().filter(|literal| is_cql(&literal.text));
    let message = format!("CQL text belongs into {CQL_HOME}.rs");
    literals.map(|literal| Violation::new(&file.path, literal.line, message.clone())).collect()
}

fn is_cql(text: &str) -> bool {
    let follows = |first: &str, second: &str| {
        text.find(first).is_some_and(|at| second.is_empty() || text[at + first.len()..].contains(second))
    };
    follows("SELECT ", " FROM ")
        || follows("INSERT INTO ", "")
        || follows("DELETE FROM ", "")
        || follows("UPDATE ", " SET ")
        || follows("BEGIN ", "BATCH")
}

/// Constructors of `tonic::Status` are in lower case, as variants of our own statuses are not.
fn statuses(file: &RustFile) -> Vec<Violation> {
    if !file.path.starts_with("server/")
        || file.path.starts_with("server/tests/")
        || file.path == STATUS_HOME
        || file.path.ends_with("tests.rs")
    {
        return Vec::new();
    }
    let code = &file.source.code;
    let is_call = |at: &usize| {
        let after = code[at + "Status".len()..].strip_prefix("::");
        after.is_some_and(|name| name.starts_with(|c: char| c.is_lowercase()))
    };
    let message = format!("only {STATUS_HOME} makes a Status");
    let calls = find_word(code, "Status").filter(is_call);
    calls.map(|at| Violation::new(&file.path, line_of(code, at), message.clone())).collect()
}
