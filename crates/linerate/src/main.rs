//! The program: a verb, its options, its exit code. No algorithm lives here.
#![forbid(unsafe_code)]
// They panic where nobody reads or the disk is full: everything is said through `output`.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod carrier;
mod commands;
mod doctor;
mod exit;
mod expression;
mod far_end;
mod filtered_port;
mod job;
mod manual;
mod network;
mod output;
mod plane;
mod run_args;
mod scratch;
mod signals;
mod units;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use store::StoreError;

use args::{Cli, Verb};
use exit::Exit;
use output::Output;

fn main() -> ExitCode {
    signals::survive_size_limits();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    match run(&cli.verb) {
        Ok(exit) => output::verdict(exit).into(),
        Err(error) => {
            let (message, exit) = (format!("{error:#}"), exit::of_error(&error));
            output::complain(&format!("linerate: {message}"));
            cli.verb.output().failure(&message, exit);
            exit.into()
        }
    }
}

/// Arguments that were not understood, or a call for help.
fn refuse(error: &clap::Error) -> ExitCode {
    // What cannot be written has nobody to read it.
    let _ = error.print();
    if !error.use_stderr() {
        return Exit::Success.into();
    }
    // The arguments are not known by name, so the one that asks for JSON is looked for.
    if std::env::args_os().any(|argument| argument == "--json") {
        let text = error.to_string();
        let message = text.trim().trim_start_matches("error: ");
        Output::new(true).failure(message, Exit::Usage);
    }
    Exit::Usage.into()
}

fn run(verb: &Verb) -> anyhow::Result<Exit> {
    match verb {
        Verb::Generate(args) => commands::generate::run(args),
        Verb::Receive(args) => commands::receive::run(args),
        Verb::Record(args) => commands::record::run(args),
        Verb::Find(args) => commands::find::run(args),
        Verb::Filter(args) => commands::filter::run(args),
        Verb::Replay(args) => commands::replay::run(args),
        Verb::Demo(args) => commands::demo::run(args),
        Verb::Doctor(args) => commands::doctor::run(args),
        Verb::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "linerate", &mut script);
            // A reader that has seen enough is no error.
            match std::io::stdout().write_all(&script) {
                Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                    let what = "shell completions".into();
                    Err(StoreError::Write { what, source: error }.into())
                }
                _ => Ok(Exit::Success),
            }
        }
        Verb::Man { directory } => {
            manual::write(Cli::command(), directory).map_err(|source| StoreError::Write {
                what: format!("manual pages to {}", directory.display()),
                source,
            })?;
            Ok(Exit::Success)
        }
    }
}
