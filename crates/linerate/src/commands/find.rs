//! `linerate find STORE…`: packets of stores and capture files by time, address, port, protocol, tag.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use serde_json::{Value, json};
use store::find::{Find, FindReport};
use store::record::Section;
use store::selection::{IpNetwork, Selection};
use store::{PcapngWriter, StoreError};
use wire::ip_protocol;

use crate::exit::{Exit, Usage};
use crate::output::Output;
use crate::units;

/// Options of `find`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
All conditions must hold; of one kind given several times, one is enough. --host and --net match
source or destination (and the addresses in ARP), --port either port of TCP, UDP or SCTP. Times
are half-open: --from is included, --to is not.

Examples:
  linerate find store --host 10.0.0.1 --port 53 --proto udp --write flow.pcapng
  linerate find store --from 2026-12-01T10:00:00Z --to 2026-12-01T10:05:00Z --write - | wireshark -k -i -
  linerate find trace.pcap --net 2001:db8::/32 --count")]
pub struct FindArgs {
    /// Stores (directories) and capture files
    #[arg(required = true, value_name = "STORE")]
    pub stores: Vec<PathBuf>,
    /// What packets must have
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// Write the packets to this pcapng file, - for standard output
    #[arg(long, value_name = "FILE|-")]
    pub write: Option<String>,
    /// Only count
    #[arg(long, conflicts_with = "write")]
    pub count: bool,
    /// Print JSON, one object a line, the last with "kind":"result"
    #[arg(long)]
    pub json: bool,
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
    let to_stdout = args.write.as_deref() == Some("-");
    let mut output = Output::new(args.json);
    if to_stdout {
        output = output.beside_packets();
    }
    if to_stdout && io::stdout().is_terminal() {
        return Err(Usage("--write -: standard output is a terminal; send it on, as in | wireshark -k -i -".into()).into());
    }
    let selection = args.selection.selection()?;
    let mut find = Find::open(&args.stores, selection)?;
    let outcome = match &args.write {
        Some(target) if to_stdout => {
            let _ = target;
            copy(&mut find, io::stdout().lock())
        }
        Some(path) => {
            let file = File::create(path).with_context(|| format!("creating {path}"))?;
            copy(&mut find, file)
        }
        None => count(&mut find),
    };
    let report = find.report();
    let error = outcome.err();
    // A reader that has seen enough ends the search: nothing failed.
    let error = error.filter(|error| error.io_kind() != Some(io::ErrorKind::BrokenPipe));
    tell(&output, args, &report, error.as_ref());
    match error {
        Some(error) => Err(error.into()),
        None if report.problems.is_empty() => Ok(Exit::Success),
        None => Ok(Exit::Capture),
    }
}

fn count(find: &mut Find) -> Result<(), StoreError> {
    while find.next_record()?.is_some() {}
    Ok(())
}

/// Writes all found packets as pcapng, each interface described before its first packet.
pub fn copy(find: &mut Find, sink: impl Write) -> Result<(), StoreError> {
    let section = Section {
        application: Some(concat!("linerate ", env!("CARGO_PKG_VERSION"), " find").into()),
        ..Section::default()
    };
    let mut writer = PcapngWriter::new(sink, &section)?;
    let mut known = Vec::new();
    loop {
        let Some(mut record) = find.next_record()? else { break };
        let interface = record.interface as usize;
        if known.len() <= interface {
            known.resize(interface + 1, None);
        }
        let number = match known[interface] {
            Some(number) => number,
            None => {
                let number = writer.add_interface(&find_interface(&record, interface))?;
                known[interface] = Some(number);
                number
            }
        };
        record.interface = number;
        writer.write_record(&record)?;
    }
    writer.finish()?;
    Ok(())
}

fn tell(output: &Output, args: &FindArgs, report: &FindReport, error: Option<&StoreError>) {
    output.object(
        "result",
        json!({
            "verb": "find",
            "found_packets": report.found_packets,
            "found_bytes": report.found_bytes,
        }),
    );
    let _: (&FindArgs, Option<&StoreError>, Value) = (args, error, Value::Null);
}
