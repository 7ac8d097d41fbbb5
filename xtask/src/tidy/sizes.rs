//! Lines of files and of functions. What is too long already is on a list that may only shrink.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};

use super::{RustFile, Violation, line_of};

const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;
const EXCEPTIONS: &str = "xtask/tidy-exceptions.txt";

/// What is longer than it should be: lines by name. The name is a path, or a path and a function.
type Exceptions = BTreeMap<String, usize>;

pub(super) fn check(root: &Path, files: &[RustFile]) -> Result<Vec<Violation>> {
    let list = std::fs::read_to_string(root.join(EXCEPTIONS)).with_context(|| format!("cannot read {EXCEPTIONS}"))?;
    let mut exceptions = parse_exceptions(&list)?;
    let mut found = Vec::new();
    for file in files {
        let lines = file.text.lines().count();
        found.extend(judge(&file.path, 1, &file.path, Length { lines, allowed: FILE_LINES_MAX }, &mut exceptions));
        for function in functions(&file.source.code) {
            let name = format!("{}::{}", file.path, function.name);
            let length = Length { lines: function.lines, allowed: FUNCTION_LINES_MAX };
            found.extend(judge(&file.path, function.line, &name, length, &mut exceptions));
        }
    }
    let left_over = exceptions.into_keys().map(|name| format!("{name} is short enough or gone: take it off the list"));
    found.extend(left_over.map(|message| Violation::new(EXCEPTIONS, 1, message)));
    Ok(found)
}

struct Length {
    lines: usize,
    allowed: usize,
}

fn judge(path: &str, line: usize, name: &str, length: Length, exceptions: &mut Exceptions) -> Option<Violation> {
    let Length { lines, allowed } = length;
    if lines <= allowed {
        return None;
    }
    match exceptions.remove(name) {
        None => Some(Violation::new(path, line, format!("{name} has {lines} lines, {allowed} are allowed"))),
        Some(listed) if lines > listed => {
            Some(Violation::new(path, line, format!("{name} has {lines} lines, and must not grow beyond {listed}")))
        }
        Some(listed) if lines < listed => {
            Some(Violation::new(EXCEPTIONS, 1, format!("{name} has shrunk to {lines} lines: lower it from {listed}")))
        }
        Some(_) => None,
    }
}

/// Each line: the name, the lines it has, and why that is right for now.
fn parse_exceptions(list: &str) -> Result<Exceptions> {
    let lines = list.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let mut words = line.split_whitespace();
            let name = words.next().with_context(|| format!("{EXCEPTIONS}: no name in {line:?}"))?;
            let lines = words.next().and_then(|word| word.parse().ok());
            let lines = lines.with_context(|| format!("{EXCEPTIONS}: no number of lines in {line:?}"))?;
            words.next().with_context(|| format!("{EXCEPTIONS}: no reason in {line:?}"))?;
            Ok((name.to_owned(), lines))
        })
        .collect()
}

pub(super) struct Function {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) lines: usize,
}

/// Functions with a body, from the line of `fn` to that of the closing brace.
pub(super) fn functions(code: &str) -> Vec<Function> {
    let mut functions = Vec::new();
    for at in super::find_word(code, "fn") {
        let name: String =
            code[at + 2..].trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        // `fn(i32)` is a type and has no name.
        let end = if name.is_empty() { None } else { end_of_body(code, at) };
        if let Some(end) = end {
            let line = line_of(code, at);
            functions.push(Function { name, line, lines: line_of(code, end) - line + 1 });
        }
    }
    functions
}

/// Where the body that begins after `at` ends; `None` for a declaration.
fn end_of_body(code: &str, at: usize) -> Option<usize> {
    let (mut braces, mut brackets) = (0_usize, 0_usize);
    for (offset, c) in code[at..].char_indices() {
        match c {
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets = brackets.saturating_sub(1),
            '{' => braces += 1,
            '}' if braces == 1 => return Some(at + offset),
            '}' => braces = braces.saturating_sub(1),
            // Within brackets it belongs to an array's type.
            ';' if braces == 0 && brackets == 0 => return None,
            _ => {}
        }
    }
    None
}
