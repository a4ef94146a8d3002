//! A program that was not loaded, told in the words of who wrote it.

use std::fmt;
use std::fmt::Write as _;

use sys::Kind;
use sys::bpf::LoadError;

use super::Code;

/// Lines of the verifier's log that [`Refused::explanation`] shows at most.
const LINES: usize = 40;

/// Why the kernel did not take a program.
#[derive(Debug)]
pub struct Refused {
    error: Box<LoadError>,
    /// In words: the label and the remark before the instruction.
    place: String,
    explanation: String,
}

impl Refused {
    pub(super) fn new(error: LoadError, code: &Code) -> Self {
        let place = error.instruction().map_or_else(String::new, |slot| place(code, slot));
        let explanation = explanation(error.log(), code);
        Self { error: Box::new(error), place, explanation }
    }

    /// What kind of failure this is, as [`LoadError::kind`].
    pub fn kind(&self) -> Kind {
        self.error.kind()
    }

    /// The kernel's error number, if there was one.
    pub fn errno(&self) -> Option<i32> {
        self.error.errno()
    }

    /// The slot of the instruction that was refused.
    pub fn slot(&self) -> Option<usize> {
        self.error.instruction()
    }

    /// The end of what the verifier wrote, with the program's labels and remarks in it; empty if it did
    /// not get to read the program.
    pub fn explanation(&self) -> &str {
        &self.explanation
    }

    /// The error of the level below, without labels.
    pub fn into_error(self) -> sys::Error {
        self.error.into_error()
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place.is_empty() {
            true => self.error.fmt(f),
            false => write!(f, "{} ({})", self.error, self.place),
        }
    }
}

impl std::error::Error for Refused {}

fn place(code: &Code, slot: usize) -> String {
    match code.last_marks(slot) {
        (Some(label), Some(note)) => format!("behind the label «{label}», at «{note}»"),
        (Some(label), None) => format!("behind the label «{label}»"),
        (None, Some(note)) => format!("at «{note}»"),
        (None, None) => String::new(),
    }
}

fn explanation(log: &str, code: &Code) -> String {
    let lines: Vec<&str> = log.lines().collect();
    let begin = lines.len().saturating_sub(LINES);
    let mut text = String::new();
    for line in lines.get(begin..).unwrap_or_default() {
        let slot = line.split_once(": (").and_then(|(slot, _)| slot.parse().ok());
        for mark in slot.into_iter().flat_map(|slot: usize| code.marks_at(slot)) {
            // Writing to a string does not fail.
            let _ = match mark.is_label {
                true => writeln!(text, "{}:", mark.text),
                false => writeln!(text, "; {}", mark.text),
            };
        }
        let _ = writeln!(text, "{line}");
    }
    text
}
