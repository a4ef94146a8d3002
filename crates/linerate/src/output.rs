//! What a run says: one JSON object a line for programs, sentences and tables for people.
//!
//! With `--json`, standard output carries JSON lines only: `start`, `progress`, `event`, and last
//! `result`, or `error` where a run failed before it had one. Without it, standard output carries the
//! result and standard error the progress. Each object has `"kind"` and `"schema"`; fields are added
//! within a schema, never renamed.

use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::{Account, Ledger};
use serde_json::{Map, Value, json};
use sys::clock::ClockReport;

use crate::exit::Exit;
use crate::units::{counted, grouped, ns_in_words};

/// Version of the JSON objects.
pub const SCHEMA: u32 = 1;

/// Whether this process has told its result: it is the last object, and says itself what failed.
static RESULT_TOLD: AtomicBool = AtomicBool::new(false);

/// The first failure to write to standard output, which keeps the result from whoever asked for it.
static UNTOLD: OnceLock<String> = OnceLock::new();

/// Where a run's words go.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    json: bool,
    /// JSON goes to standard error because standard output carries packets.
    json_to_stderr: bool,
    colour: bool,
}

impl Output {
    /// JSON lines or text.
    pub fn new(json: bool) -> Self {
        let colour = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self { json, json_to_stderr: false, colour }
    }

    /// Keeps standard output free for packets.
    #[must_use]
    pub fn beside_packets(mut self) -> Self {
        self.json_to_stderr = true;
        self.colour = false;
        self
    }

    /// Whether a program is listening.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Writes one JSON object of a kind; nothing where people read.
    pub fn object(&self, kind: &str, fields: Value) {
        if !self.json {
            return;
        }
        let mut object = Map::new();
        object.insert("kind".into(), kind.into());
        object.insert("schema".into(), SCHEMA.into());
        if let Value::Object(fields) = fields {
            object.extend(fields);
        }
        if kind == "result" {
            RESULT_TOLD.store(true, Ordering::Relaxed);
        }
        self.line(&Value::Object(object).to_string());
    }

    /// The last object of a run that failed before it had a result.
    pub fn failure(&self, message: &str, exit: Exit) {
        if !RESULT_TOLD.load(Ordering::Relaxed) {
            self.object("error", json!({ "message": message, "exit_code": exit as u8 }));
        }
    }

    /// A sentence about what is going on, to standard error; an `event` for programs.
    pub fn note(&self, text: &str) {
        if self.json {
            self.object("event", json!({ "text": text }));
        } else {
            complain(text);
        }
    }

    /// A line of the result for people.
    pub fn say(&self, text: &str) {
        if !self.json {
            self.line(text);
        }
    }

    /// The clock of a run for people.
    pub fn clock(&self, report: &ClockReport) {
        let mut text = format!(
            "clock: {}, at most {} from the kernel's",
            report.source,
            ns_in_words(report.deviation_ns_max)
        );
        if report.realtime_step_ns != 0 {
            let step = ns_in_words(report.realtime_step_ns.unsigned_abs());
            let way = if report.realtime_step_ns > 0 { "ahead" } else { "back" };
            text.push_str(&format!("; somebody set real time {way} by {step} meanwhile"));
        }
        self.say(&text);
    }

    /// The closing table: each place, what entered it, what became of it.
    pub fn ledger(&self, ledger: &Ledger) {
        if self.json {
            return;
        }
        for account in &ledger.accounts {
            self.account(account);
        }
        let verdict = if ledger.is_balanced() {
            self.paint("32", "balanced: every packet is accounted for")
        } else {
            let unexplained = counted(ledger.unexplained_packets(), "packet");
            self.paint("31", &format!("NOT balanced: {unexplained} unexplained"))
        };
        self.line(&format!("ledger {verdict}"));
    }

    fn account(&self, account: &Account) {
        self.line(&format!("  {}", account.place));
        for (sign, entries) in [("+", &account.entered), ("-", &account.left)] {
            for entry in entries {
                let bytes = match entry.bytes {
                    Some(bytes) if entry.packets > 0 => format!("{:>18} bytes", grouped(bytes)),
                    _ => String::new(),
                };
                let packets = grouped(entry.packets);
                self.line(format!("    {sign} {:<16}{packets:>16}{bytes}", entry.name).trim_end());
            }
        }
        let unexplained = account.unexplained_packets();
        if unexplained != 0 {
            self.line(&self.paint("31", &format!("    = unexplained     {unexplained:>16}")));
        }
    }

    /// The text in a colour (an SGR number) on a terminal, as it is elsewhere.
    pub fn paint(&self, colour: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{colour}m{text}\x1b[0m") } else { text.into() }
    }

    fn line(&self, text: &str) {
        if self.json_to_stderr {
            return complain(text);
        }
        match writeln!(io::stdout().lock(), "{text}") {
            // A reader that went away has seen enough.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                let _ = UNTOLD.set(error.to_string());
            }
            _ => {}
        }
    }
}

/// A line on standard error. What cannot be written there has nobody to read it.
pub fn complain(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// The exit code of a run that ended with `exit`: a result that could not be written is no success.
pub fn verdict(exit: Exit) -> Exit {
    match UNTOLD.get() {
        Some(reason) if exit == Exit::Success => {
            complain(&format!(
                "linerate: writing the result to standard output: {reason}; send it elsewhere"
            ));
            Exit::Storage
        }
        _ => exit,
    }
}

/// The clock of a run as JSON.
pub fn clock(report: &ClockReport) -> Value {
    json!({
        "source": report.source,
        "deviation_ns_max": report.deviation_ns_max,
        "realtime_step_ns": report.realtime_step_ns,
    })
}
