//! `linerate receive PORT`: counts what arrives and measures loss, order, latency and gaps.

mod kernel;

use std::sync::Arc;

use clap::{Args, ValueEnum};
use engine::histogram::Histogram;
use engine::live::Live;
use engine::stages::meter::{Meter, MeterReport};
use engine::{Account, Ledger, Patience, Stop, Worker};
use port::limit::LimitedRx;
use port::null::Null;
use port::packet::{RING_BYTES, RING_BYTES_MIN, RxOptions};
use port::xdp::{RX_RING_BYTES, Require};
use port::{PortKind, PortSpec, RxQueue};
use serde_json::{Value, json};
use sys::clock::Clock;

use crate::carrier::{self, Way};
use crate::exit::{self, Exit};
use crate::expression::Expression;
use crate::filtered_port;
use crate::job::{self, Watch};
use crate::output::{self, Output};
use crate::plane::{Choice, Plane};
use crate::run_args::{self, RunArgs};
use crate::signals::Signals;
use crate::units;

/// Options of `receive`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Frames with linerate's stamp or the header of the kernel's pktgen are followed by number: loss,
reordering, duplicates and latency. Frames with a wrong checksum count as corrupt. Latency is
arrival time less the time in the stamp: between two machines it is only as good as their clocks.

Examples:
  linerate receive eth0 --duration 10s
  linerate receive eth0 --count 1M --ring 256MiB
  linerate receive eth0 --filter 'udp port 53 and not host 10.0.0.1'
  linerate receive xdp:eth0@0-3 --require native
  linerate receive eth0 --plane kernel --duration 10s
  linerate receive pcap:trace.pcapng --json")]
pub struct ReceiveArgs {
    /// Where frames come from
    #[arg(value_parser = run_args::port)]
    pub port: PortSpec,
    /// End after exactly this many frames, with --filter of those that match
    #[arg(long, value_parser = units::count)]
    pub count: Option<u64>,
    /// Where frames are measured: by a program of ours in the kernel, which verifies no checksums, or
    /// by this process [default: user]
    #[arg(long, value_enum)]
    pub plane: Option<Plane>,
    /// What becomes of frames that were measured in the kernel [default: drop]
    #[arg(long, value_enum)]
    pub counted: Option<Counted>,
    /// How to receive
    #[command(flatten)]
    pub input: InputArgs,
    /// How the run is run
    #[command(flatten)]
    pub run: RunArgs,
}

/// What becomes of frames that were measured in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Counted {
    /// They end there
    Drop,
    /// The host receives them
    Pass,
}

/// Options of receiving ports.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Input")]
pub struct InputArgs {
    /// Memory of the kernel's ring, at least 2MiB [default: 64MiB, of xdp: 256MiB]
    #[arg(long, value_name = "SIZE", value_parser = ring)]
    pub ring: Option<u64>,
    /// Take only frames that match this expression of the pcap filter language, tcpdump's
    #[arg(long, value_name = "EXPR")]
    pub filter: Option<String>,
    /// Keep only this many bytes of each frame
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..))]
    pub snap: Option<u32>,
    /// Receive only what is addressed to this host
    #[arg(long)]
    pub no_promiscuous: bool,
}

fn ring(text: &str) -> Result<u64, String> {
    units::bytes_from(RING_BYTES_MIN as u64, text)
}

impl InputArgs {
    /// Memory that receiving from `port` takes, by option.
    pub fn memory(&self, port: &PortSpec) -> (&'static str, u64) {
        // Files have no ring.
        ("--ring", port.interface().map_or(0, |_| self.ring_bytes(port)))
    }

    fn ring_bytes(&self, port: &PortSpec) -> u64 {
        let usual = if port.kind == PortKind::Xdp { RX_RING_BYTES } else { RING_BYTES };
        self.ring.unwrap_or(usual as u64)
    }

    /// Opens the port.
    pub fn open(
        &self,
        port: &PortSpec,
        require: Option<Require>,
        patience: &Patience,
        output: Output,
    ) -> anyhow::Result<Box<dyn RxQueue>> {
        let options = self.options(port);
        Ok(match &self.filter {
            None => engine::ports::open_rx(port, &options, require, patience)?,
            Some(text) => {
                let expression = Expression::new(text, output)?;
                filtered_port::open_rx(&expression, port, &options, require, patience)?
            }
        })
    }

    /// What a port wants to know.
    fn options(&self, port: &PortSpec) -> RxOptions {
        RxOptions {
            ring_bytes: usize::try_from(self.ring_bytes(port)).unwrap_or(usize::MAX),
            snap_bytes: self.snap.unwrap_or(u32::MAX),
            promiscuous: !self.no_promiscuous,
        }
    }
}

/// Runs the verb.
pub fn run(args: &ReceiveArgs) -> anyhow::Result<Exit> {
    let output = Output::new(args.run.json);
    let stop = Stop::new();
    let signals = Signals::install(&stop)?;
    let clock = Clock::new()?;
    let choice = Choice::of(args.plane, &args.run, &args.port, false)?;
    let plane_reason = match kernel::run(args, choice, &stop, &signals, &clock, output)? {
        kernel::Outcome::Done(exit) => return Ok(exit),
        kernel::Outcome::Fallback(reason) => reason,
    };
    if let Some(reason) = &plane_reason {
        output.note(&format!("{}: user plane, since {reason}", args.port));
    }
    run_args::check_memory(&[args.input.memory(&args.port)])?;
    let patience = Patience::new(&stop, args.run.duration);
    let rx = args.input.open(&args.port, args.run.require_of_user_plane(), &patience, output)?;
    let rx = LimitedRx::new(rx, args.count);
    let plan = engine::plan::Plan::for_workers(1, args.run.cpu)?;
    let description = rx.describe();
    let worker = Worker {
        rx,
        stage: Meter::new(description.link_type),
        tx: Null::default(),
        cpu: plan.cpu(0),
        stop: stop.clone(),
        live: Arc::new(Live::default()),
    };
    let watch = Watch {
        output,
        verb: "receive",
        way: Way::In,
        duration: args.run.duration,
        packets: args.count,
        stop: stop.clone(),
    };
    let tell = || {
        output.object(
            "start",
            json!({
                "verb": "receive",
                "port": args.port.to_string(),
                "mechanism": description.mechanism,
                "plan": plan.to_string(),
            }),
        );
        output.say(&format!("{}: {}; {plan}", args.port, description.mechanism));
        carrier::tell(&output, &args.port, Way::In);
    };
    let mut finished = job::run(vec![worker], &clock, &watch, tell)?;
    let Some(mut worker) = finished.pop() else { return Ok(Exit::Failure) };
    job::tell_events(&output, &args.port.to_string(), &worker.events);
    let counters = worker.rx.counters()?;
    let ledger = Ledger { accounts: vec![Account::of_receiver(&args.port.to_string(), &counters)] };
    let report = worker.stage.report();
    let mut fields = json!({
        "verb": "receive",
        "port": args.port.to_string(),
        "plane": "user",
        "plane_reason": plane_reason,
        "mechanism": description.mechanism,
        "elapsed_ns": worker.elapsed_ns,
        "cpu_ns": worker.cpu_ns,
        "interrupted": signals.seen(),
        "clock": output::clock(&worker.clock),
        "error": worker.error.as_ref().map(ToString::to_string),
        "filtered_packets": counters.filtered_packets,
        "ledger": ledger,
    });
    merge(&mut fields, measured(&report));
    streams(&output, &report);
    output.object("result", fields);
    say(&output, &report, worker.elapsed_ns, Plane::User);
    output.clock(&worker.clock);
    output.ledger(&ledger);
    if let Some(error) = worker.error {
        return Err(error.into());
    }
    Ok(exit::of_ledger(&ledger))
}

/// Adds the fields of one JSON object to another.
pub fn merge(into: &mut Value, from: Value) {
    if let (Value::Object(into), Value::Object(from)) = (into, from) {
        into.extend(from);
    }
}

/// What a meter saw, as JSON.
pub fn measured(report: &MeterReport) -> Value {
    let totals = report.totals();
    let span_ns = report.last_time_ns.saturating_sub(report.first_time_ns);
    let per_second =
        |value: u64| (span_ns > 0).then(|| (value as f64 / (span_ns as f64 / 1e9)).round());
    json!({
        "received_packets": report.packets,
        "received_bytes": report.bytes,
        "stamped_packets": report.stamped_packets,
        "lost_packets": totals.lost_packets,
        "reordered_packets": totals.reordered_packets,
        "reorder_extent_max": totals.reorder_extent_max,
        "duplicate_packets": totals.duplicate_packets,
        "corrupt_packets": report.corrupt_packets,
        "cut_packets": report.cut_packets,
        "beyond_window_packets": totals.beyond_window_packets,
        "untracked_packets": report.untracked_packets,
        "restarts": totals.restarts,
        "negative_latency_packets": report.negative_latency_packets,
        "backward_packets": report.backward_packets,
        "first_time_ns": report.first_time_ns,
        "last_time_ns": report.last_time_ns,
        "packets_per_s": per_second(report.packets),
        "bits_per_s": per_second(report.bytes * 8),
        "latency_ns": distribution(&report.latency_ns),
        "inter_arrival_ns": distribution(&report.inter_arrival_ns),
    })
}

/// A histogram's percentiles as JSON; null when it is empty.
pub fn distribution(histogram: &Histogram) -> Value {
    if histogram.count() == 0 {
        return Value::Null;
    }
    json!({
        "count": histogram.count(),
        "min": histogram.min(),
        "mean": histogram.mean(),
        "p50": histogram.percentile(0.50),
        "p90": histogram.percentile(0.90),
        "p99": histogram.percentile(0.99),
        "p999": histogram.percentile(0.999),
        "p9999": histogram.percentile(0.9999),
        "max": histogram.max(),
    })
}

/// One line for each stream, where there are several.
fn streams(output: &Output, report: &MeterReport) {
    for (stream, seen) in &report.streams {
        output.object(
            "stream",
            json!({
                "stream": stream,
                "received_packets": seen.received_packets,
                "lost_packets": seen.lost_packets,
                "reordered_packets": seen.reordered_packets,
                "duplicate_packets": seen.duplicate_packets,
                "restarts": seen.restarts,
            }),
        );
    }
}

/// What a meter saw, for people.
fn say(output: &Output, report: &MeterReport, elapsed_ns: u64, plane: Plane) {
    if report.packets == 0 {
        output.say(&format!("no packet arrived in {}", units::ns_in_words(elapsed_ns)));
        return;
    }
    let totals = report.totals();
    let span_ns = report.last_time_ns.saturating_sub(report.first_time_ns);
    let mut text = format!(
        "{}, {}",
        units::counted(report.packets, "packet"),
        units::counted(report.bytes, "byte")
    );
    // A single moment has no rate.
    if span_ns > 0 {
        let seconds = span_ns as f64 / 1e9;
        text.push_str(&format!(
            " in {} ({}pps, {}bit/s without FCS)",
            units::ns_in_words(span_ns),
            units::scaled(report.packets as f64 / seconds),
            units::scaled(report.bytes as f64 * 8.0 / seconds)
        ));
    }
    output.say(&text);
    if report.stamped_packets > 0 {
        output.say(&format!(
            "{} stamped: {} lost, {} reordered (by {} at most), {} duplicate",
            units::grouped(report.stamped_packets),
            units::grouped(totals.lost_packets),
            units::grouped(totals.reordered_packets),
            units::grouped(totals.reorder_extent_max),
            units::grouped(totals.duplicate_packets)
        ));
    }
    output.say(&match plane {
        Plane::User => format!("{} corrupt", units::grouped(report.corrupt_packets)),
        Plane::Kernel => "corrupt: not known, no checksum is verified in the kernel".to_owned(),
    });
    if report.cut_packets > 0 {
        output.say(&format!(
            "{} cut: their checksums are not verified, nor stamps behind the cut seen",
            units::grouped(report.cut_packets)
        ));
    }
    say_distribution(output, "latency      ", &report.latency_ns);
    say_distribution(output, "inter-arrival", &report.inter_arrival_ns);
}

fn say_distribution(output: &Output, name: &str, histogram: &Histogram) {
    let shown = |share| histogram.percentile(share).map_or_else(String::new, units::ns_in_words);
    if let (Some(min), Some(mean), Some(max)) = (histogram.min(), histogram.mean(), histogram.max())
    {
        output.say(&format!(
            "{name}  min {}  mean {}  p50 {}  p99 {}  p99.9 {}  max {}",
            units::ns_in_words(min),
            units::ns_in_words(mean),
            shown(0.5),
            shown(0.99),
            shown(0.999),
            units::ns_in_words(max)
        ));
    }
}
