//! Rules about words: how a file begins, what a thing may be called, what may not be left behind.

use super::{File, RustFile, Violation, find_word, line_of};

/// Names that say nothing about what is inside.
const EMPTY_WORDS: [&str; 10] =
    ["util", "utils", "helper", "helpers", "manager", "managers", "impl", "common", "misc", "miscellaneous"];

/// Split, so that this file does not break its own rule.
const LEFT_OVERS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
const MACHINE_PATHS: [&str; 5] = [
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("/Us", "ers/"),
    concat!("/tmp/", "ref"),
];

/// Words that a new reader has to translate, and the plain ones. Split where this file would break its own rule.
const DIALECT: [(&str, &str); 14] = [
    (concat!("te", "ll"), "report, return or notify"),
    (concat!("te", "lls"), "reports, returns or notifies"),
    (concat!("to", "ld"), "reported, returned or notified"),
    (concat!("he", "ar"), "receive"),
    (concat!("he", "ars"), "receives"),
    (concat!("he", "ard"), "received"),
    (concat!("who", "ever"), "name the caller, client or owner"),
    (concat!("an", "ew"), "again"),
    (concat!("for ", "ever"), "without end, or name the bound"),
    (concat!("so ", "many"), "name the number"),
    (concat!("so ", "long"), "name the duration"),
    (concat!("put ", "aside"), "dead-letter"),
    (concat!("in ", "vain"), "without a result"),
    (concat!("out", "lived"), "obsolete"),
];

pub(super) fn check(files: &[File], rust: &[RustFile]) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in files {
        found.extend(left_overs(file));
        found.extend(machine_paths(file));
        found.extend(file_name(file));
        if file.path.ends_with(".md") {
            let lines = file.text.lines().enumerate().map(|(n, text)| (n + 1, text));
            found.extend(lines.flat_map(|(line, text)| dialect(&file.path, line, text)));
        }
    }
    for file in rust {
        if !file.text.starts_with("//!") {
            found.push(Violation::new(&file.path, 1, "a file opens with //! and says what it is for"));
        }
        found.extend(type_names(file));
        found.extend(file.source.comments.iter().flat_map(|of| dialect(&file.path, of.line, &of.text)));
    }
    found
}

/// Words of a comment or a document that have a plain one.
fn dialect(path: &str, line: usize, text: &str) -> Vec<Violation> {
    let text = text.to_lowercase();
    let found = DIALECT.iter().filter(|(word, _)| find_word(&text, word).next().is_some());
    found.map(|(word, plain)| Violation::new(path, line, format!("{word:?}: {plain}"))).collect()
}

fn left_overs(file: &File) -> Vec<Violation> {
    let places = LEFT_OVERS.iter().flat_map(|word| find_word(&file.text, word).map(move |at| (word, at)));
    let tell =
        |(word, at)| Violation::new(&file.path, line_of(&file.text, at), format!("{word}: do it, or leave it out"));
    places.map(tell).collect()
}

fn machine_paths(file: &File) -> Vec<Violation> {
    let places = MACHINE_PATHS.iter().flat_map(|path| file.text.match_indices(path));
    let tell =
        |(at, path)| Violation::new(&file.path, line_of(&file.text, at), format!("{path} is a path of one machine"));
    places.map(tell).collect()
}

fn file_name(file: &File) -> Option<Violation> {
    let words = file.path.split(['/', '.', '_', '-']);
    let empty = words.map(str::to_lowercase).find(|word| EMPTY_WORDS.contains(&word.as_str()))?;
    Some(Violation::new(&file.path, 1, format!("{empty} in the name of a file says nothing; name its concept")))
}

fn type_names(file: &RustFile) -> Vec<Violation> {
    let mut found = Vec::new();
    let code = &file.source.code;
    for keyword in ["struct", "enum", "trait", "type", "mod"] {
        for at in find_word(code, keyword) {
            let rest = code[at + keyword.len()..].trim_start();
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if let Some(empty) = words_of(&name).into_iter().find(|word| EMPTY_WORDS.contains(&word.as_str())) {
                let message = format!("{empty} in {keyword} {name} says nothing; name what it is");
                found.push(Violation::new(&file.path, line_of(code, at), message));
            }
        }
    }
    found
}

/// The words of `CamelCase` or `snake_case`, in lower case.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for c in name.chars() {
        if c == '_' || c.is_uppercase() {
            words.push(String::new());
        }
        if c != '_' {
            words.last_mut().expect("there is always a last word").extend(c.to_lowercase());
        }
    }
    words
}
