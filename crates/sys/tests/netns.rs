//! Network namespaces, veth pairs and what is read and set on them, on real interfaces.
//!
//! Runs as root and as an ordinary user alike: the latter enters a user namespace first, which
//! takes a process with one thread. Hence no harness: `main` prepares the process, then runs the
//! cases one after the other. Arguments: `--list`, or parts of the names to run.

#[path = "netns/cases.rs"]
mod cases;
#[path = "netns/socket.rs"]
mod socket;
#[path = "netns/survival.rs"]
mod survival;

use std::error::Error;
use std::panic::catch_unwind;
use std::process::ExitCode;

use sys::namespace::{Namespace, Rights, enter_user_namespace};

/// How a case ends: well, or with why not.
type Outcome = Result<(), Box<dyn Error>>;
/// A name and what to run.
type Case = (&'static str, fn() -> Outcome);

/// Why a case did not run: a right or an ability is missing here.
#[derive(Debug)]
struct Skipped(String);

impl std::fmt::Display for Skipped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Skipped {}

/// Ends a case that cannot run.
fn skip(reason: impl std::fmt::Display) -> Outcome {
    Err(Box::new(Skipped(reason.to_string())))
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == survival::HOLD) {
        return survival::hold();
    }
    let cases: Vec<Case> = cases::CASES.iter().chain(survival::CASES).copied().collect();
    if arguments.iter().any(|argument| argument == "--list") {
        for (name, _) in cases {
            println!("{name}: test");
        }
        return ExitCode::SUCCESS;
    }
    let parts: Vec<&String> = arguments.iter().filter(|part| !part.starts_with('-')).collect();
    let chosen: Vec<Case> = cases
        .into_iter()
        .filter(|(name, _)| parts.is_empty() || parts.iter().any(|part| name.contains(*part)))
        .collect();
    println!("\nrunning {} tests", chosen.len());
    if let Err(error) = prepare() {
        for (name, _) in chosen {
            eprintln!("SKIPPED {name}: {error}");
        }
        return ExitCode::SUCCESS;
    }
    let verdicts: Vec<Verdict> = chosen.iter().map(|(name, case)| run(name, *case)).collect();
    let count = |verdict| verdicts.iter().filter(|each| **each == verdict).count();
    let failed = count(Verdict::Failed);
    println!(
        "\ntest result: {} passed; {failed} failed; {} ignored\n",
        count(Verdict::Passed),
        count(Verdict::Skipped)
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Puts the process into a network of its own, so that no case touches the machine's.
fn prepare() -> sys::Result<()> {
    if Rights::probe().can_make_networks() {
        Namespace::create()?.enter()
    } else {
        enter_user_namespace()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Passed,
    Failed,
    Skipped,
}

fn run(name: &str, case: fn() -> Outcome) -> Verdict {
    match catch_unwind(case) {
        Ok(Ok(())) => {
            println!("test {name} ... ok");
            Verdict::Passed
        }
        Ok(Err(error)) if error.is::<Skipped>() => {
            eprintln!("SKIPPED {name}: {error}");
            println!("test {name} ... ignored");
            Verdict::Skipped
        }
        Ok(Err(error)) => {
            println!("test {name} ... FAILED: {error}");
            Verdict::Failed
        }
        // The panic has printed its message already.
        Err(_) => {
            println!("test {name} ... FAILED");
            Verdict::Failed
        }
    }
}
