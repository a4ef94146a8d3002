//! The command line: the verbs.

use clap::{Parser, Subcommand};

use crate::commands::{demo, doctor, filter, find, generate, receive, record, replay};
use crate::exit;
use crate::output::Output;

/// Generates, receives, records, finds and replays packets at line rate, and accounts for every one.
///
/// A port is an interface (eth0), packet:eth0, xdp:eth0, pcap:FILE or null:. Faults can be put in
/// its way: 'packet:eth0?drop=0.01&duplicate=0.001&corrupt=0.001&delay=0.01&seed=7'.
#[derive(Debug, Parser)]
#[command(name = "linerate", version, after_help = exit::HELP, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What the program can do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Send frames made from a template
    Generate(generate::GenerateArgs),
    /// Count and measure what arrives
    Receive(receive::ReceiveArgs),
    /// Write what arrives to a store of pcapng segments
    Record(record::RecordArgs),
    /// Find packets in stores and capture files
    Find(find::FindArgs),
    /// Count the packets of a capture that match a pcap filter expression, and explain it
    Filter(filter::FilterArgs),
    /// Send recorded packets again
    Replay(replay::ReplayArgs),
    /// Show all of it on interfaces of its own: generate, record, find, replay
    Demo(demo::DemoArgs),
    /// Look at the machine, at ports and at a directory: what would cost packets, and what helps
    Doctor(doctor::DoctorArgs),
    /// Print shell completions
    #[command(after_help = "\
Examples:
  mkdir -p ~/.local/share/bash-completion/completions
  linerate completions bash > ~/.local/share/bash-completion/completions/linerate
  linerate completions fish > ~/.config/fish/completions/linerate.fish")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages to a directory
    #[command(after_help = "\
Examples:
  linerate man ~/.cargo/share/man/man1 && man linerate-record
  linerate man pages && man ./pages/linerate-find.1")]
    Man {
        /// The directory
        directory: std::path::PathBuf,
    },
}

impl Verb {
    /// Where its words go, by its options.
    pub fn output(&self) -> Output {
        Output::new(match self {
            Self::Generate(args) => args.run.json,
            Self::Receive(args) => args.run.json,
            Self::Record(args) => args.run.json,
            Self::Find(args) => return args.output(),
            Self::Filter(args) => args.json,
            Self::Replay(args) => args.run.json,
            Self::Demo(args) => args.json,
            Self::Doctor(args) => args.json,
            Self::Completions { .. } | Self::Man { .. } => false,
        })
    }
}
