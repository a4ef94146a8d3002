//! `linerate generate PORT`: frames of a template, at a rate, a number of them or for a time.

mod sent;
mod shortfall;

pub use sent::Sent;

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use engine::generate::{Common, Generator, Limit};
use engine::live::Live;
use engine::pacer::{PacingReport, Rate};
use engine::{Ledger, Patience, Stop, Worker};
use port::{PortKind, PortSpec, TxQueue};
use serde_json::{Value, json};
use sys::clock::Clock;
use wire::MacAddress;
use wire::stamp::StampKind;
use wire::template::{
    Field, IcmpEchoSpec, Ipv4Spec, Ipv6Spec, MplsSpec, NetworkSpec, PayloadFill, TcpSpec, Template,
    TemplateSpec, TransportSpec, UdpSpec, VlanSpec,
};

use crate::carrier::{self, Way};
use crate::exit::{self, Exit, Usage};
use crate::far_end;
use crate::job::{self, Watch};
use crate::output::{self, Output};
use crate::run_args::{self, RunArgs};
use crate::signals::Signals;
use crate::units;

/// Bytes without FCS of the smallest Ethernet frame (IEEE 802.3, clause 3.2.8: 64 with FCS).
const SMALLEST_FRAME_BYTES: u16 = 60;

/// Options of `generate`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Fields take a value, a range walked in steps (10.0.0.1-10.0.0.254, 1000-2000/5), the hosts of a
prefix (10.0.0.0/24), or random values (random:1024-65535).

Examples:
  linerate generate eth0 --count 1M --rate 200kpps
  linerate generate packet:eth0 --size 1514 --rate 1Gbps --duration 10s
  linerate generate eth0 --src 10.0.0.0/16 --dst 10.1.0.1 --sport random:1024-65535
  linerate generate pcap:frames.pcapng --count 1000 --size 92 --dst 2001:2::1 --proto tcp")]
pub struct GenerateArgs {
    /// Where the frames go
    #[arg(value_parser = run_args::port)]
    pub port: PortSpec,
    /// Frame size in bytes without FCS: 60, 60-1514 or random:60-1514
    /// [default: 60, or what headers and stamp need]
    #[arg(long)]
    pub size: Option<Field<u16>>,
    /// How fast: 200kpps, 1Gbps (layer 2 with FCS), 10Gbps/l1 (on the wire) or max
    #[arg(long, default_value = "max", value_parser = units::rate)]
    pub rate: Rate,
    /// How many frames; without it and without --duration until a signal
    #[arg(long, value_parser = units::count)]
    pub count: Option<u64>,
    /// What random fields and faults follow from
    #[arg(long, default_value = "1")]
    pub seed: u64,
    /// Threads that send; each takes its share of the same frames
    #[arg(long, default_value = "1", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub workers: u16,
    /// What the frames are
    #[command(flatten)]
    pub frame: FrameArgs,
    /// How the run is run
    #[command(flatten)]
    pub run: RunArgs,
}

/// What frames are made of.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Frame")]
pub struct FrameArgs {
    /// Source MAC address [default: that of the interface]
    #[arg(long, value_name = "MAC")]
    pub src_mac: Option<Field<MacAddress>>,
    /// Destination MAC address
    #[arg(long, value_name = "MAC", default_value = "02:00:00:00:00:02")]
    pub dst_mac: Field<MacAddress>,
    /// VLAN tags, the outer one first
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub vlan: Vec<Field<u16>>,
    /// MPLS labels, the outer one first
    #[arg(long, value_name = "LABEL", value_delimiter = ',')]
    pub mpls: Vec<Field<u32>>,
    /// Source IPv4 or IPv6 addresses [default: 198.18.0.1 or 2001:2::1]
    #[arg(long, value_name = "IP")]
    pub src: Option<String>,
    /// Destination IPv4 or IPv6 addresses [default: 198.19.0.1 or 2001:2:0:1::1]
    #[arg(long, value_name = "IP")]
    pub dst: Option<String>,
    /// Time to live or hop limit
    #[arg(long, default_value = "64")]
    pub ttl: u8,
    /// Transport protocol
    #[arg(long, value_enum, default_value = "udp")]
    pub proto: Proto,
    /// Source ports
    #[arg(long, value_name = "PORT", default_value = "1024")]
    pub sport: Field<u16>,
    /// Destination ports
    #[arg(long, value_name = "PORT", default_value = "9")]
    pub dport: Field<u16>,
    /// Payload behind the stamp
    #[arg(long, value_enum, default_value = "zeros")]
    pub payload: Payload,
    /// What to put at the beginning of the payload for the receiver
    #[arg(long, value_enum, default_value = "linerate")]
    pub stamp: StampArg,
    /// Number of the stream in the stamp
    #[arg(long, default_value = "0")]
    pub stream: u16,
}

/// Transport protocols that frames are made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Proto {
    /// UDP
    Udp,
    /// TCP, a SYN
    Tcp,
    /// ICMP or ICMPv6 echo request
    Icmp,
    /// IP without a transport header
    None,
}

/// Payloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Payload {
    /// Zeros
    Zeros,
    /// 0, 1, 2, …
    Increment,
}

/// Stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StampArg {
    /// Sequence and ns time, 64 bits each
    Linerate,
    /// The header of the kernel's pktgen
    Pktgen,
    /// Nothing
    None,
}

impl FrameArgs {
    /// The template that these options describe.
    pub fn template(
        &self,
        size: Option<Field<u16>>,
        interface_mac: Option<MacAddress>,
    ) -> Result<TemplateSpec, Usage> {
        let mut spec = TemplateSpec { stream: self.stream, ..TemplateSpec::default() };
        if let Some(mac) = interface_mac {
            spec.source_mac = Field::Fixed(mac);
        }
        if let Some(mac) = self.src_mac {
            spec.source_mac = mac;
        }
        spec.destination_mac = self.dst_mac;
        spec.vlan_tags = self.vlan_tags();
        let label = |label: &Field<u32>| MplsSpec { label: *label, ..MplsSpec::default() };
        spec.mpls_labels = self.mpls.iter().map(label).collect();
        spec.network = self.network()?;
        spec.transport = self.transport();
        spec.payload = match self.payload {
            Payload::Zeros => PayloadFill::Zeros,
            Payload::Increment => PayloadFill::Incrementing,
        };
        spec.stamp = match self.stamp {
            StampArg::Linerate => Some(StampKind::Linerate),
            StampArg::Pktgen => Some(StampKind::Pktgen),
            StampArg::None => None,
        };
        spec.size = size.unwrap_or_else(|| {
            let least = u16::try_from(spec.frame_bytes_least()).unwrap_or(u16::MAX);
            Field::Fixed(least.max(SMALLEST_FRAME_BYTES))
        });
        Ok(spec)
    }

    /// A single tag is a customer's (0x8100); of several the outer one is a provider's (0x88a8).
    fn vlan_tags(&self) -> Vec<VlanSpec> {
        let outer = self.vlan.len().saturating_sub(1);
        let tag = |(place, id): (usize, &Field<u16>)| VlanSpec {
            tpid: if place < outer { 0x88a8 } else { 0x8100 },
            id: *id,
            ..VlanSpec::default()
        };
        self.vlan.iter().enumerate().map(tag).collect()
    }

    fn network(&self) -> Result<NetworkSpec, Usage> {
        // `random:` holds a colon itself; what follows decides.
        let is_ipv6 = |text: &String| text.trim_start_matches("random:").contains(':');
        if self.src.iter().chain(&self.dst).any(is_ipv6) {
            let mut ipv6 = Ipv6Spec { hop_limit: self.ttl, ..Ipv6Spec::default() };
            ipv6.source = parsed::<Ipv6Addr>("--src", &self.src)?.unwrap_or(ipv6.source);
            ipv6.destination = parsed::<Ipv6Addr>("--dst", &self.dst)?.unwrap_or(ipv6.destination);
            return Ok(NetworkSpec::Ipv6(ipv6));
        }
        let mut ipv4 = Ipv4Spec { ttl: self.ttl, ..Ipv4Spec::default() };
        ipv4.source = parsed::<Ipv4Addr>("--src", &self.src)?.unwrap_or(ipv4.source);
        ipv4.destination = parsed::<Ipv4Addr>("--dst", &self.dst)?.unwrap_or(ipv4.destination);
        Ok(NetworkSpec::Ipv4(ipv4))
    }

    fn transport(&self) -> TransportSpec {
        let (source_port, destination_port) = (self.sport, self.dport);
        match self.proto {
            Proto::Udp => {
                TransportSpec::Udp(UdpSpec { source_port, destination_port, ..UdpSpec::default() })
            }
            Proto::Tcp => {
                TransportSpec::Tcp(TcpSpec { source_port, destination_port, ..TcpSpec::default() })
            }
            Proto::Icmp => TransportSpec::IcmpEcho(IcmpEchoSpec::default()),
            Proto::None => TransportSpec::none(),
        }
    }
}

fn parsed<T>(option: &str, text: &Option<String>) -> Result<Option<Field<T>>, Usage>
where
    Field<T>: std::str::FromStr<Err: std::fmt::Display>,
{
    let parse = |text: &String| text.parse().map_err(|error| Usage(format!("{option}: {error}")));
    text.as_ref().map(parse).transpose()
}

/// Runs the verb.
pub fn run(args: &GenerateArgs) -> anyhow::Result<Exit> {
    let output = Output::new(args.run.json);
    let stop = Stop::new();
    let signals = Signals::install(&stop)?;
    let clock = Clock::new()?;
    check_workers(args)?;
    let template = template(args)?;
    let patience = Patience::new(&stop, args.run.duration);
    let first = engine::ports::open_tx(&args.port, args.run.require(), &patience)?;
    let description = first.describe();
    let is_overdue = stop.is_requested() && !signals.seen();
    let sender = Sender { args, template, clock: &clock, stop: &stop, is_overdue };
    let mut senders = vec![first];
    for _ in 1..args.workers {
        senders.push(engine::ports::open_tx(&args.port, args.run.require(), &patience)?);
    }
    output.object(
        "start",
        json!({
            "verb": "generate",
            "port": args.port.to_string(),
            "mechanism": description.mechanism,
            "rate": units::rate_in_words(args.rate),
            "workers": args.workers,
            "seed": args.seed,
        }),
    );
    output.say(&format!("{}: {}", args.port, description.mechanism));
    carrier::tell(&output, &args.port, Way::Out);
    output.say(&format!("rate: {}", units::rate_in_words(args.rate)));
    let workers = sender.workers(senders)?;
    let watch = Watch {
        output,
        verb: "generate",
        way: Way::Out,
        duration: args.run.duration.map(job::at_the_latest),
        packets: args.count,
        stop: stop.clone(),
    };
    let finished = job::run(workers, &clock, &watch, || {})?;
    let sent = Sent::of(finished);
    job::tell_events(&output, &args.port.to_string(), &sent.events);
    let ledger = Ledger { accounts: vec![sent.account(&args.port.to_string(), args.count)] };
    report(&output, args, &description.mechanism, &sent, &ledger, signals.seen());
    if let Some(error) = sent.error {
        return Err(error.into());
    }
    Ok(exit::of_ledger(&ledger))
}

/// A file has one writer: a second one would overwrite the first one's frames.
fn check_workers(args: &GenerateArgs) -> Result<(), Usage> {
    match args.port.kind {
        PortKind::Pcap if args.workers > 1 => Err(Usage(format!(
            "--workers {}: {} has one writer; use --workers 1, or an interface",
            args.workers, args.port
        ))),
        _ => Ok(()),
    }
}

fn template(args: &GenerateArgs) -> anyhow::Result<Template> {
    let interface_mac = args
        .port
        .interface()
        .and_then(|name| sys::link::Link::by_name(name).ok())
        .and_then(|link| link.mac)
        .map(|mac| MacAddress(mac.0));
    let spec = args.frame.template(args.size, interface_mac)?;
    spec.compile(args.seed).map_err(|error| Usage(error.to_string()).into())
}

/// Makes the workers that share one job.
pub struct Sender<'a> {
    args: &'a GenerateArgs,
    template: Template,
    clock: &'a Clock,
    stop: &'a Stop,
    /// The time was over before the port could be opened.
    is_overdue: bool,
}

impl Sender<'_> {
    fn workers<T: TxQueue>(
        &self,
        senders: Vec<T>,
    ) -> anyhow::Result<Vec<Worker<Generator, (), T>>> {
        let shares = senders.len() as u64;
        let plan = engine::plan::Plan::for_workers(senders.len(), self.args.run.cpu)?;
        let common = Arc::new(Common::default());
        let worker = |(number, tx): (usize, T)| {
            let limit = Limit {
                packets: self.args.count.map(|count| share(count, number as u64, shares)),
                duration_ns: self.args.run.duration.map(|duration| duration.as_nanos() as u64),
            };
            let template = self.template.clone();
            let generator = Generator::new(template, self.args.rate, limit, self.clock.clone());
            let generator = if self.is_overdue { generator.overdue() } else { generator };
            Worker {
                rx: generator.share(number as u64, shares, &common),
                stage: (),
                tx,
                cpu: plan.cpu(number),
                stop: self.stop.clone(),
                live: Arc::new(Live::default()),
            }
        };
        Ok(senders.into_iter().enumerate().map(worker).collect())
    }
}

/// Frames `number`, `number + shares`, … below `count`.
fn share(count: u64, number: u64, shares: u64) -> u64 {
    count.saturating_sub(number).div_ceil(shares)
}

fn report(
    output: &Output,
    args: &GenerateArgs,
    mechanism: &str,
    sent: &Sent,
    ledger: &Ledger,
    signalled: bool,
) {
    let seconds = sent.elapsed_ns as f64 / 1e9;
    let refused = ledger.accounts.first().and_then(|it| far_end::advice(&args.port, it));
    let shortfall = shortfall::in_words(args.rate, sent);
    let transmitted = ledger.transmitted();
    let packets = transmitted.map_or(0, |entry| entry.packets);
    let bytes = transmitted.and_then(|entry| entry.bytes);
    let pps = packets as f64 / seconds.max(1e-9);
    let bps = bytes.map(|bytes| bytes as f64 * 8.0 / seconds.max(1e-9));
    output.object(
        "result",
        json!({
            "verb": "generate",
            "port": args.port.to_string(),
            "plane": "user",
            "mechanism": mechanism,
            "intended_packets": ledger.accounts.first().and_then(|a| a.entered.first())
                .map(|entry| entry.packets),
            "generated_packets": sent.made.made_packets,
            "transmitted_packets": packets,
            "transmitted_bytes": bytes,
            "elapsed_ns": sent.elapsed_ns,
            "packets_per_s": pps.round(),
            "bits_per_s": bps.map(f64::round),
            "cpu_ns": sent.cpu_ns,
            "interrupted": signalled,
            "clock": sent.clock.as_ref().map(output::clock),
            "pacing": pacing(&sent.made.pacing),
            "advice": refused.as_ref().or(shortfall.as_ref()),
            "error": sent.error.as_ref().map(ToString::to_string),
            "ledger": ledger,
        }),
    );
    let bits = bps.map(|bps| format!(", {}bit/s without FCS", units::scaled(bps)));
    output.say(&format!(
        "{} in {} ({}pps{})",
        units::counted(packets, "packet"),
        units::ns_in_words(sent.elapsed_ns),
        units::scaled(pps),
        bits.unwrap_or_default()
    ));
    say_pacing(output, &sent.made.pacing);
    for advice in shortfall.iter().chain(&refused) {
        output.say(advice);
    }
    if let Some(clock) = &sent.clock {
        output.clock(clock);
    }
    output.ledger(ledger);
}

/// A pacing report as JSON.
pub fn pacing(report: &PacingReport) -> Value {
    json!({
        "stalls": report.stalls,
        "stall_ns_max": report.stall_ns_max,
        "late_packets": report.late_packets,
        "slipped_ns": report.slipped_ns,
    })
}

/// Says what a schedule suffered, if anything.
pub fn say_pacing(output: &Output, report: &PacingReport) {
    if report.stalls > 0 {
        output.say(&format!(
            "schedule: {} of up to {}; {} left late, in bursts; slipped by {}",
            units::counted(report.stalls, "stall"),
            units::ns_in_words(report.stall_ns_max),
            units::counted(report.late_packets, "packet"),
            units::ns_in_words(report.slipped_ns)
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_the_whole() {
        for (count, shares) in [(0, 1), (1, 3), (10, 3), (1_000_001, 4)] {
            let sum: u64 = (0..shares).map(|number| share(count, number, shares)).sum();
            assert_eq!(sum, count);
        }
    }
}
