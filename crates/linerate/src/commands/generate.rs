//! `linerate generate PORT`: frames of a template, at a rate, a number of them or for a time.

mod frame;
mod sent;
mod shortfall;

pub use sent::Sent;

use std::sync::Arc;

use clap::Args;
use engine::generate::{Common, Generator, Limit};
use engine::live::Live;
use engine::pacer::{PacingReport, Rate};
use engine::{Ledger, Patience, Stop, Worker};
use port::{PortKind, PortSpec, TxQueue};
use serde_json::{Value, json};
use sys::clock::Clock;
use wire::MacAddress;
use wire::template::{Field, Template};

use crate::carrier::{self, Way};
use crate::exit::{self, Exit, Usage};
use crate::far_end;
use crate::job::{self, Watch};
use crate::output::{self, Output};
use crate::run_args::{self, RunArgs};
use crate::signals::Signals;
use crate::units;

use frame::FrameArgs;

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

/// Runs the verb.
pub fn run(args: &GenerateArgs) -> anyhow::Result<Exit> {
    let output = Output::new(args.run.json);
    let stop = Stop::new();
    let signals = Signals::install(&stop)?;
    let clock = Clock::new()?;
    check_workers(args)?;
    let template = template(args)?;
    let patience = Patience::new(&stop, args.run.duration);
    let first = engine::ports::open_tx(&args.port, args.run.require_of_user_plane(), &patience)?;
    let description = first.describe();
    let is_overdue = stop.is_requested() && !signals.seen();
    let sender = Sender { args, template, clock: &clock, stop: &stop, is_overdue };
    let mut senders = vec![first];
    for _ in 1..args.workers {
        senders.push(engine::ports::open_tx(
            &args.port,
            args.run.require_of_user_plane(),
            &patience,
        )?);
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
