//! What several verbs take from the command line.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use port::xdp::Require;
use port::{PortKind, PortSpec};

use crate::exit::Usage;
use crate::units;

/// Options of every run.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Run")]
pub struct RunArgs {
    /// Print JSON, one object a line, the last with "kind":"result" or "error"
    #[arg(long)]
    pub json: bool,
    /// End after this time, such as 10s, 500ms or 2h
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub duration: Option<Duration>,
    /// Run the worker on this CPU instead of the one that the plan chooses
    #[arg(long, value_name = "CPU")]
    pub cpu: Option<usize>,
    /// Fail rather than serve an interface by anything less
    #[arg(long, value_name = "WAY", value_enum)]
    pub require: Option<RequireArg>,
}

impl RunArgs {
    /// What the port of a verb must be served by that has no kernel plane.
    ///
    /// # Errors
    /// The kernel plane is asked for.
    pub fn require(&self, verb: &str) -> Result<Option<Require>, Usage> {
        match self.require {
            Some(RequireArg::Kernel) => Err(Usage(format!(
                "--require kernel: {verb} works on the user plane alone; leave it out, or require \
                 zerocopy, native or xdp"
            ))),
            _ => Ok(self.require_of_user_plane()),
        }
    }

    /// What the port must be served by on the user plane.
    pub fn require_of_user_plane(&self) -> Option<Require> {
        match self.require? {
            RequireArg::Kernel => None,
            RequireArg::Zerocopy => Some(Require::ZeroCopy),
            RequireArg::Native => Some(Require::Native),
            RequireArg::Xdp => Some(Require::Xdp),
        }
    }
}

/// Ways in which a port can be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RequireArg {
    /// The kernel plane
    Kernel,
    /// AF_XDP with a driver that uses our memory
    Zerocopy,
    /// AF_XDP with a program in the driver
    Native,
    /// AF_XDP
    Xdp,
}

/// What is taken at the start must be there: the kernel would rather end other programs than refuse.
pub fn check_memory(wanted: &[(&str, u64)]) -> Result<(), Usage> {
    let Some(available) = sys::memory::available_bytes() else { return Ok(()) };
    let asked: u64 = wanted.iter().fold(0, |sum: u64, (_, bytes)| sum.saturating_add(*bytes));
    if asked <= available {
        return Ok(());
    }
    let taken = wanted.iter().filter(|(_, bytes)| *bytes > 0);
    let options: Vec<&str> = taken.map(|(option, _)| *option).collect();
    Err(Usage(format!(
        "{}: {}B of memory are asked for and {}B are free; ask for less, or free some",
        options.join(" and "),
        units::scaled(asked as f64),
        units::scaled(available as f64)
    )))
}

/// Parses a port for clap.
pub fn port(text: &str) -> Result<PortSpec, String> {
    let spec: PortSpec = text.parse().map_err(|error: port::PortError| error.to_string())?;
    if spec.kind == PortKind::Memory {
        return Err(format!(
            "port «{spec}»: a ring in memory joins two ends within one program, and here is only \
             one; use null:, pcap:FILE or an interface"
        ));
    }
    if spec.kind == PortKind::Interface
        && Path::new(&spec.target).is_file()
        && sys::link::Link::by_name(&spec.target).is_err()
    {
        return Err(format!("{spec} is a file and no interface; a file's port is pcap:{spec}"));
    }
    Ok(spec)
}

/// Parses a store or capture file for clap; a file may be written as the port that it can be.
pub fn store(text: &str) -> Result<PathBuf, String> {
    let path = Path::new(text);
    match text.strip_prefix("pcap:") {
        Some(file) if !path.exists() => Ok(file.into()),
        _ => Ok(path.into()),
    }
}
