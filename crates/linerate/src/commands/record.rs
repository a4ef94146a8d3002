//! `linerate record PORT --to DIR`: writes what arrives to pcapng segments.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use engine::live::Live;
use engine::stages::record::Record;
use engine::{Account, Finished, Ledger, Patience, Stop, Worker};
use port::limit::LimitedRx;
use port::null::Null;
use port::{PortDescription, PortSpec, Reason, RxQueue};
use serde_json::{Value, json};
use store::record::{Interface, LinkType, MAXIMUM_CAPTURED_LENGTH};
use store::recorder::{POOL_BYTES_MIN, Recorder, RecorderConfig, RecorderEvent, SEGMENT_BYTES_MIN};
use store::recover::RecoveryReport;
use sys::clock::Clock;

use crate::carrier::{self, Way};
use crate::commands::receive::InputArgs;
use crate::exit::{self, Exit};
use crate::job::{self, Watch};
use crate::output::{self, Output};
use crate::run_args::{self, RunArgs};
use crate::signals::Signals;
use crate::units;

/// Longer expressions are not repeated in each segment, whose first 64 KiB have other texts, too.
const FILTER_TEXT_BYTES_MAX: usize = 16_384;

/// Options of `record`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
The store is a directory of plain pcapng files that Wireshark and tcpdump open. What an earlier
recording left unfinished there is recovered first. A full disk does not end the recording: the
loss is counted as storage, writing goes on when there is room again, and the exit code is 5.

Examples:
  linerate record eth0 --to /data/capture
  linerate record eth0 --to store --duration 10s --json
  linerate record eth0 --to store --count 1M --snap 128
  linerate record eth0 --to store --filter 'tcp port 443'")]
pub struct RecordArgs {
    /// Where frames come from
    #[arg(value_parser = run_args::port)]
    pub port: PortSpec,
    /// Directory of the store; made if it does not exist
    #[arg(long, value_name = "DIR")]
    pub to: PathBuf,
    /// End after exactly this many frames, with --filter of those that match
    #[arg(long, value_parser = units::count)]
    pub count: Option<u64>,
    /// Length of a segment, at least 4MiB
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = segment)]
    pub segment: u64,
    /// Memory between the port and the disk, at least 4MiB
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = pool)]
    pub pool: u64,
    /// How to receive
    #[command(flatten)]
    pub input: InputArgs,
    /// How the run is run
    #[command(flatten)]
    pub run: RunArgs,
}

fn segment(text: &str) -> Result<u64, String> {
    units::bytes_from(SEGMENT_BYTES_MIN, text)
}

fn pool(text: &str) -> Result<u64, String> {
    units::bytes_from(POOL_BYTES_MIN, text)
}

/// Runs the verb.
pub fn run(args: &RecordArgs) -> anyhow::Result<Exit> {
    let output = Output::new(args.run.json);
    let stop = Stop::new();
    let signals = Signals::install(&stop)?;
    let clock = Clock::new()?;
    run_args::check_memory(&[args.input.memory(&args.port), ("--pool", args.pool)])?;
    let patience = Patience::new(&stop, args.run.duration);
    let rx = args.input.open(&args.port, args.run.require("record")?, &patience, output)?;
    let rx = LimitedRx::new(rx, args.count);
    let description = rx.describe();
    let mut config = RecorderConfig::new(&args.to, interface(&args.port, &description, args));
    config.segment_bytes = args.segment;
    config.pool_bytes = args.pool;
    let (recorder, recovered) = Recorder::open(config)?;
    let plan = engine::plan::Plan::for_workers(1, args.run.cpu)?;
    let engine = recorder.engine().to_string();
    let worker = Worker {
        rx,
        stage: Record::new(recorder),
        tx: Null::default(),
        cpu: plan.cpu(0),
        stop: stop.clone(),
        live: Arc::new(Live::default()),
    };
    let watch = Watch {
        output,
        verb: "record",
        way: Way::In,
        duration: args.run.duration,
        packets: args.count,
        stop: stop.clone(),
    };
    let tell = || {
        output.object(
            "start",
            json!({
                "verb": "record",
                "port": args.port.to_string(),
                "mechanism": description.mechanism,
                "to": args.to,
                "writer": engine,
                "plan": plan.to_string(),
                "recovered": recovery(&recovered),
            }),
        );
        output.say(&format!("{}: {}; {plan}", args.port, description.mechanism));
        carrier::tell(&output, &args.port, Way::In);
        output.say(&format!("to {}: {}", args.to.display(), engine));
        say_recovery(&output, &recovered);
    };
    let mut finished = job::run(vec![worker], &clock, &watch, tell)?;
    let Some(worker) = finished.pop() else { return Ok(Exit::Failure) };
    job::tell_events(&output, &args.port.to_string(), &worker.events);
    conclude(&output, args, worker, signals.seen())
}

fn conclude<R: RxQueue>(
    output: &Output,
    args: &RecordArgs,
    mut worker: Finished<R, Record, Null>,
    signalled: bool,
) -> anyhow::Result<Exit> {
    let stage = &worker.stage;
    for event in stage.events() {
        output.note(&event.to_string());
    }
    let counters = worker.rx.counters()?;
    let ledger = Ledger {
        accounts: vec![Account::of_receiver(&args.port.to_string(), &counters), stage.account()],
    };
    let stored = stage.summary().map(|summary| summary.counters.stored).unwrap_or_default();
    let segments = stage.summary().map(|summary| summary.segments.as_slice()).unwrap_or_default();
    let files: Vec<Value> = segments
        .iter()
        .map(|segment| {
            json!({"path": segment.path, "packets": segment.packets, "bytes": segment.bytes})
        })
        .collect();
    output.object(
        "result",
        json!({
            "verb": "record",
            "port": args.port.to_string(),
            "plane": "user",
            "mechanism": worker.rx.describe().mechanism,
            "to": args.to,
            "received_packets": counters.wire_packets,
            "filtered_packets": counters.filtered_packets,
            "recorded_packets": stored.packets,
            "recorded_bytes": stored.bytes,
            "lost_packets": ledger.lost_packets(),
            "segments": files,
            "elapsed_ns": worker.elapsed_ns,
            "cpu_ns": worker.cpu_ns,
            "interrupted": signalled,
            "clock": output::clock(&worker.clock),
            "error": worker.error.as_ref().map(ToString::to_string),
            "advice": advice(&ledger),
            "ledger": ledger,
        }),
    );
    output.say(&format!(
        "{}, {} recorded in {} to {}",
        units::counted(stored.packets, "packet"),
        units::counted(stored.bytes, "byte"),
        units::ns_in_words(worker.elapsed_ns),
        units::counted(files.len() as u64, "segment")
    ));
    output.clock(&worker.clock);
    output.ledger(&ledger);
    if let Some(advice) = advice(&ledger) {
        output.say(advice);
    }
    if let Some(error) = worker.error {
        return Err(error.into());
    }
    let misplaced = worker.stage.events().iter().any(is_misplaced);
    Ok(match exit::of_ledger(&ledger) {
        Exit::Success if misplaced => Exit::Storage,
        exit => exit,
    })
}

/// Whether a segment is not where and as it was to be in the end.
fn is_misplaced(event: &RecorderEvent) -> bool {
    matches!(
        event,
        RecorderEvent::SegmentRemoved { .. }
            | RecorderEvent::SegmentCut { .. }
            | RecorderEvent::SealFailed { .. }
    )
}

/// Which stage was late and what would help, where packets were lost.
fn advice(ledger: &Ledger) -> Option<&'static str> {
    let lost = |reason: Reason| ledger.lost_to(reason) > 0;
    if lost(Reason::Storage) {
        return Some(
            "lost at the disk: it was full or failed, or a segment was removed or cut; make room or \
             choose another --to",
        );
    }
    if lost(Reason::PoolEmpty) {
        return Some(
            "lost between port and disk: the disk is slower than the traffic; a larger --pool \
             covers longer bursts, a faster disk covers all",
        );
    }
    if lost(Reason::KernelRing) {
        return Some(
            "lost in the kernel's ring: the worker was late; a larger --ring covers longer pauses, \
             a CPU of its own (--cpu) avoids them",
        );
    }
    if lost(Reason::TooLong) {
        return Some(
            "lost since they were longer than a buffer: the MTU was raised meanwhile, or frames were \
             merged before they came; begin anew, or switch merging off (ethtool -K IF gro off lro off)",
        );
    }
    lost(Reason::Interface).then_some(
        "lost at the interface, before any program: the CPU that serves its interrupts is late",
    )
}

fn interface(spec: &PortSpec, description: &PortDescription, args: &RecordArgs) -> Interface {
    let snap_length = args.input.snap.unwrap_or(MAXIMUM_CAPTURED_LENGTH);
    let mut interface = Interface::new(LinkType(description.link_type), snap_length);
    interface.name = Some(spec.interface().map_or_else(|| spec.to_string(), str::to_owned));
    interface.description = Some(description.mechanism.clone());
    interface.filter = args.input.filter.clone().filter(|text| text.len() <= FILTER_TEXT_BYTES_MAX);
    interface.speed_bits_per_second = description.speed_bps;
    interface.mac = spec
        .interface()
        .and_then(|name| sys::link::Link::by_name(name).ok())
        .and_then(|link| link.mac)
        .map(|mac| mac.0);
    interface
}

fn recovery(report: &RecoveryReport) -> Value {
    json!({
        "segments": report.segments.len(),
        "packets_kept": report.packets_kept(),
        "packets_lost": report.packets_lost(),
        "bytes_lost": report.bytes_lost(),
        "passed_over": report.passed_over,
    })
}

/// Says what an earlier recording left behind and what became of it.
fn say_recovery(output: &Output, report: &RecoveryReport) {
    for path in &report.passed_over {
        output.note(&format!(
            "{} has the name of an open segment and is none; it was passed over: remove or rename \
             it",
            path.display()
        ));
    }
    if report.segments.is_empty() {
        return;
    }
    output.note(&format!(
        "recovered {} of an earlier recording: {} kept, {} known to be lost, {} cut",
        units::counted(report.segments.len() as u64, "unfinished segment"),
        units::counted(report.packets_kept(), "packet"),
        units::counted(report.packets_lost(), "packet"),
        units::counted(report.bytes_lost(), "byte")
    ));
}
