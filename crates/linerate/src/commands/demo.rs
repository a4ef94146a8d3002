//! `linerate demo`: the main job from end to end on a network of its own.
//!
//! generate → veth → record; find one flow; replay it → veth → receive. Every place's account is
//! shown, and the places are held against each other.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use clap::Args;
use engine::generate::{Generator, Limit};
use engine::live::Live;
use engine::paced::{Pace, Paced};
use engine::pacer::Rate;
use engine::stages::Stage;
use engine::stages::meter::{Meter, MeterReport};
use engine::stages::record::Record;
use engine::{Account, EngineError, Entry, Finished, Ledger, Stop, Worker};
use port::null::Null;
use port::packet::{PacketRx, PacketTx, RxOptions};
use port::{RxCounters, RxQueue, TxQueue};
use serde_json::json;
use store::NewFile;
use store::file_port::RecordRx;
use store::find::Find;
use store::record::{Interface, LinkType, MAXIMUM_CAPTURED_LENGTH};
use store::recorder::{Recorder, RecorderConfig, RecorderSummary};
use store::selection::Selection;
use sys::clock::{Clock, ClockReport};
use wire::template::{
    Field, Ipv4Spec, NetworkSpec, Template, TemplateSpec, TransportSpec, UdpSpec,
};

use crate::carrier::Way;
use crate::commands::generate::Sent;
use crate::commands::receive::measured;
use crate::commands::replay::{source_account, transmitted};
use crate::exit::{self, Exit, Usage};
use crate::job::{self, Watch};
use crate::network::{Network, RECEIVER, SENDER};
use crate::output::{self, Output};
use crate::scratch::Scratch;
use crate::signals::Signals;
use crate::units;

/// Source addresses of the demo's traffic, one flow each: a step field walks them in turn.
const FLOWS: u32 = 250;

/// The flow that is looked for.
const WANTED: u32 = 42;

/// Where the recording lies in the demo's directory.
const STORE: &str = "store";

/// The flow that was found, in the same directory.
const FOUND: &str = "found.pcapng";

/// How long the receiver waits for the last frames when the sender is done.
const SETTLE: Duration = Duration::from_secs(2);

/// Options of `demo`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
The network is two namespaces of this process: nothing of the machine's is touched. What is recorded
goes to a directory for temporary files and is removed at the end. With --to DIR the recording stays
in DIR/store, and the flow that was found in DIR/found.pcapng; a DIR that holds either is refused.

Examples:
  linerate demo
  linerate demo --count 100k --rate max
  linerate demo --to /data/demo --json")]
pub struct DemoArgs {
    /// Frames to generate
    #[arg(long, default_value = "1M", value_parser = units::count)]
    pub count: u64,
    /// How fast
    #[arg(long, default_value = "200kpps", value_parser = units::rate)]
    pub rate: Rate,
    /// Frame size in bytes without FCS
    #[arg(long, default_value = "60")]
    pub size: u16,
    /// Keep DIR/store and DIR/found.pcapng [default: a temporary directory that is removed]
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
    /// Leave the receiving end's NAPI on the sender's CPU
    #[arg(long)]
    pub no_threaded_napi: bool,
    /// Print JSON, one object a line, the last with "kind":"result" or "error"
    #[arg(long)]
    pub json: bool,
}

/// Runs the verb.
pub fn run(args: &DemoArgs) -> anyhow::Result<Exit> {
    let output = Output::new(args.json);
    let template = template(args)?.compile(1).map_err(|error| Usage(error.to_string()))?;
    // Before a network is made for nothing.
    if let Some(path) = &args.to {
        refuse_what_is_used(path)?;
    }
    // Before any thread is started: a user namespace takes a single-threaded process.
    let network = Network::make(!args.no_threaded_napi)?;
    let stop = Stop::new();
    let signals = Signals::install(&stop)?;
    let demo =
        Demo { output, clock: Clock::new()?, stop, network, directory: Directory::of(args)? };
    demo.introduce();
    let mut story = Story::default();
    let outcome = demo.steps(args, template, &mut story, &signals);
    // What came before a step that failed is accounted for.
    if story.ledger.accounts.is_empty() {
        outcome?;
        return Ok(Exit::Failure);
    }
    let exit = demo.conclude(&story, signals.seen(), outcome.as_ref().err());
    outcome.map(|()| exit)
}

/// Where the recording lies, and whether it goes away with the program.
struct Directory {
    path: PathBuf,
    scratch: Option<Scratch>,
}

impl Directory {
    fn of(args: &DemoArgs) -> anyhow::Result<Self> {
        if let Some(path) = &args.to {
            return Ok(Self { path: path.clone(), scratch: None });
        }
        let scratch = Scratch::make(&std::env::temp_dir())?;
        Ok(Self { path: scratch.path().to_owned(), scratch: Some(scratch) })
    }

    fn found(&self) -> PathBuf {
        self.path.join(FOUND)
    }

    fn store(&self) -> PathBuf {
        self.path.join(STORE)
    }

    /// `path` if it is there and stays there.
    fn kept(&self, path: PathBuf) -> Option<PathBuf> {
        (self.scratch.is_none() && path.exists()).then_some(path)
    }
}

/// What an earlier demo left would be found beside this one's packets, or be overwritten.
fn refuse_what_is_used(directory: &Path) -> Result<(), Usage> {
    // A link that leads nowhere is something, too. What cannot be looked at fails where it is used.
    let used = [STORE, FOUND].map(|name| directory.join(name));
    match used.iter().find(|path| path.symlink_metadata().is_ok()) {
        Some(path) => Err(Usage(format!(
            "--to {}: {} is there already, perhaps from an earlier demo, and would be mixed with \
             this one; name another directory or remove it",
            directory.display(),
            path.display()
        ))),
        None => Ok(()),
    }
}

struct Demo {
    output: Output,
    clock: Clock,
    stop: Stop,
    network: Network,
    directory: Directory,
}

/// What has happened so far.
#[derive(Default)]
struct Story {
    ledger: Ledger,
    generated_packets: u64,
    recorded_packets: u64,
    found_packets: u64,
    replayed_packets: u64,
    received_packets: u64,
    received: MeterReport,
    clock: Option<ClockReport>,
}

impl Story {
    /// Adds what a clock of the run did.
    fn time(&mut self, clock: ClockReport) {
        self.clock = Some(self.clock.map_or(clock, |so_far| so_far.or_worse(clock)));
    }
}

impl Demo {
    fn steps(
        &self,
        args: &DemoArgs,
        template: Template,
        story: &mut Story,
        signals: &Signals,
    ) -> anyhow::Result<()> {
        self.record(args, template, story)?;
        if !signals.seen() {
            self.find(args, story)?;
        }
        if !signals.seen() {
            self.replay(story)?;
        }
        Ok(())
    }

    fn introduce(&self) {
        self.output.object(
            "start",
            json!({
                "verb": "demo",
                "rights": self.network.rights,
                "threaded_napi": self.network.receiving.is_threaded(),
                "napi": self.network.receiving.to_json(),
                "directory": self.directory.path,
            }),
        );
        self.output.say(&format!(
            "network: two namespaces of this process, {SENDER} <-> {RECEIVER}, by the rights of {}",
            self.network.rights
        ));
        self.output.say(&format!("far end {RECEIVER}: {}", self.network.receiving.in_words()));
    }

    fn open_rx(&self) -> anyhow::Result<PacketRx> {
        let open = || PacketRx::open(RECEIVER, &RxOptions::default());
        Ok(self.network.receiver.run(open)??)
    }

    fn open_tx(&self) -> anyhow::Result<PacketTx> {
        Ok(self.network.sender.run(|| PacketTx::open(SENDER))??)
    }

    /// generate → record.
    fn record(&self, args: &DemoArgs, template: Template, story: &mut Story) -> anyhow::Result<()> {
        let mut interface = Interface::new(LinkType::ETHERNET, MAXIMUM_CAPTURED_LENGTH);
        interface.name = Some(RECEIVER.into());
        let config = RecorderConfig::new(self.directory.store(), interface);
        let (recorder, _) = Recorder::open(config)?;
        self.output.say(&format!(
            "generate {} of {} at {} in {FLOWS} flows, record them: {}",
            units::counted(args.count, "frame"),
            units::counted(args.size.into(), "byte"),
            units::rate_in_words(args.rate),
            recorder.engine()
        ));
        let limit = Limit { packets: Some(args.count), duration_ns: None };
        let source = Generator::new(template, args.rate, limit, self.clock.clone());
        let (sent, mut arrived) =
            self.exchange("generate", source, Record::new(recorder), Some(args.count))?;
        story.time(arrived.clock.or_worse(sent.rx.clock().report()));
        let sent = Sent::of(vec![sent]);
        let received = arrived.rx.counters()?;
        let transmit = sent.account(&format!("packet:{SENDER}"), Some(args.count));
        story.ledger.accounts.push(transmit);
        story.generated_packets = sent.made.made_packets;
        self.connect(story, &received);
        story.ledger.accounts.push(arrived.stage.account());
        story.recorded_packets = arrived.stage.summary().map_or(0, stored);
        say_rate(&self.output, &sent);
        fail(sent.error)?;
        fail(arrived.error)
    }

    /// One flow, out of all.
    fn find(&self, args: &DemoArgs, story: &mut Story) -> anyhow::Result<()> {
        let host = IpAddr::V4(source(WANTED));
        let selection = Selection { hosts: vec![host], ports: vec![9], ..Selection::default() };
        let begun = Instant::now();
        let mut find = Find::open(&[self.directory.store()], selection)?;
        let file = NewFile::create(self.directory.found(), || true)?;
        let copied = crate::commands::find::copy(&mut find, file.sink()?, |_| true);
        story.found_packets = find.report().packets_found;
        story.ledger.accounts.push(crate::commands::find::account(&find));
        copied.map_err(|error| file.settle(error))?;
        self.output.say(&format!(
            "find --host {host} --port 9: {} of {} in {}",
            units::grouped(story.found_packets),
            units::counted(story.recorded_packets, "packet"),
            units::ns_in_words(begun.elapsed().as_nanos() as u64)
        ));
        // Every frame was sent and recorded in turn: the flow's share is known to the packet.
        if story.recorded_packets == args.count {
            let left = args.count.saturating_sub(u64::from(WANTED));
            let expected = left.div_ceil(u64::from(FLOWS));
            story.ledger.connect(
                "find: frames of the flow",
                Entry::packets("recorded", expected),
                Entry::packets("found", story.found_packets),
            );
        }
        Ok(())
    }

    /// replay → receive.
    fn replay(&self, story: &mut Story) -> anyhow::Result<()> {
        let find = Find::open(&[self.directory.found()], Selection::default())?;
        let pace = Pace::Rate(Rate::Packets(10_000.0));
        self.output.say("replay what was found at 10 kpps, receive it:");
        let source = Paced::new(RecordRx::new(find), pace, self.clock.clone());
        let meter = Meter::new(source.describe().link_type);
        let (mut sent, mut arrived) =
            self.exchange("replay", source, meter, Some(story.found_packets))?;
        story.time(arrived.clock.or_worse(sent.rx.clock().report()));
        let read = sent.rx.counters()?;
        let received = arrived.rx.counters()?;
        story.ledger.accounts.push(source_account(&read));
        story.ledger.accounts.push(Account::of_sender(
            &format!("packet:{SENDER}"),
            Entry::new("intended", read.delivered_packets, read.delivered_bytes),
            &sent.unsent,
            &sent.tx.counters()?,
        ));
        story.replayed_packets = transmitted(&story.ledger);
        self.connect(story, &received);
        story.received = arrived.stage.report();
        story.received_packets = story.received.packets;
        fail(sent.error)?;
        fail(arrived.error)
    }

    /// Runs a source into the sending end and a stage behind the receiving end, until the source
    /// is done and its frames have arrived.
    fn exchange<R: RxQueue, S: Stage>(
        &self,
        verb: &'static str,
        source: R,
        stage: S,
        packets: Option<u64>,
    ) -> anyhow::Result<Exchanged<R, S>> {
        let (rx, tx) = (self.open_rx()?, self.open_tx()?);
        let plan = engine::plan::Plan::for_workers(2, None)?;
        let (received, transmitted) = (Arc::new(Live::default()), Arc::new(Live::default()));
        let end = Stop::new();
        let sink = Worker {
            rx,
            stage,
            tx: Null::default(),
            cpu: plan.cpu(1),
            stop: end.clone(),
            live: Arc::clone(&received),
        };
        let sender = Worker {
            rx: source,
            stage: (),
            tx,
            cpu: plan.cpu(0),
            stop: self.stop.clone(),
            live: Arc::clone(&transmitted),
        };
        let watch = Watch {
            output: self.output,
            verb,
            way: Way::Out,
            duration: None,
            packets,
            stop: self.stop.clone(),
        };
        std::thread::scope(|scope| {
            let clock = self.clock.clone();
            let thread =
                std::thread::Builder::new().spawn_scoped(scope, move || sink.run(clock)).map_err(
                    |source| sys::Error::of_thread("starting the receiver's thread", source),
                )?;
            // A frame sent before the receiver has begun would be nobody's.
            while received.started.get() == 0 && !thread.is_finished() {
                std::thread::sleep(Duration::from_millis(1));
            }
            let sent = job::run(vec![sender], &self.clock, &watch, || {});
            settle(&received, &transmitted);
            end.request();
            let arrived = thread.join().map_err(|_| anyhow!("the receiving worker ended early"))?;
            let sent = sent?.pop().ok_or_else(|| anyhow!("the sending worker ended early"))?;
            Ok((sent, arrived))
        })
    }

    /// What the sender's device transmitted arrived at the receiver's socket.
    fn connect(&self, story: &mut Story, received: &RxCounters) {
        let sent = transmitted(&story.ledger);
        story.ledger.connect(
            &format!("veth {SENDER} -> {RECEIVER}"),
            Entry::packets("transmitted", sent),
            Entry::packets("wire", received.wire_packets),
        );
        let account = Account::of_receiver(&format!("packet:{RECEIVER}"), received);
        story.ledger.accounts.push(account);
    }

    fn conclude(&self, story: &Story, interrupted: bool, error: Option<&anyhow::Error>) -> Exit {
        let clock = story.clock.unwrap_or_else(|| self.clock.report());
        let recording = self.directory.kept(self.directory.store());
        let found = self.directory.kept(self.directory.found());
        self.output.object(
            "result",
            json!({
                "verb": "demo",
                "rights": self.network.rights,
                "threaded_napi": self.network.receiving.is_threaded(),
                "napi": self.network.receiving.to_json(),
                "generated_packets": story.generated_packets,
                "recorded_packets": story.recorded_packets,
                "found_packets": story.found_packets,
                "replayed_packets": story.replayed_packets,
                "received_packets": story.received_packets,
                "received": measured(&story.received),
                "kept": self.directory.kept(self.directory.path.clone()),
                "recording": recording,
                "found": found,
                "interrupted": interrupted,
                "error": error.map(|error| format!("{error:#}")),
                "clock": output::clock(&clock),
                "ledger": story.ledger,
            }),
        );
        self.output.clock(&clock);
        self.output.ledger(&story.ledger);
        self.output.say(&format!(
            "generated {}, recorded {}, found {}, replayed {}, received again {}",
            units::grouped(story.generated_packets),
            units::grouped(story.recorded_packets),
            units::grouped(story.found_packets),
            units::grouped(story.replayed_packets),
            units::grouped(story.received_packets)
        ));
        for (what, path) in [("recording", recording), ("flow that was found", found)] {
            if let Some(path) = path {
                self.output.say(&format!("the {what} is in {}", path.display()));
            }
        }
        let whole = story.received_packets == story.replayed_packets;
        if whole { exit::of_ledger(&story.ledger) } else { Exit::Failure }
    }
}

/// A sender and a receiver after their run.
type Exchanged<R, S> = (Finished<R, (), PacketTx>, Finished<PacketRx, S, Null>);

/// Waits until what was sent has arrived or was lost, for a while.
fn settle(received: &Live, transmitted: &Live) {
    let begun = Instant::now();
    let arrived = || received.received_packets.get() + received.dropped_packets.get();
    while arrived() < transmitted.transmitted_packets.get() && begun.elapsed() < SETTLE {
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn source(flow: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(198, 18, 0, 1)) + flow)
}

fn template(args: &DemoArgs) -> anyhow::Result<TemplateSpec> {
    let sources = format!("{}-{}", source(0), source(FLOWS - 1));
    let ipv4 = Ipv4Spec { source: sources.parse()?, ..Ipv4Spec::default() };
    let udp = UdpSpec { source_port: "1024-65535/7".parse()?, ..UdpSpec::default() };
    Ok(TemplateSpec {
        size: Field::Fixed(args.size),
        network: NetworkSpec::Ipv4(ipv4),
        transport: TransportSpec::Udp(udp),
        ..TemplateSpec::default()
    })
}

fn stored(summary: &RecorderSummary) -> u64 {
    summary.counters.stored.packets
}

fn say_rate(output: &Output, sent: &Sent) {
    let seconds = (sent.elapsed_ns as f64 / 1e9).max(1e-9);
    output.say(&format!(
        "  {}pps sent in {}",
        units::scaled(sent.port.accepted_packets as f64 / seconds),
        units::ns_in_words(sent.elapsed_ns)
    ));
}

fn fail(error: Option<EngineError>) -> anyhow::Result<()> {
    error.map_or(Ok(()), |error| Err(error.into()))
}
