//! One result of the doctor.

use serde_json::{Value, json};

use crate::exit::Exit;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// As it should be.
    Ok,
    /// Worth knowing; a choice, or nothing that can be helped.
    Note,
    /// Costs packets, speed or truth.
    Warning,
    /// A run will fail or move no frame.
    Problem,
}

impl Severity {
    /// All, the mildest first.
    pub const ALL: [Self; 4] = [Self::Ok, Self::Note, Self::Warning, Self::Problem];

    /// Its name in JSON and text.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }

    /// Its colour on a terminal (an SGR number).
    pub fn colour(self) -> &'static str {
        match self {
            Self::Ok => "32",
            Self::Note => "36",
            Self::Warning => "33",
            Self::Problem => "31",
        }
    }
}

/// What part of the world a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Area {
    /// What this process may do.
    Rights,
    /// Where threads run.
    Cpus,
    /// What tells the time.
    Clock,
    /// Memory for rings and chunks.
    Memory,
    /// One interface.
    Port,
    /// The directory of a recording.
    Storage,
}

impl Area {
    /// Its name in JSON and text.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rights => "rights",
            Self::Cpus => "cpus",
            Self::Clock => "clock",
            Self::Memory => "memory",
            Self::Port => "port",
            Self::Storage => "storage",
        }
    }
}

/// What was looked at, what was seen, why it matters, what to do.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// What part of the world.
    pub area: Area,
    /// Which port or directory; empty for the machine.
    pub subject: String,
    /// What was looked at; the same words every time, for programs.
    pub check: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// What was seen.
    pub seen: String,
    /// Why it matters for packets.
    pub why: String,
    /// What to do, in words.
    pub remedy: Option<String>,
    /// The exact command that does it.
    pub command: Option<String>,
    /// What was seen, for programs.
    pub facts: Value,
    /// The exit code where the area does not say it: a missing right or a limit is behind it.
    pub exit: Option<Exit>,
}

impl Finding {
    /// A finding that all is well.
    pub fn new(
        area: Area,
        check: &'static str,
        seen: impl Into<String>,
        why: impl Into<String>,
    ) -> Self {
        Self {
            area,
            subject: String::new(),
            check,
            severity: Severity::Ok,
            seen: seen.into(),
            why: why.into(),
            remedy: None,
            command: None,
            facts: json!({}),
            exit: None,
        }
    }

    /// About which port or directory.
    #[must_use]
    pub fn about(mut self, subject: impl Into<String>) -> Self {
        self.subject = subject.into();
        self
    }

    /// Not well, and what helps.
    #[must_use]
    pub fn is(mut self, severity: Severity, remedy: impl Into<String>) -> Self {
        self.severity = severity;
        self.remedy = Some(remedy.into());
        self
    }

    /// Worth knowing; nothing is to be done.
    #[must_use]
    pub fn noted(mut self) -> Self {
        self.severity = Severity::Note;
        self
    }

    /// The command that helps.
    #[must_use]
    pub fn command(mut self, command: impl Into<String>) -> Self {
        self.command = Some(command.into());
        self
    }

    /// The same for programs.
    #[must_use]
    pub fn facts(mut self, facts: Value) -> Self {
        self.facts = facts;
        self
    }

    /// The exit code, where the area does not say it.
    #[must_use]
    pub fn exit(mut self, exit: Option<Exit>) -> Self {
        self.exit = exit;
        self
    }

    /// At most a note, unless it is about something that was asked for.
    #[must_use]
    pub fn limited(mut self, is_named: bool) -> Self {
        if !is_named {
            self.severity = self.severity.min(Severity::Note);
        }
        self
    }

    /// The fields of the JSON object.
    pub fn to_json(&self) -> Value {
        let subject = Some(&self.subject).filter(|subject| !subject.is_empty());
        json!({
            "area": self.area.name(),
            "subject": subject,
            "check": self.check,
            "severity": self.severity.name(),
            "seen": self.seen,
            "why": self.why,
            "remedy": self.remedy,
            "command": self.command,
            "facts": self.facts,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_named_is_a_note_at_most() {
        let bad = Finding::new(Area::Port, "link", "down", "x").is(Severity::Problem, "y");
        assert_eq!(bad.clone().limited(true).severity, Severity::Problem);
        assert_eq!(bad.clone().limited(false).severity, Severity::Note);
        let good = Finding::new(Area::Port, "link", "up", "x");
        assert_eq!(good.limited(false).severity, Severity::Ok);
        assert!(bad.to_json()["subject"].is_null());
    }
}
