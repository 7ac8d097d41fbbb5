//! Lines of files and of functions.

use super::exceptions::{Exceptions, Measured};
use super::{RustFile, Violation, line_of};

const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;

pub(super) fn check(files: &[RustFile], exceptions: &mut Exceptions) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in files {
        let (path, size) = (file.path.as_str(), file.text.lines().count());
        let of_file = Measured { path, line: 1, name: path.to_owned(), size, allowed: FILE_LINES_MAX, unit: "lines" };
        found.extend(exceptions.judge(&of_file));
        for Function { name, line, lines } in functions(&file.source.code) {
            let name = format!("{path}::{name}");
            let measured = Measured { path, line, name, size: lines, allowed: FUNCTION_LINES_MAX, unit: "lines" };
            found.extend(exceptions.judge(&measured));
        }
    }
    found
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
pub(super) fn end_of_body(code: &str, at: usize) -> Option<usize> {
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
