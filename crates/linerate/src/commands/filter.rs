//! `linerate filter EXPR`: how many packets of a capture match a pcap filter expression, and what it
//! comes to.

mod explain;
mod filters;
mod place;

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, ValueEnum};
use engine::{Account, Entry, Ledger, Stop};
use filter::{Link, Packet};
use port::PortSpec;
use serde_json::json;
use store::find::FindReport;
use store::record::{Direction, LinkType, Record};
use store::{CaptureReader, StoreError};

use filters::Filters;
use place::Place;

use crate::carrier::Way;
use crate::exit::{Exit, Usage};
use crate::job::{Figures, Progress, Watch};
use crate::output::Output;
use crate::run_args;
use crate::signals::Signals;
use crate::units;

/// Packets between two looks at signals and clock.
const LOOK_PACKETS: u64 = 4_096;

/// Options of `filter`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
The language is that of tcpdump, pcap-filter(7), with the meaning of libpcap 1.10.

Examples:
  linerate filter 'udp port 53 and not ip6' --read trace.pcap
  linerate filter tcp port 80 or 443 --read trace.pcapng --json
  linerate filter --explain 'vlan and host 10.0.0.1'
  linerate filter --explain --link cooked2 'not port 22'
  linerate filter --explain --port eth0 'tcp port 80'")]
pub struct FilterArgs {
    /// The expression; several words are taken as one text
    #[arg(required = true, value_name = "EXPR")]
    pub expression: Vec<String>,
    /// Count the packets of this capture file that match
    #[arg(long, value_name = "FILE", value_parser = run_args::store)]
    #[arg(required_unless_present = "explain")]
    pub read: Option<PathBuf>,
    /// Show the tests that it comes to, and the program for the kernel
    #[arg(long)]
    pub explain: bool,
    /// What the frames are that --explain speaks of
    #[arg(long, value_enum, default_value_t, conflicts_with = "read")]
    pub link: LinkName,
    /// Show also whether the kernel would take it for this port, whose frames are Ethernet
    #[arg(long, value_parser = run_args::port, requires = "explain")]
    #[arg(conflicts_with_all = ["read", "link"])]
    pub port: Option<PortSpec>,
    /// Print JSON, one object a line, the last with "kind":"result" or "error"
    #[arg(long)]
    pub json: bool,
}

/// A link by name.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub enum LinkName {
    /// Ethernet
    #[default]
    Ethernet,
    /// IPv4 or IPv6 without a link header
    Raw,
    /// Linux cooked capture
    Cooked,
    /// Linux cooked capture, version 2
    Cooked2,
}

impl From<LinkName> for Link {
    fn from(name: LinkName) -> Self {
        match name {
            LinkName::Ethernet => Self::Ethernet,
            LinkName::Raw => Self::Raw,
            LinkName::Cooked => Self::LinuxCooked,
            LinkName::Cooked2 => Self::LinuxCooked2,
        }
    }
}

/// Runs the verb.
pub fn run(args: &FilterArgs) -> anyhow::Result<Exit> {
    let output = Output::new(args.json);
    let text = args.expression.join(" ");
    let mut filters = Filters::new(&text, output)?;
    match &args.read {
        Some(path) => read(args, path, output, &mut filters),
        None => {
            filters.of(args.link.into())?;
            explain(args, &output, &filters)?;
            Ok(Exit::Success)
        }
    }
}

/// Explains without a file.
fn explain(args: &FilterArgs, output: &Output, filters: &Filters<'_>) -> anyhow::Result<()> {
    let place = match (&args.port, filters.all().next()) {
        (Some(port), Some((_, filter))) => Some(Place::of(port, filter)?),
        _ => None,
    };
    explain::tell(output, filters);
    let mut result = json!({
        "verb": "filter",
        "expression": filters.text(),
        "filters": explain::filters(filters),
    });
    if let Some(place) = place {
        output.say(&place.text());
        result["place"] = place.json();
    }
    output.object("result", result);
    Ok(())
}

/// What was read of a capture.
#[derive(Default)]
struct Read {
    packets: u64,
    matched_packets: u64,
    read_bytes: u64,
    warnings: Vec<String>,
}

impl Read {
    fn ledger(&self) -> Ledger {
        let mut account = Account::new("filter");
        account.entered.push(Entry::packets("read", self.packets));
        account.left.push(Entry::packets("matched", self.matched_packets));
        let unmatched = self.packets - self.matched_packets;
        account.left.push(Entry::packets("unmatched", unmatched));
        Ledger { accounts: vec![account] }
    }
}

fn read(
    args: &FilterArgs,
    path: &Path,
    output: Output,
    filters: &mut Filters<'_>,
) -> anyhow::Result<Exit> {
    let stop = Stop::new();
    let signals = Signals::install(&stop)?;
    let start = Instant::now();
    let mut capture = open(path)?;
    let watch = Watch {
        output,
        verb: "filter",
        way: Way::In,
        duration: None,
        packets: None,
        stop: stop.clone(),
    };
    let mut read = Read::default();
    let outcome = count(&mut capture, filters, &watch, &mut read);
    let elapsed_ns = start.elapsed().as_nanos() as u64;
    let error = match outcome {
        // What is wrong with the expression or its link: no figure would mean anything.
        Err(error) if !error.is::<StoreError>() => return Err(error),
        other => other.err(),
    };
    for warning in &read.warnings {
        output.note(&format!("linerate: {}: {warning}", path.display()));
    }
    let ledger = read.ledger();
    let mut result = json!({
        "verb": "filter",
        "expression": filters.text(),
        "read_packets": read.packets,
        "matched_packets": read.matched_packets,
        "read_bytes": read.read_bytes,
        "warnings": read.warnings,
        "interrupted": signals.seen(),
        "elapsed_ns": elapsed_ns,
        "cpu_ns": sys::cpu::thread_cpu_ns(),
        "error": error.as_ref().map(ToString::to_string),
        "ledger": ledger,
    });
    if args.explain {
        explain::tell(&output, filters);
        result["filters"] = explain::filters(filters);
    }
    output.object("result", result);
    let matched = units::grouped(read.matched_packets);
    let all = units::counted(read.packets, "packet");
    let ended = if signals.seen() { "; a signal ended the reading early" } else { "" };
    let time = units::ns_in_words(elapsed_ns);
    output.say(&format!("{matched} of {all} match, in {time}{ended}"));
    output.ledger(&ledger);
    match error {
        Some(error) => Err(error),
        None if !ledger.is_balanced() => Ok(Exit::Failure),
        None => Ok(Exit::Success),
    }
}

/// Opens a capture file; to open a pipe could take for ever.
fn open(path: &Path) -> Result<CaptureReader, StoreError> {
    let is_other = |kind: std::fs::Metadata| !kind.is_file() && !kind.is_dir();
    if std::fs::metadata(path).is_ok_and(is_other) {
        return Err(StoreError::NotAFile { name: path.display().to_string() });
    }
    CaptureReader::open(path)
}

/// Asks about every packet, to the end or until the run is to stop.
fn count(
    capture: &mut CaptureReader,
    filters: &mut Filters<'_>,
    watch: &Watch,
    read: &mut Read,
) -> anyhow::Result<()> {
    let mut progress = Progress::new(watch);
    let outcome = loop {
        if read.packets.is_multiple_of(LOOK_PACKETS) {
            if watch.stop.is_requested() {
                break Ok(());
            }
            progress.look(|| {
                Figures::of_search(&FindReport {
                    packets_examined: read.packets,
                    packets_found: read.matched_packets,
                    bytes_read: capture.offset(),
                    ..FindReport::default()
                })
            });
        }
        let record = match capture.next_record() {
            Ok(Some(record)) => record,
            Ok(None) => break Ok(()),
            Err(error) => break Err(error.into()),
        };
        let is_match = if filters.knows(record.interface) {
            filters.matches(record.interface, &packet(&record))
        } else {
            // Its description cannot be asked for while the packet is borrowed.
            let data = record.data.to_vec();
            let copy = Record { data: &data, ..record };
            filters.learn(capture.interfaces())?;
            filters.matches(copy.interface, &packet(&copy))
        };
        match is_match {
            Ok(is_match) => read.matched_packets += u64::from(is_match),
            Err(link_type) => return Err(refuse(link_type, capture.name()).into()),
        }
        read.packets += 1;
    };
    // An expression is also checked for a capture without packets.
    filters.learn(capture.interfaces())?;
    read.read_bytes = capture.offset();
    read.warnings = capture.warnings().iter().map(ToString::to_string).collect();
    outcome
}

fn packet<'a>(record: &Record<'a>) -> Packet<'a> {
    Packet {
        data: record.data,
        wire_bytes: record.original_length,
        outbound: record.direction().map(|direction| direction == Direction::Outbound),
        interface: None,
    }
}

fn refuse(link_type: LinkType, name: &str) -> Usage {
    Usage(format!(
        "{name}: packets of {link_type}: filters know Ethernet, raw IP and Linux cooked capture (v1 and \
         v2); convert the capture, or choose one of these"
    ))
}
