//! Style as a test: the rules that neither the compiler nor clippy knows. Reports all violations, with file and line.

mod source;
mod exceptions;
mod sizes;
mod types;
mod wording;
mod borders;
mod map;

use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Result, bail};

use self::exceptions::Exceptions;
use self::source::RustSource;

/// What cannot be walked into: downloads, builds, the repository's own affairs.
const SKIPPED_FOLDERS: [&str; 8] =
    [".git", ".everrow", "target", "node_modules", "__pycache__", ".venv", ".pytest_cache", ".idea"];

/// A file of the repository, read whole.
struct File {
    /// From the root, with slashes.
    path: String,
    text: String,
}

/// A Rust file, with its code separated from its literals and comments.
struct RustFile {
    path: String,
    text: String,
    source: RustSource,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Violation {
    path: String,
    line: usize,
    message: String,
}

impl Violation {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

pub(crate) fn run(root: &Path) -> Result<()> {
    eprintln!("==> tidy");
    let violations = violations(root)?;
    for violation in &violations {
        eprintln!("{violation}");
    }
    if !violations.is_empty() {
        bail!("{} violations of the style", violations.len());
    }
    Ok(())
}

fn violations(root: &Path) -> Result<Vec<Violation>> {
    let files = read_files(root)?;
    let rust: Vec<RustFile> = files.iter().filter(|file| file.path.ends_with(".rs")).map(RustFile::new).collect();
    let mut exceptions = Exceptions::read(root)?;
    let mut found = sizes::check(&rust, &mut exceptions);
    found.extend(types::check(&rust, &mut exceptions));
    found.extend(exceptions.left_over());
    found.extend(wording::check(&files, &rust));
    found.extend(borders::check(&rust));
    found.extend(map::check(root, &files));
    found.sort();
    Ok(found)
}

impl RustFile {
    fn new(file: &File) -> Self {
        Self { path: file.path.clone(), text: file.text.clone(), source: RustSource::parse(&file.text) }
    }
}

/// Every file that is text, in no particular order.
fn read_files(root: &Path) -> Result<Vec<File>> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type()?.is_dir() {
                if !SKIPPED_FOLDERS.contains(&name.as_str()) {
                    folders.push(entry.path());
                }
            } else if let Ok(text) = fs::read_to_string(entry.path()) {
                let path = entry.path().strip_prefix(root)?.to_string_lossy().replace('\\', "/");
                files.push(File { path, text });
            }
        }
    }
    Ok(files)
}

/// Places where `word` stands alone, not as a part of a longer name.
fn find_word<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let before = text[..*at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_name) && !after.is_some_and(is_name)
    })
}

/// Counted from 1.
fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

#[cfg(test)]
mod tests;
