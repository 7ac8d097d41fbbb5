//! The only writer to standard output.

use std::io::Write as _;

/// Says a line to who called the command. Somebody who has stopped listening is no reason to fail.
pub(super) fn say(text: impl std::fmt::Display) {
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
}

/// Says what went wrong, and what to do next.
pub(super) fn complain(text: impl std::fmt::Display) {
    let mut stderr = std::io::stderr().lock();
    let _ = writeln!(stderr, "error: {text}").and_then(|()| stderr.flush());
}
