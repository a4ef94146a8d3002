//! The program: a verb, its options, its exit code. No algorithm lives here.
#![forbid(unsafe_code)]

mod args;
mod commands;
mod doctor;
mod exit;
mod job;
mod network;
mod output;
mod run_args;
mod signals;
mod units;

use std::process::ExitCode;

use anyhow::Context;
use clap::{CommandFactory, Parser};

use args::{Cli, Verb};
use exit::Exit;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli.verb) {
        Ok(exit) => exit.into(),
        Err(error) => {
            eprintln!("linerate: {error:#}");
            exit::of_error(&error).into()
        }
    }
}

fn run(verb: &Verb) -> anyhow::Result<Exit> {
    match verb {
        Verb::Generate(args) => commands::generate::run(args),
        Verb::Receive(args) => commands::receive::run(args),
        Verb::Record(args) => commands::record::run(args),
        Verb::Find(args) => commands::find::run(args),
        Verb::Replay(args) => commands::replay::run(args),
        Verb::Demo(args) => commands::demo::run(args),
        Verb::Doctor(args) => commands::doctor::run(args),
        Verb::Completions { shell } => {
            clap_complete::generate(
                *shell,
                &mut Cli::command(),
                "linerate",
                &mut std::io::stdout(),
            );
            Ok(Exit::Success)
        }
        Verb::Man { directory } => {
            std::fs::create_dir_all(directory)
                .and_then(|()| clap_mangen::generate_to(Cli::command(), directory))
                .with_context(|| format!("writing manual pages to {}", directory.display()))?;
            Ok(Exit::Success)
        }
    }
}
