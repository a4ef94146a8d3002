//! `linerate replay STORE|FILE --onto PORT`: recorded packets, sent again.

mod unfit;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use engine::live::Live;
use engine::paced::{Pace, PaceReport, Paced};
use engine::pacer::Rate;
use engine::{Account, Entry, Ledger, Patience, Stop, Worker};
use port::fit::FittingTx;
use port::limit::LimitedRx;
use port::{Losses, PortKind, PortSpec, Reason, RxQueue, TxQueue};
use serde_json::{Value, json};
use store::file_port::RecordRx;
use store::find::Find;
use store::record::LinkType;
use sys::clock::Clock;

use crate::carrier::{self, Way};
use crate::commands::find::{SelectionArgs, undecided};
use crate::commands::generate::{pacing, say_pacing};
use crate::commands::overwrite::refuse_to_overwrite;
use crate::commands::receive::distribution;
use crate::exit::{self, Exit, Usage};
use crate::far_end;
use crate::job::{self, Watch};
use crate::output::{self, Output};
use crate::run_args::{self, RunArgs};
use crate::signals::Signals;
use crate::units;

/// Options of `replay`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Without --rate and --speed packets leave with the gaps of the recording. How far each left from
its time is measured and reported. Packets that the port cannot take (longer than its MTU allows)
are left out and counted, the others are sent, and the exit code is 4.

Examples:
  linerate replay store --onto eth0
  linerate replay trace.pcap --onto packet:eth0 --speed 10
  linerate replay store --from -1h --host 10.0.0.1 --onto eth0 --rate 10kpps")]
pub struct ReplayArgs {
    /// Stores (directories) and capture files
    #[arg(required = true, value_name = "STORE", value_parser = run_args::store)]
    pub stores: Vec<PathBuf>,
    /// Where the packets go
    #[arg(long, value_name = "PORT", value_parser = run_args::port)]
    pub onto: PortSpec,
    /// A rate of its own: 10kpps, 1Gbps, max
    #[arg(long, value_parser = units::rate)]
    pub rate: Option<Rate>,
    /// The recording's pace times this factor
    #[arg(long, value_name = "FACTOR", conflicts_with = "rate", allow_negative_numbers = true)]
    pub speed: Option<f64>,
    /// End after exactly this many packets
    #[arg(long, value_parser = units::count)]
    pub count: Option<u64>,
    /// Which packets
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// How the run is run
    #[command(flatten)]
    pub run: RunArgs,
}

impl ReplayArgs {
    fn pace(&self) -> Result<Pace, Usage> {
        match (self.rate, self.speed) {
            (Some(rate), _) => Ok(Pace::Rate(rate)),
            (None, None) => Ok(Pace::Recorded(1.0)),
            (None, Some(factor)) if factor.is_finite() && factor > 0.0 => {
                Ok(Pace::Recorded(factor))
            }
            (None, Some(factor)) => Err(Usage(format!(
                "--speed {factor}: expected a factor above 0, such as 10 or 0.5"
            ))),
        }
    }
}

/// Runs the verb.
pub fn run(args: &ReplayArgs) -> anyhow::Result<Exit> {
    let output = Output::new(args.run.json);
    let stop = Stop::new();
    let signals = Signals::install(&stop)?;
    let clock = Clock::new()?;
    let pace = args.pace()?;
    let find = Find::open(&args.stores, args.selection.selection()?)?;
    if args.onto.kind == PortKind::Pcap {
        let option = format!("--onto {}", args.onto);
        refuse_to_overwrite(&option, std::fs::metadata(&args.onto.target), &args.stores)?;
    }
    let patience = Patience::new(&stop, args.run.duration);
    let tx = engine::ports::open_tx(&args.onto, args.run.require("replay")?, &patience)?;
    let description = tx.describe();
    let plan = engine::plan::Plan::for_workers(1, args.run.cpu)?;
    output.object(
        "start",
        json!({
            "verb": "replay",
            "onto": args.onto.to_string(),
            "mechanism": description.mechanism,
            "pace": pace_in_words(pace),
            "plan": plan.to_string(),
        }),
    );
    output.say(&format!("{}: {}; {plan}", args.onto, description.mechanism));
    carrier::tell(&output, &args.onto, Way::Out);
    output.say(&format!("pace: {}", pace_in_words(pace)));
    let source = RecordRx::new(find).of_link_type(LinkType(description.link_type));
    let worker = Worker {
        rx: Paced::new(LimitedRx::new(source, args.count), pace, clock.clone())
            .lasting(args.run.duration),
        stage: (),
        tx: FittingTx::new(tx),
        cpu: plan.cpu(0),
        stop: stop.clone(),
        live: Arc::new(Live::default()),
    };
    let watch = Watch {
        output,
        verb: "replay",
        way: Way::Out,
        duration: args.run.duration.map(job::at_the_latest),
        packets: args.count,
        stop: stop.clone(),
    };
    let mut finished = job::run(vec![worker], &clock, &watch, || {})?;
    let Some(mut worker) = finished.pop() else { return Ok(Exit::Failure) };
    job::tell_events(&output, &args.onto.to_string(), &worker.events);
    let paced = worker.rx.report();
    let found = worker.rx.inner().inner().source().report().clone();
    let time = worker.rx.clock().report().or_worse(worker.clock);
    let counters = worker.rx.counters()?;
    let unfit = worker.tx.unfit();
    worker.unsent.add(Reason::Rejected, unfit.map_or(0, |unfit| unfit.packets));
    let ledger = Ledger {
        accounts: vec![
            source_account(&counters),
            Account::of_sender(
                &args.onto.to_string(),
                Entry::new("intended", counters.delivered_packets, counters.delivered_bytes),
                &worker.unsent,
                &worker.tx.counters()?,
            ),
        ],
    };
    let advice = ledger.accounts.last().and_then(|it| far_end::advice(&args.onto, it));
    for problem in found
        .problems
        .iter()
        .chain(&found.warnings)
        .chain(&undecided(&found))
        .chain(&of_other_link_type(&counters))
        .chain(&unfit.map(|unfit| unfit::in_words(&args.onto, &worker.tx.describe(), &unfit)))
    {
        output.note(&format!("linerate: {problem}"));
    }
    output.object(
        "result",
        json!({
            "verb": "replay",
            "onto": args.onto.to_string(),
            "plane": "user",
            "mechanism": description.mechanism,
            "found_packets": counters.wire_packets - counters.beyond_count_packets,
            "undecided_packets": found.packets_undecided,
            "replayed_packets": transmitted(&ledger),
            "replayed_bytes": ledger.transmitted().and_then(|entry| entry.bytes),
            "elapsed_ns": worker.elapsed_ns,
            "cpu_ns": worker.cpu_ns,
            "pace": pace_report(&paced),
            "unfit": unfit.as_ref().map(unfit::to_json),
            "interrupted": signals.seen(),
            "clock": output::clock(&time),
            "advice": advice,
            "problems": found.problems,
            "warnings": found.warnings,
            "error": worker.error.as_ref().map(ToString::to_string),
            "ledger": ledger,
        }),
    );
    say(&output, transmitted(&ledger), worker.elapsed_ns, &paced);
    if let Some(advice) = &advice {
        output.say(advice);
    }
    output.clock(&time);
    output.ledger(&ledger);
    if let Some(error) = worker.error {
        return Err(error.into());
    }
    Ok(match exit::of_ledger(&ledger) {
        Exit::Success if unfit.is_some() => Exit::Port,
        Exit::Success if !found.problems.is_empty() => Exit::Capture,
        exit => exit,
    })
}

/// What to say of packets that no Ethernet port carries, if there are any.
fn of_other_link_type(counters: &port::RxCounters) -> Option<String> {
    (counters.filtered_packets > 0).then(|| {
        let packets = units::counted(counters.filtered_packets, "packet");
        format!("{packets} of another link type than Ethernet (other_link_type): not sent")
    })
}

/// What came out of the recording: read = of another link type + behind the last wanted one + given
/// out + still held when stopped.
pub fn source_account(counters: &port::RxCounters) -> Account {
    let mut account = Account::new("read");
    account.entered.push(Entry::packets("read", counters.wire_packets));
    account.left.push(Entry::packets("other_link_type", counters.filtered_packets));
    if counters.beyond_count_packets > 0 {
        account.left.push(Entry::packets("beyond_count", counters.beyond_count_packets));
    }
    account.left.push(Entry::new("given", counters.delivered_packets, counters.delivered_bytes));
    let mut held = Losses::default();
    held.merge(&counters.dropped);
    account.lose(&held, &[Reason::Interrupted]);
    account
}

/// Packets that the last port of a ledger transmitted.
pub fn transmitted(ledger: &Ledger) -> u64 {
    ledger.transmitted().map_or(0, |entry| entry.packets)
}

fn pace_in_words(pace: Pace) -> String {
    match pace {
        Pace::Recorded(1.0) => "as recorded".into(),
        Pace::Recorded(factor) => format!("as recorded, {factor} times as fast"),
        Pace::Rate(rate) => units::rate_in_words(rate),
    }
}

/// How well a replay kept its times, as JSON.
pub fn pace_report(report: &PaceReport) -> Value {
    json!({
        "asked_ns": report.asked_ns,
        "achieved_ns": report.achieved_ns,
        "error_share": error_share(report),
        "delay_ns": distribution(&report.delay_ns),
        "backward_packets": report.backward_packets,
        "schedule": pacing(&report.pacing),
    })
}

/// By how much the achieved time exceeds the asked one, as a share of it.
fn error_share(report: &PaceReport) -> Option<f64> {
    let asked = report.asked_ns as f64;
    (report.asked_ns > 0).then(|| (report.achieved_ns as f64 - asked) / asked)
}

fn say(output: &Output, packets: u64, elapsed_ns: u64, report: &PaceReport) {
    output.say(&format!(
        "{} in {}",
        units::counted(packets, "packet"),
        units::ns_in_words(elapsed_ns)
    ));
    if let Some(share) = error_share(report) {
        output.say(&format!(
            "pace: asked {}, achieved {} ({:+.3} %)",
            units::ns_in_words(report.asked_ns),
            units::ns_in_words(report.achieved_ns),
            share * 100.0
        ));
    }
    if let (Some(median), Some(p99), Some(max)) =
        (report.delay_ns.percentile(0.5), report.delay_ns.percentile(0.99), report.delay_ns.max())
    {
        output.say(&format!(
            "each packet behind its time by p50 {}, p99 {}, max {}",
            units::ns_in_words(median),
            units::ns_in_words(p99),
            units::ns_in_words(max)
        ));
    }
    if report.backward_packets > 0 {
        output.say(&format!(
            "recorded with a time before that of the packet ahead, and sent at once: {}",
            units::counted(report.backward_packets, "packet")
        ));
    }
    say_pacing(output, &report.pacing);
}
