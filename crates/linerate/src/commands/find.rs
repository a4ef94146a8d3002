//! `linerate find STORE…`: packets of stores and capture files by time, address, port, protocol, tag.

mod answer;
mod sink;

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use engine::{Account, Entry, Ledger, Stop};
use port::{Losses, Reason};
use store::find::{Find, FindReport, Step};
use store::record::{Interface, Record, Section};
use store::selection::{IpNetwork, Selection};
use store::{NewFile, PcapngWriter, StoreError};
use wire::ip_protocol;

pub use answer::undecided;
use answer::{Ended, tell};
use sink::{PatientSink, is_closed, is_unread, stdout};

use crate::carrier::Way;
use crate::commands::overwrite::refuse_to_overwrite;
use crate::exit::{Exit, Usage};
use crate::job::{Figures, Progress, Watch};
use crate::output::Output;
use crate::run_args;
use crate::signals::Signals;
use crate::units;

/// Options of `find`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
All conditions must hold; of one kind given several times, one is enough. --host and --net match
source or destination (and the addresses in ARP), --port either port of TCP, UDP or SCTP. Times
are half-open: --from is included, --to is not.

Examples:
  linerate find store --host 10.0.0.1 --port 53 --proto udp --write flow.pcapng
  linerate find store --from -5m --write - | wireshark -k -i -
  linerate find store --from 2026-12-01T10:00:00Z --to 2026-12-01T10:05:00Z
  linerate find trace.pcap --net 2001:db8::/32 --count")]
pub struct FindArgs {
    /// Stores (directories) and capture files
    #[arg(required = true, value_name = "STORE", value_parser = run_args::store)]
    pub stores: Vec<PathBuf>,
    /// Write the packets to this pcapng file, - for standard output
    #[arg(long, value_name = "FILE|-")]
    pub write: Option<String>,
    /// Only count
    #[arg(long, conflicts_with = "write")]
    pub count: bool,
    /// Print JSON, one object a line, the last with "kind":"result" or "error"
    #[arg(long)]
    pub json: bool,
    /// What packets must have
    #[command(flatten)]
    pub selection: SelectionArgs,
}

impl FindArgs {
    /// Where words go: not to standard output if the answer itself does.
    pub fn output(&self) -> Output {
        let output = Output::new(self.json);
        let answers_there = self.is_to_stdout() || (self.count && !self.json);
        if answers_there { output.beside_packets() } else { output }
    }

    fn is_to_stdout(&self) -> bool {
        self.write.as_deref() == Some("-")
    }
}

/// Conditions on packets.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Conditions")]
pub struct SelectionArgs {
    /// Not before this time: RFC 3339 with a zone, -5m (before now) or @SECONDS
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub from: Option<String>,
    /// Before this time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub to: Option<String>,
    /// From or to this address
    #[arg(long, value_name = "IP")]
    pub host: Vec<IpAddr>,
    /// From or to this network
    #[arg(long, value_name = "IP/BITS")]
    pub net: Vec<IpNetwork>,
    /// From or to this port
    #[arg(long)]
    pub port: Vec<u16>,
    /// This protocol: udp, tcp, icmp, icmp6, sctp, arp or an IP protocol number
    #[arg(long)]
    pub proto: Vec<String>,
    /// With this VLAN tag
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(u16).range(0..=4095))]
    pub vlan: Vec<u16>,
}

impl SelectionArgs {
    /// What the conditions mean, at the present time.
    pub fn selection(&self) -> Result<Selection, Usage> {
        let now_ns = jiff::Timestamp::now().as_nanosecond().clamp(0, u64::MAX.into()) as u64;
        let moment = |option: &str, text: &Option<String>| {
            let parse = |text: &String| {
                units::moment(text, now_ns).map_err(|why| Usage(format!("{option} {why}")))
            };
            text.as_ref().map(parse).transpose()
        };
        let from = moment("--from", &self.from)?;
        let to = moment("--to", &self.to)?;
        if let (Some(from_ns), Some(to_ns)) = (from, to)
            && from_ns >= to_ns
        {
            return Err(Usage(format!(
                "--from {} is not before --to {}: no packet can lie between; swap them",
                units::moment_in_words(from_ns),
                units::moment_in_words(to_ns)
            )));
        }
        let mut selection = Selection::between(from.unwrap_or(0), to.unwrap_or(u64::MAX));
        selection.hosts.clone_from(&self.host);
        selection.networks.clone_from(&self.net);
        selection.ports.clone_from(&self.port);
        selection.vlans.clone_from(&self.vlan);
        for name in &self.proto {
            protocol(name, &mut selection)?;
        }
        Ok(selection)
    }
}

fn protocol(name: &str, selection: &mut Selection) -> Result<(), Usage> {
    let number = match name.to_ascii_lowercase().as_str() {
        "udp" => ip_protocol::UDP,
        "tcp" => ip_protocol::TCP,
        "icmp" => ip_protocol::ICMP,
        "icmp6" | "icmpv6" | "ipv6-icmp" => ip_protocol::ICMPV6,
        "sctp" => ip_protocol::SCTP,
        "arp" => {
            selection.ethertypes.push(wire::ethertype::ARP);
            return Ok(());
        }
        other => other.parse().map_err(|_| {
            Usage(format!(
                "--proto «{name}»: expected udp, tcp, icmp, icmp6, sctp, arp or a number to 255"
            ))
        })?,
    };
    selection.protocols.push(number);
    Ok(())
}

/// Runs the verb.
pub fn run(args: &FindArgs) -> anyhow::Result<Exit> {
    let output = args.output();
    let stop = Stop::new();
    let signals = Signals::install(&stop)?;
    let selection = args.selection.selection()?;
    check_target(args)?;
    let start = Instant::now();
    let mut find = Find::open(&args.stores, selection)?;
    let outcome = search(args, &mut find, output, &stop)?;
    let written_packets = match &outcome {
        Ok(searched) => searched.written_packets,
        Err(StoreError::Incomplete { packets, .. }) => Some(*packets),
        Err(_) => None,
    };
    // A signal while nobody reads the output ends the search early, as one at any other time.
    let error = outcome.as_ref().err().filter(|error| !is_unread(error));
    let written = written_packets
        .map(|packets| output_account(find.report(), packets, outcome.as_ref().err()));
    let run = Ended {
        elapsed_ns: start.elapsed().as_nanos() as u64,
        ledger: Ledger { accounts: [account(&find)].into_iter().chain(written).collect() },
        interrupted: signals.seen(),
        reached_end: outcome.as_ref().is_ok_and(|searched| searched.reached_end),
        written_packets,
        error,
    };
    let report = find.report();
    tell(&output, report, &run);
    let balanced = run.ledger.is_balanced();
    // Where standard output carries the answer itself, only what is wrong is shown beside it.
    if !(args.count || args.is_to_stdout()) || !balanced {
        output.ledger(&run.ledger);
    }
    match outcome {
        // A reader that has seen enough ends the search: nothing failed.
        Err(error) if !is_closed(&error) && !is_unread(&error) => Err(error.into()),
        _ if !balanced => Ok(Exit::Failure),
        _ if report.problems.is_empty() => Ok(Exit::Success),
        _ => Ok(Exit::Capture),
    }
}

/// Refuses a terminal, and a file that is searched.
fn check_target(args: &FindArgs) -> anyhow::Result<()> {
    let Some(target) = &args.write else { return Ok(()) };
    if args.is_to_stdout() && io::stdout().is_terminal() {
        let why = "--write -: standard output is a terminal; send it on, as in | wireshark -k -i -";
        return Err(Usage(why.into()).into());
    }
    let output = if args.is_to_stdout() { stdout()?.metadata() } else { fs::metadata(target) };
    refuse_to_overwrite(&format!("--write {target}"), output, &args.stores)
}

/// Searches to the end or until `stop` is raised, and shows how far it is. Returns how far it went, or
/// what ended it; an output that cannot be made is no search at all.
fn search(
    args: &FindArgs,
    find: &mut Find,
    output: Output,
    stop: &Stop,
) -> anyhow::Result<Result<Searched, StoreError>> {
    let way = Way::In;
    let watch =
        Watch { output, verb: "find", way, duration: None, packets: None, stop: stop.clone() };
    let mut progress = Progress::new(&watch);
    let go_on = |report: &FindReport| {
        progress.look(|| Figures::of_search(report));
        !stop.is_requested()
    };
    Ok(match &args.write {
        Some(_) if args.is_to_stdout() => copy(find, PatientSink::stdout(stop)?, go_on),
        Some(path) => {
            let file = NewFile::create(path, || !stop.is_requested())?;
            let sink = PatientSink::new(file.sink()?, stop);
            copy(find, sink, go_on).map_err(|error| file.settle(error))
        }
        None => count(find, args.count && !args.json, go_on),
    })
}

/// What became of the packets of all chunks and captures that were read.
pub fn account(find: &Find) -> Account {
    let report = find.report();
    let mut account = Account::new("find");
    account.entered.push(Entry::packets("read", report.packets_read));
    account.left.extend([
        Entry::packets("found", report.packets_found),
        Entry::packets("outside_window", report.packets_outside_window),
        Entry::packets("unmatched", report.packets_unmatched),
        Entry::packets("undecided", report.packets_undecided),
        Entry::packets("unreadable", report.packets_unreadable),
    ]);
    let mut waiting = Losses::default();
    waiting.add(Reason::Interrupted, find.packets_waiting());
    account.lose(&waiting, &[Reason::Interrupted]);
    account.facts.push(Entry::packets("examined", report.packets_examined));
    account
}

/// What became of the packets found that `--write` was to put out. Only a write that failed, or that
/// nobody read when a signal came, explains that some are missing.
fn output_account(report: &FindReport, written: u64, error: Option<&StoreError>) -> Account {
    let mut account = Account::new("write");
    account.entered.push(Entry::packets("found", report.packets_found));
    account.left.push(Entry::packets("written", written));
    let rest_packets = report.packets_found.saturating_sub(written);
    if error.is_some_and(is_closed) {
        account.left.push(Entry::packets("output_closed", rest_packets));
    } else if let Some(error) = error {
        let reason = if is_unread(error) { Reason::Interrupted } else { Reason::Storage };
        let mut lost = Losses::default();
        lost.add(reason, rest_packets);
        account.lose(&lost, &[]);
    }
    account
}

/// How far a search went.
#[derive(Debug)]
pub struct Searched {
    /// Everything was searched.
    pub reached_end: bool,
    /// Packets that were written, if they were to be.
    pub written_packets: Option<u64>,
}

/// Counts the found packets; `say` puts the bare number on standard output, for `$(…)`. Asks
/// `go_on` after each read.
fn count(
    find: &mut Find,
    say: bool,
    mut go_on: impl FnMut(&FindReport) -> bool,
) -> Result<Searched, StoreError> {
    let reached_end = loop {
        match find.step()? {
            Step::Record(_) => {}
            Step::Read => {
                if !go_on(find.report()) {
                    break false;
                }
            }
            Step::End => break true,
        }
    };
    if say {
        let written = writeln!(io::stdout().lock(), "{}", find.report().packets_found);
        written.map_err(|source| StoreError::Write { what: "the count".into(), source })?;
    }
    Ok(Searched { reached_end, written_packets: None })
}

/// Writes all found packets as pcapng, each interface described before its first packet. Asks `go_on`
/// after each read. The file is whole wherever the search ends.
pub fn copy(
    find: &mut Find,
    sink: impl Write,
    go_on: impl FnMut(&FindReport) -> bool,
) -> Result<Searched, StoreError> {
    let section = Section {
        application: Some(concat!("linerate ", env!("CARGO_PKG_VERSION"), " find").into()),
        ..Section::default()
    };
    let mut writer = PcapngWriter::new(sink, &section)?;
    // A disk without room for the header is told now; and a file that is cut later keeps it.
    writer.flush()?;
    let copied = copy_packets(find, &mut writer, go_on);
    let written_packets = Some(writer.packets());
    // What was found before the search failed is written all the same.
    writer.finish()?;
    Ok(Searched { reached_end: copied?, written_packets })
}

/// Returns whether the end was reached.
fn copy_packets<W: Write>(
    find: &mut Find,
    writer: &mut PcapngWriter<W>,
    mut go_on: impl FnMut(&FindReport) -> bool,
) -> Result<bool, StoreError> {
    loop {
        add_interfaces(writer, find.interfaces())?;
        let record = match find.step()? {
            Step::Record(record) => record,
            Step::Read => {
                if go_on(find.report()) {
                    continue;
                }
                return Ok(false);
            }
            Step::End => return Ok(true),
        };
        if record.interface < writer.interface_count() {
            writer.write_record(&record)?;
            continue;
        }
        // The first packet of an interface that a capture describes half way: its description
        // cannot be asked for while the packet is borrowed.
        let data = record.data.to_vec();
        let copy = Record { data: &[], ..record };
        add_interfaces(writer, find.interfaces())?;
        writer.write_record(&Record { data: &data, ..copy })?;
    }
}

fn add_interfaces<W: Write>(
    writer: &mut PcapngWriter<W>,
    interfaces: &[Interface],
) -> Result<(), StoreError> {
    for interface in interfaces.iter().skip(writer.interface_count() as usize) {
        writer.add_interface(interface)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reversed_range_is_refused_by_name() {
        let args = SelectionArgs {
            from: Some("2026-12-01T10:00:00Z".into()),
            to: Some("2026-12-01T09:00:00Z".into()),
            ..SelectionArgs::default()
        };
        let error = args.selection().unwrap_err().to_string();
        assert!(error.contains("is not before"), "{error}");
    }

    #[test]
    fn protocols_have_names_and_numbers() {
        let args = SelectionArgs {
            proto: vec!["udp".into(), "132".into(), "ARP".into()],
            ..SelectionArgs::default()
        };
        let selection = args.selection().unwrap();
        assert_eq!(selection.protocols, [17, 132]);
        assert_eq!(selection.ethertypes, [0x0806]);
        let args = SelectionArgs { proto: vec!["tpc".into()], ..SelectionArgs::default() };
        assert!(args.selection().unwrap_err().to_string().contains("expected udp"));
    }
}
