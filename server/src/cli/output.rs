//! The only writer to standard output.

use std::io::Write as _;

/// Prints a line to standard output. A closed pipe is not an error.
pub(super) fn say(text: impl std::fmt::Display) {
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
}

/// Prints an error to standard error.
pub(super) fn complain(text: impl std::fmt::Display) {
    let mut stderr = std::io::stderr().lock();
    let _ = writeln!(stderr, "error: {text}").and_then(|()| stderr.flush());
}
