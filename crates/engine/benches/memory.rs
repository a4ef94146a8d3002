//! What one core makes of frames in memory: generator to null, generator to a memory ring to null, and
//! generator to recorder against a plain O_DIRECT writer in the same run.
//!
//! `cargo bench -p engine --bench memory` measures what stays in memory,
//! `cargo bench -p engine --bench memory -- DIRECTORY…` recording to each directory.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::generate::{Generator, Limit};
use engine::live::Live;
use engine::pacer::Rate;
use engine::stages::Stage;
use engine::{Finished, Stop, Worker};
use port::memory;
use port::null::Null;
use port::{Batch, RxCounters, RxQueue, TxQueue};
use store::record::{Interface, LinkType};
use store::recorder::{Append, Recorder, RecorderConfig, RecorderSummary};
use sys::clock::Clock;
use sys::direct_io::{DirectFile, DirectWriter, Engine, Wait};
use sys::memory::Buffers;
use wire::template::{Field, Ipv4Spec, NetworkSpec, TemplateSpec, TransportSpec, UdpSpec};

const ROUNDS: usize = 5;
const CHUNK_BYTES: usize = 1 << 20;
const POOL_BYTES: u64 = 128 << 20;

/// Addresses and source port step, checksums are right, the stamp is on unless said otherwise.
fn template(size: u16, stamp: bool) -> TemplateSpec {
    let ipv4 = Ipv4Spec {
        source: "10.0.0.0/16".parse().unwrap(),
        destination: "10.1.0.0/16".parse().unwrap(),
        ..Ipv4Spec::default()
    };
    let udp = UdpSpec { source_port: "1024-65535".parse().unwrap(), ..UdpSpec::default() };
    let spec = TemplateSpec {
        size: Field::Fixed(size),
        network: NetworkSpec::Ipv4(ipv4),
        transport: TransportSpec::Udp(udp),
        ..TemplateSpec::default()
    };
    if stamp { spec } else { TemplateSpec { stamp: None, ..spec } }
}

fn generator(spec: &TemplateSpec, packets: u64, clock: &Clock) -> Generator {
    let limit = Limit { packets: Some(packets), duration_ns: None };
    Generator::new(spec.compile(1).unwrap(), Rate::Unlimited, limit, clock.clone())
}

fn worker<R, S, T>(rx: R, stage: S, tx: T) -> Worker<R, S, T> {
    Worker { rx, stage, tx, cpu: Some(1), stop: Stop::new(), live: Arc::new(Live::default()) }
}

/// Runs on a thread of its own, as runs of the program do: a worker stays on its processor, and so
/// would all threads that a recorder starts afterwards from the same thread.
fn run<R, S, T>(worker: Worker<R, S, T>, clock: &Clock) -> Finished<R, S, T>
where
    R: RxQueue + Send,
    S: Stage + Send,
    T: TxQueue + Send,
{
    std::thread::scope(|scope| scope.spawn(|| worker.run(clock.clone())).join().unwrap())
}

/// Mpps of the generator into the null port.
fn to_null(spec: &TemplateSpec, packets: u64, clock: &Clock) -> f64 {
    let finished = run(worker(generator(spec, packets, clock), (), Null::default()), clock);
    packets as f64 * 1e3 / finished.elapsed_ns as f64
}

/// Mpps of one core that moves each batch through a memory ring and drops it behind.
fn through_memory(spec: &TemplateSpec, packets: u64, clock: &Clock) -> f64 {
    let (mut tx, mut rx) = memory::pair("bench", 4);
    let mut source = generator(spec, packets, clock);
    let mut sink = Null::default();
    let (mut outgoing, mut incoming) = (Batch::default(), Batch::default());
    let begun = Instant::now();
    source.start().unwrap();
    while source.receive(&mut outgoing).unwrap() > 0 {
        tx.transmit(&mut outgoing).unwrap();
        while rx.receive(&mut incoming).unwrap() > 0 {
            sink.transmit(&mut incoming).unwrap();
        }
    }
    assert_eq!(TxQueue::counters(&mut sink).unwrap().accepted_packets, packets);
    packets as f64 / begun.elapsed().as_secs_f64() / 1e6
}

/// Mpps and GB/s on disk of generator → recorder, where the generator waits for the recorder. From
/// the first packet to the last seal: the memory of the pool is made before, as the plain writer's is.
fn to_store(spec: &TemplateSpec, packets: u64, directory: &Path, clock: &Clock) -> (f64, f64) {
    let store = directory.join("linerate-bench-store");
    let mut config = RecorderConfig::new(&store, Interface::new(LinkType::ETHERNET, 0));
    config.pool_bytes = POOL_BYTES;
    config.sync_interval = None;
    let (recorder, _) = Recorder::open(config).unwrap();
    let begun = Instant::now();
    let source = Arriving { source: generator(spec, packets, clock), clock: clock.clone() };
    let stage = Patient { recorder: Some(recorder), summary: None };
    let finished = run(worker(source, stage, Null::default()), clock);
    let seconds = begun.elapsed().as_secs_f64();
    let summary = finished.stage.summary.unwrap();
    let bytes: u64 = summary.segments.iter().map(|segment| segment.bytes).sum();
    assert_eq!(summary.counters.stored.packets, packets);
    std::fs::remove_dir_all(&store).unwrap();
    (packets as f64 / seconds / 1e6, bytes as f64 / seconds / 1e9)
}

/// Records everything: waits while the disk is behind, as no port's traffic would.
struct Patient {
    recorder: Option<Recorder>,
    summary: Option<RecorderSummary>,
}

impl Stage for Patient {
    fn process(&mut self, batch: &mut Batch) -> engine::Result<()> {
        let recorder = self.recorder.as_mut().unwrap();
        while recorder.free_chunks() == 0 {
            std::thread::sleep(Duration::from_micros(50));
        }
        for frame in batch.frames() {
            let kept = recorder.append(frame.meta.time_ns, frame.data, frame.meta.wire_length);
            assert_eq!(kept, Append::Stored);
        }
        batch.clear();
        Ok(())
    }

    fn finish(&mut self, _: &RxCounters) -> engine::Result<()> {
        self.summary = Some(self.recorder.take().unwrap().finish()?);
        Ok(())
    }
}

/// Stamps arrival times, which a generator's frames do not have, once per batch.
struct Arriving {
    source: Generator,
    clock: Clock,
}

impl RxQueue for Arriving {
    fn start(&mut self) -> port::Result<()> {
        self.source.start()
    }
    fn receive(&mut self, batch: &mut Batch) -> port::Result<usize> {
        let count = self.source.receive(batch)?;
        batch.set_time(self.clock.realtime_ns());
        Ok(count)
    }
    fn wait(&mut self, timeout: Duration) -> port::Result<()> {
        self.source.wait(timeout)
    }
    fn stop(&mut self) -> port::Result<()> {
        self.source.stop()
    }
    fn is_finished(&mut self) -> port::Result<bool> {
        self.source.is_finished()
    }
    fn counters(&mut self) -> port::Result<RxCounters> {
        self.source.counters()
    }
    fn describe(&self) -> port::PortDescription {
        self.source.describe()
    }
}

/// GB/s of writing as many bytes, in the recorder's chunks, by the same writer without a recorder.
fn plain_writer(bytes: u64, directory: &Path) -> f64 {
    let path = directory.join("linerate-bench-plain");
    let pool = Buffers::new(32, CHUNK_BYTES).unwrap();
    let region = Arc::clone(pool.region());
    let mut writer = DirectWriter::new(Engine::Auto, 16, &[region]).unwrap();
    let file = Arc::new(DirectFile::create(&path).unwrap());
    let begun = Instant::now();
    file.preallocate(bytes).unwrap();
    let mut free: Vec<_> = pool.split().into_iter().collect();
    let (mut offset, mut done) = (0, Vec::new());
    while offset < bytes || writer.in_flight() > 0 {
        if offset < bytes
            && writer.in_flight() < 16
            && let Some(buffer) = free.pop()
        {
            writer.submit(&file, offset, buffer, CHUNK_BYTES, 0).unwrap();
            offset += CHUNK_BYTES as u64;
            continue;
        }
        writer.complete(Wait::One, &mut done).unwrap();
        free.extend(done.drain(..).map(|completion| completion.buffer));
    }
    file.sync_data().unwrap();
    let rate = bytes as f64 / begun.elapsed().as_secs_f64() / 1e9;
    std::fs::remove_file(&path).unwrap();
    rate
}

fn median(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let (first, last) = (values[0], values[values.len() - 1]);
    format!("{:8.2} [{first:.2}-{last:.2}]", values[values.len() / 2])
}

fn main() {
    let clock = Clock::new().unwrap();
    let arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with('-'));
    let directories: Vec<String> = arguments.collect();
    if directories.is_empty() {
        in_memory(&clock);
    }
    for directory in directories {
        to_disk(Path::new(&directory), &clock);
    }
}

fn in_memory(clock: &Clock) {
    let runs = |run: &dyn Fn() -> f64| median((0..ROUNDS).map(|_| run()).collect());
    for (name, spec, packets) in [
        ("60 B, fields step, stamped", template(60, true), 60_000_000),
        ("60 B, fields step", template(60, false), 60_000_000),
        ("1514 B, fields step, stamped", template(1514, true), 6_000_000),
    ] {
        println!(
            "generate to null     {name:<30} Mpps {}",
            runs(&|| to_null(&spec, packets, clock))
        );
        println!(
            "through a memory ring {name:<29} Mpps {}",
            runs(&|| through_memory(&spec, packets, clock))
        );
    }
}

fn to_disk(directory: &Path, clock: &Clock) {
    for (size, packets) in [(1514, 4_000_000), (60, 40_000_000)] {
        let spec = template(size, true);
        let bytes = (packets * (u64::from(size) + 36)).next_multiple_of(CHUNK_BYTES as u64);
        let (mut mpps, mut ours, mut plain) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            plain.push(plain_writer(bytes, directory));
            let (rate, gigabytes) = to_store(&spec, packets, directory, clock);
            mpps.push(rate);
            ours.push(gigabytes);
        }
        let shares = ours.iter().zip(&plain).map(|(ours, plain)| 100.0 * ours / plain).collect();
        let shown = directory.display();
        println!("record {size} B to {shown}: Mpps {}  GB/s {}", median(mpps), median(ours));
        println!("  plain O_DIRECT writer GB/s {}; share % {}", median(plain), median(shares));
    }
}
