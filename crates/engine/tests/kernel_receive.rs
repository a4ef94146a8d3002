//! The program that receives in the kernel counts, follows and measures as the meter of the user plane does.
//!
//! Random frames go through the program by trial runs, and through the meter with the time of arrival that the
//! program took: the reports are the same. With `RECEIVE_EVERY_CASE=1` there are 25,000 sequences of them.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

#[path = "kernel_receive/frames.rs"]
mod frames;
#[path = "kernel_receive/streams.rs"]
mod streams;

use std::time::{SystemTime, UNIX_EPOCH};

use ebpf::Verdict;
use ebpf::program::receive::{Job, State};
use engine::stages::Stage;
use engine::stages::meter::{Meter, MeterReport};
use filter::{Filter, Link};
use frames::{frame, one_in};
use port::{Batch, FrameMeta};
use streams::Numbers;
use sys::bpf::{Binding, Program, TestContext};
use sys::clock::monotonic_ns;
use wire::random::Random;
use wire::stamp;

const ETHERNET: u16 = 1;
const CASES: usize = 1_500;
/// Streams that a case takes: at the end of them there are more than are followed.
const STREAMS: u64 = 3;
/// Sequences that share one program.
const CASES_OF_A_PROGRAM: usize = 100;
/// Where the clock of the test begins, in ns since the Unix epoch.
const BEGIN_NS: u64 = 1_700_000_000_000_000_000;

fn may_load(test: &str) -> bool {
    match sys::bpf::Support::probe().loading {
        Ok(()) => true,
        Err(error) => {
            assert_eq!(error.kind(), sys::Kind::Permission, "{error}");
            testing::say_skipped(test, error);
            false
        }
    }
}

fn job() -> Job {
    let (counted, others) = (Verdict::Drop, Verdict::Pass);
    Job { filter: None, count: None, counted, others, is_alone: true }
}

fn load(job: &Job) -> (State, Program) {
    let state = State::create().unwrap();
    let code = job.code(&state).unwrap();
    let program = code
        .load_xdp_for("receive", &state.maps(), true, Binding::default())
        .unwrap_or_else(|error| panic!("{error}\n{code}\n{}", error.explanation()));
    (state, program)
}

/// Both planes, and a clock for them.
struct Planes {
    state: State,
    program: Program,
    meter: Meter,
    batch: Batch,
    now_ns: u64,
}

impl Planes {
    fn new(job: &Job) -> Self {
        let (state, program) = load(job);
        let (meter, batch) = (Meter::new(ETHERNET), Batch::new(16_384));
        Self { state, program, meter, batch, now_ns: BEGIN_NS }
    }

    /// Shows both a frame that arrives about `gap_ns` behind the one before.
    fn see(&mut self, gap_ns: u64, data: &[u8]) {
        self.now_ns = self.now_ns.max(self.state.last_time_ns()) + gap_ns;
        self.state.set_offset(self.now_ns.wrapping_sub(monotonic_ns()));
        let run = self.program.test_run(data, TestContext::default(), 1, &mut []).unwrap();
        assert_eq!(Verdict::of_number(run.verdict), Some(Verdict::Drop));
        self.meter_sees(self.state.last_time_ns(), data);
    }

    fn meter_sees(&mut self, time_ns: u64, data: &[u8]) {
        // The kernel plane verifies no checksum.
        let meta = FrameMeta { time_ns, checksum_pending: true, ..FrameMeta::local(data.len()) };
        self.batch.clear();
        assert!(self.batch.push(data, meta));
        self.meter.process(&mut self.batch).unwrap();
    }

    fn compare(&self, what: &dyn Fn() -> String) -> MeterReport {
        let figures = self.state.read();
        assert_eq!(figures.contended_packets, 0);
        let (kernel, user) = (MeterReport::from(&figures), self.meter.report());
        for (theirs, ours) in kernel.streams.iter().zip(&user.streams) {
            assert_eq!(theirs, ours, "{}", what());
        }
        assert!(kernel == user, "{}: {}", what(), difference(&kernel, &user));
        kernel
    }
}

fn difference(kernel: &MeterReport, user: &MeterReport) -> String {
    let short = |report: &MeterReport| {
        let values = |h: &engine::histogram::Histogram| (h.count(), h.min(), h.max(), h.mean());
        format!(
            "{} packets, {} bytes, {} stamped, {} untracked, {} negative, {} backward, {} to {}, {:?}, {:?}",
            report.packets,
            report.bytes,
            report.stamped_packets,
            report.untracked_packets,
            report.negative_latency_packets,
            report.backward_packets,
            report.first_time_ns,
            report.last_time_ns,
            values(&report.latency_ns),
            values(&report.inter_arrival_ns)
        )
    };
    format!("kernel {}\nuser {}", short(kernel), short(user))
}

/// One sequence of frames of a few streams, one of which may be pktgen's.
fn case(random: &mut Random, planes: &mut Planes, first_stream: u64) -> Vec<String> {
    let mut streams: Vec<Numbers> = (0..STREAMS).map(|_| Numbers::new(random)).collect();
    let mut told = Vec::new();
    let frames = if one_in(random, 8) { 1_000 } else { 20 + random.below(200) };
    for _ in 0..frames {
        let place = random.below(STREAMS);
        let (sequence, clock_ns) = streams[place as usize].next(random);
        let mut payload = [0; stamp::LINERATE_BYTES];
        let spread = [50, 100_000, 1 << 40][random.below(3) as usize];
        let gap_ns = 1 + random.below(spread);
        // Streams have clocks of their own; sometimes one is ahead, and sometimes there is none.
        let sent_ns = match random.below(40) {
            0 => BEGIN_NS << 1,
            1 => 0,
            _ => BEGIN_NS - 2_000_000 + clock_ns,
        };
        let is_pktgen = first_stream + place == 0;
        let kind = if is_pktgen { stamp::StampKind::Pktgen } else { stamp::StampKind::Linerate };
        if !one_in(random, 20) {
            let stream = (first_stream + place) as u16;
            assert!(stamp::write(kind, &mut payload, stream, sequence, sent_ns));
        }
        let data = frame(random, &payload);
        told.push(format!("stream {place} number {sequence} sent {sent_ns}: {data:02x?}"));
        planes.see(gap_ns, &data);
    }
    told
}

#[test]
fn both_planes_see_the_same() {
    if !may_load("bpf::both_planes_see_the_same") {
        return;
    }
    let every = std::env::var_os("RECEIVE_EVERY_CASE").is_some();
    let cases = if every { 25_000 } else { CASES };
    let (mut planes, mut report) = (Planes::new(&job()), MeterReport::default());
    let mut sums = [0; 9];
    for place in 0..cases {
        let within = place % CASES_OF_A_PROGRAM;
        if within == 0 {
            add(&mut sums, &report);
            // Every other program has a lock.
            let is_alone = (place / CASES_OF_A_PROGRAM).is_multiple_of(2);
            planes = Planes::new(&Job { is_alone, ..job() });
        }
        let mut random = Random::new(place as u64);
        let told = case(&mut random, &mut planes, STREAMS * within as u64);
        report = planes.compare(&|| format!("sequence {place}: {}", told.join("\n")));
    }
    add(&mut sums, &report);
    let [packets, stamped, untracked, lost, reordered, duplicate, beyond, restarts, negative] =
        sums;
    println!(
        "{cases} sequences, {packets} frames, {stamped} stamped, {untracked} untracked, {lost} lost, \
         {reordered} reordered, {duplicate} duplicate, {beyond} beyond, {restarts} restarts, {negative} negative"
    );
    assert!(stamped * 2 > packets && packets > stamped && sums.iter().all(|sum| *sum > 100));
}

fn add(sums: &mut [u64; 9], report: &MeterReport) {
    let totals = report.totals();
    let values = [
        report.packets,
        report.stamped_packets,
        report.untracked_packets,
        totals.lost_packets,
        totals.reordered_packets,
        totals.duplicate_packets,
        totals.beyond_window_packets,
        totals.restarts,
        report.negative_latency_packets,
    ];
    for (sum, value) in sums.iter_mut().zip(values) {
        *sum += value;
    }
}

/// The clock is set back between two frames.
#[test]
fn frames_that_arrive_before_the_one_ahead_are_counted() {
    if !may_load("bpf::frames_that_arrive_before_the_one_ahead_are_counted") {
        return;
    }
    let mut planes = Planes::new(&job());
    let data = [0; 60];
    planes.see(1_000, &data);
    let last_ns = planes.state.last_time_ns();
    planes.state.set_offset((BEGIN_NS - 1_000_000_000_000).wrapping_sub(monotonic_ns()));
    planes.program.test_run(&data, TestContext::default(), 3, &mut []).unwrap();
    for _ in 0..3 {
        planes.meter_sees(BEGIN_NS - 1, &data);
    }
    planes.see(1_000, &data);
    let report = planes.compare(&String::new);
    assert_eq!(
        (report.packets, report.backward_packets, report.inter_arrival_ns.count()),
        (5, 3, 1)
    );
    assert!(report.first_time_ns == last_ns && report.last_time_ns > last_ns);
}

#[test]
fn frames_are_filtered_and_counted_out() {
    if !may_load("bpf::frames_are_filtered_and_counted_out") {
        return;
    }
    let filter = Filter::new("ether[12:2] = 0x88b5", Link::Ethernet).unwrap().program();
    let counted = Verdict::Pass;
    let (state, program) =
        load(&Job { filter, count: Some(3), counted, others: Verdict::Drop, is_alone: false });
    let mut wanted = [0; 9_014];
    wanted[12..14].copy_from_slice(&[0x88, 0xb5]);
    let mut verdicts = Vec::new();
    for bytes in [60, 9_014, 14, 61, 62] {
        for data in [&wanted[..bytes], &[0; 100]] {
            let run = program.test_run(data, TestContext::default(), 1, &mut []).unwrap();
            verdicts.push(run.verdict);
        }
    }
    assert_eq!(verdicts, [2, 1, 2, 1, 2, 1, 1, 1, 1, 1]);
    let figures = state.read();
    assert_eq!((figures.packets, figures.bytes), (3, 60 + 9_014 + 14));
    assert_eq!((figures.filtered_packets, figures.beyond_count_packets), (5, 2));
    assert_eq!(state.packets_and_bytes(), (figures.packets, figures.bytes));
}

/// Four threads give the program frames of one stream, each a quarter of the numbers.
#[test]
fn one_stream_may_come_by_several_cpus() {
    if !may_load("bpf::one_stream_may_come_by_several_cpus") {
        return;
    }
    const THREADS: u64 = 4;
    const NUMBERS: u64 = 20_000;
    let (state, program) = load(&Job { is_alone: false, ..job() });
    let begin_ns = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    state.set_offset(begin_ns.wrapping_sub(monotonic_ns()));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let program = &program;
            scope.spawn(move || {
                for number in (thread..NUMBERS).step_by(THREADS as usize) {
                    let mut data = [0; 60];
                    data[12..14].copy_from_slice(&[0x88, 0xb5]);
                    assert!(stamp::write(
                        stamp::StampKind::Linerate,
                        &mut data[14..],
                        5,
                        number,
                        1
                    ));
                    program.test_run(&data, TestContext::default(), 1, &mut []).unwrap();
                }
            });
        }
    });
    let figures = state.read();
    let stream = figures.streams.first().unwrap();
    assert_eq!((figures.packets, figures.stamped_packets), (NUMBERS, NUMBERS));
    assert_eq!((stream.stream, stream.duplicate_packets, stream.restarts), (5, 0, 0));
    assert_eq!(stream.received_packets + figures.contended_packets, NUMBERS);
    assert_eq!(stream.lost_packets, figures.contended_packets);
}
