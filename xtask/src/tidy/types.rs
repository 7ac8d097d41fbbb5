//! Fields of structs, and methods of types over all their `impl` blocks: small files must not hide one large object.

use std::collections::BTreeMap;

use super::exceptions::{Exceptions, Measured};
use super::sizes::end_of_body;
use super::{RustFile, Violation, find_word, line_of};

const FIELDS_MAX: usize = 12;
const METHODS_MAX: usize = 25;

pub(super) fn check(files: &[RustFile], exceptions: &mut Exceptions) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut methods: BTreeMap<String, (usize, &str, usize)> = BTreeMap::new();
    for file in files.iter().filter(|file| is_production(&file.path)) {
        let home = home(&file.path);
        for (name, line, size) in fields(&file.source.code) {
            let name = format!("{home}::{name}.fields");
            let measured = Measured { path: &file.path, line, name, size, allowed: FIELDS_MAX, unit: "fields" };
            found.extend(exceptions.judge(&measured));
        }
        for (name, line, size) in inherent_methods(&file.source.code) {
            let of_type = methods.entry(format!("{home}::{name}.methods")).or_insert((0, &file.path, line));
            of_type.0 += size;
        }
    }
    for (name, (size, path, line)) in methods {
        let measured = Measured { path, line, name, size, allowed: METHODS_MAX, unit: "methods" };
        found.extend(exceptions.judge(&measured));
    }
    found
}

fn is_production(path: &str) -> bool {
    let is_test = path.split('/').any(|part| matches!(part, "tests" | "tests.rs" | "conformance"));
    path.contains("src/") && !is_test
}

/// The crate of a file; in the server's own crate, the folder of a service, whose types may share names with another's.
fn home(path: &str) -> &str {
    let end = path.find("src/").map_or(path.len(), |at| at + "src/".len());
    let folder = path[end..].find('/').filter(|_| path.starts_with("server/src/"));
    path[..folder.map_or(end, |at| end + at)].trim_end_matches('/')
}

/// The structs with named fields: name, line, and how many.
pub(super) fn fields(code: &str) -> Vec<(String, usize, usize)> {
    let mut structs = Vec::new();
    for at in find_word(code, "struct") {
        let name = word(&code[at + "struct".len()..]);
        let Some(end) = end_of_body(code, at).filter(|_| !name.is_empty()) else { continue };
        let Some(open) = code[at..end].find('{') else { continue };
        structs.push((name, line_of(code, at), n_fields(&code[at + open + 1..end])));
    }
    structs
}

/// Colons outside of brackets that are not part of a path: one for each field.
fn n_fields(body: &str) -> usize {
    let (mut depth, mut n_fields) = (0_usize, 0);
    let mut rest = body;
    while let Some(c) = rest.chars().next() {
        match c {
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' | '>' => depth = depth.saturating_sub(1),
            ':' if rest.starts_with("::") => {
                rest = &rest[2..];
                continue;
            }
            ':' if depth == 0 => n_fields += 1,
            _ => {}
        }
        rest = &rest[c.len_utf8()..];
    }
    n_fields
}

/// The `impl` blocks of types, not of traits: name, line, and how many functions.
pub(super) fn inherent_methods(code: &str) -> Vec<(String, usize, usize)> {
    let mut blocks = Vec::new();
    for at in find_word(code, "impl") {
        let is_item = code[..at].rsplit('\n').next().is_some_and(|before| before.trim().is_empty());
        let Some(end) = end_of_body(code, at).filter(|_| is_item) else { continue };
        let Some(open) = code[at..end].find('{') else { continue };
        let head = &code[at + "impl".len()..at + open];
        if find_word(head, "for").next().is_some() {
            continue;
        }
        let name = head[generics_end(head)..].trim_start();
        let name = name.split(['<', ' ']).next().unwrap_or_default().rsplit("::").next().unwrap_or_default();
        let n_methods =
            find_word(&code[at + open..end], "fn").filter(|of| !word(&code[at + open + of + 2..]).is_empty());
        blocks.push((word(name), line_of(code, at), n_methods.count()));
    }
    blocks
}

/// Where the parameters that an `impl` declares end.
fn generics_end(head: &str) -> usize {
    let start = head.len() - head.trim_start().len();
    let mut depth = 0;
    for (at, c) in head.char_indices().skip(start) {
        match c {
            '<' => depth += 1,
            // An arrow is no bracket.
            '>' if !head[..at].ends_with('-') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return if c == '>' { at + 1 } else { start };
        }
    }
    start
}

fn word(text: &str) -> String {
    text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}
