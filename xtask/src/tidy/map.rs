//! ARCHITECTURE.md names every folder that a newcomer meets, and stays short enough to be read.

use std::collections::BTreeSet;
use std::path::Path;

use super::{File, Violation};

const MAP: &str = "ARCHITECTURE.md";
const MAP_LINES_MAX: usize = 250;

pub(super) fn check(root: &Path, files: &[File]) -> Vec<Violation> {
    let Ok(map) = std::fs::read_to_string(root.join(MAP)) else {
        return vec![Violation::new(MAP, 1, "there is no map of the repository")];
    };
    let mut found: Vec<Violation> = folders(files)
        .into_iter()
        .filter(|folder| !map.contains(&format!("{folder}/")))
        .map(|folder| Violation::new(MAP, 1, format!("{folder}/ is not on the map")))
        .collect();
    let lines = map.lines().count();
    if lines > MAP_LINES_MAX {
        found.push(Violation::new(MAP, 1, format!("{lines} lines; a map has at most {MAP_LINES_MAX}")));
    }
    found
}

/// Folders at the top, the server's crates, and the folders of their code. Those whose name begins with a dot are tools' own, and one that
/// holds nothing but the tests of the file beside it is a part of that file.
fn folders<'a>(files: &'a [File]) -> BTreeSet<&'a str> {
    let top = files.iter().filter_map(|file| file.path.split_once('/')).map(|(folder, _)| folder);
    let crates = files.iter().filter_map(|file| file.path.strip_prefix("server/")?.split_once('/'));
    let folder_of_code = |file: &'a File| {
        let (_, inside) = file.path.strip_prefix("server/")?.split_once("src/")?;
        inside.split_once('/').filter(|(_, file)| *file != "tests.rs").map(|(folder, _)| folder)
    };
    let inside = files.iter().filter_map(folder_of_code);
    top.filter(|folder| !folder.starts_with('.')).chain(crates.map(|(folder, _)| folder)).chain(inside).collect()
}
