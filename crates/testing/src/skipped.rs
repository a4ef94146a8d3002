//! Tests that cannot run here.

use std::fmt;
use std::io::Write as _;

use crate::Outcome;

/// Why a test did not run: a right, a tool or an ability of the kernel is missing.
#[derive(Debug)]
pub(crate) struct Skipped(String);

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Skipped {}

/// The outcome of a test that cannot run.
///
/// # Errors
/// Always, with the reason.
pub fn skip(reason: impl fmt::Display) -> Outcome {
    Err(Box::new(Skipped(reason.to_string())))
}

/// Says on standard error, past a harness that keeps what `eprintln!` says of a test that passes,
/// that a test or a part of it did not run.
pub fn say_skipped(test: &str, reason: impl fmt::Display) {
    // In one piece: other tests write, too. Nobody is left to tell when standard error is closed.
    let line = format!("SKIPPED {test}: {reason}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}
