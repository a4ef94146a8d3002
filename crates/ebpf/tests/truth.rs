//! Every filter means the same in the kernel's eBPF as for our evaluator, which libpcap has judged.
//!
//! Each program is loaded, so the verifier accepts it, and asked about frames by trial runs. With
//! `FILTER_EVERY_FRAME=1` each is asked about all frames of the corpus.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::atomic::{AtomicUsize, Ordering};

use ebpf::{Code, Verdict, part};
use filter::{Filter, Link, Packet, Program};
use oracle::frames::{ETHERNET, Frame, corpus};
use oracle::{Instruction, Libpcap, expressions};
use sys::bpf::TestContext;

/// Of each program one frame in so many is asked about.
const STEP: usize = 16;
/// What a trial run takes in one buffer.
const LINEAR_BYTES_MAX: usize = 3_000;
const THREADS: usize = 2;

/// Number of the loopback, where frames of a trial run are said to come from.
const LOOPBACK: u32 = 1;

fn frames() -> Vec<Frame> {
    let mut frames = corpus(ETHERNET);
    frames.retain(|frame| (14..=LINEAR_BYTES_MAX).contains(&frame.data.len()));
    assert!(frames.len() >= 2_000, "{}", frames.len());
    frames
}

fn texts() -> Vec<String> {
    let mut texts = expressions::hand_picked();
    texts.extend(expressions::generated(1, 4_500));
    texts
}

fn judging(program: &Program) -> Result<Code, part::PartError> {
    part::filter_program(program, Verdict::Pass, Verdict::Drop)
}

/// What is known of a frame in a trial run.
fn packet(frame: &Frame) -> Packet<'_> {
    Packet { outbound: Some(false), interface: Some(LOOPBACK), ..Packet::whole(&frame.data) }
}

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

#[derive(Default)]
struct Counts {
    programs: AtomicUsize,
    pairs: AtomicUsize,
    matches: AtomicUsize,
    longest: AtomicUsize,
    too_long: AtomicUsize,
}

#[test]
fn the_kernel_agrees_with_the_evaluator() {
    if !may_load("bpf::the_kernel_agrees_with_the_evaluator") {
        return;
    }
    let step = if std::env::var_os("FILTER_EVERY_FRAME").is_some() { 1 } else { STEP };
    let (frames, texts, counts) = (frames(), texts(), Counts::default());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (frames, texts, counts) = (&frames, &texts, &counts);
            scope.spawn(move || {
                for (place, text) in texts.iter().enumerate().skip(thread).step_by(THREADS) {
                    agrees(text, frames, place % step, step, counts);
                }
            });
        }
    });
    let [programs, pairs, matches, longest, too_long] =
        [&counts.programs, &counts.pairs, &counts.matches, &counts.longest, &counts.too_long]
            .map(|count| count.load(Ordering::Relaxed));
    println!(
        "{programs} programs, {pairs} pairs, {matches} matches, {longest} slots, {too_long} too long"
    );
    assert!(
        programs >= 4_000 && pairs >= 100 * programs && matches * 20 >= pairs,
        "{programs} {pairs} {matches}"
    );
    assert!(too_long <= 2, "{too_long}");
}

fn agrees(text: &str, frames: &[Frame], first: usize, step: usize, counts: &Counts) {
    let Ok(filter) = Filter::new(text, Link::Ethernet) else { return };
    let Some(program) = filter.program() else { return };
    let code = match judging(&program) {
        Ok(code) => code,
        Err(part::PartError::Assembly(ebpf::AssemblyError::TooFar { .. })) => {
            counts.too_long.fetch_add(1, Ordering::Relaxed);
            return;
        }
        Err(error) => panic!("{text:.200}: {error}\n{program}"),
    };
    let loaded = match code.load_xdp("filter", &[]) {
        Ok(loaded) => loaded,
        Err(error) => {
            panic!("{text:.200}: {error}\n{program}\n{code}\n{}", error.explanation())
        }
    };
    counts.programs.fetch_add(1, Ordering::Relaxed);
    counts.longest.fetch_max(code.instructions().len(), Ordering::Relaxed);
    for frame in frames.iter().skip(first).step_by(step) {
        let run = loaded.test_run(&frame.data, TestContext::default(), 1, &mut []).unwrap();
        let expected = filter.matches(&packet(frame));
        let verdict = if expected { Verdict::Pass } else { Verdict::Drop };
        assert_eq!(
            Verdict::of_number(run.verdict),
            Some(verdict),
            "{text:.200} on {} ({} bytes)\n{program}\n{code}",
            frame.kind,
            frame.data.len()
        );
        counts.pairs.fetch_add(1, Ordering::Relaxed);
        counts.matches.fetch_add(usize::from(expected), Ordering::Relaxed);
    }
}

/// libpcap's own programs are put together otherwise than ours, and mean the same, too.
#[test]
fn programs_of_libpcap_mean_the_same() {
    const NAME: &str = "bpf::programs_of_libpcap_mean_the_same";
    if !may_load(NAME) {
        return;
    }
    let libpcap = match Libpcap::load() {
        Ok(libpcap) => libpcap,
        Err(reason) => return testing::say_skipped(NAME, reason),
    };
    let frames = frames();
    let (mut programs, mut matches) = (0, 0);
    for (place, text) in texts().iter().enumerate().step_by(6) {
        let Ok(theirs) = libpcap.compile(text, ETHERNET, 262_144, true) else { continue };
        let instructions = theirs.instructions();
        if oracle::instruction::reads_unset_scratch(&instructions) || leads_back(&instructions) {
            continue;
        }
        let same =
            |i: &Instruction| filter::Instruction { code: i.code, jt: i.jt, jf: i.jf, k: i.k };
        let program = Program(instructions.iter().map(same).collect());
        let code = judging(&program).unwrap_or_else(|error| panic!("{text:.200}: {error}"));
        let loaded = code.load_xdp("filter", &[]).unwrap_or_else(|error| {
            panic!("{text:.200}: {error}\n{program}\n{code}\n{}", error.explanation())
        });
        programs += 1;
        for frame in frames.iter().skip(place % 64).step_by(64) {
            let run = loaded.test_run(&frame.data, TestContext::default(), 1, &mut []).unwrap();
            let expected = theirs.matches(&frame.data, frame.data.len() as u32);
            matches += usize::from(expected);
            let verdict = if expected { Verdict::Pass } else { Verdict::Drop };
            let ours = Verdict::of_number(run.verdict);
            assert_eq!(ours, Some(verdict), "{text:.200} on {}\n{program}\n{code}", frame.kind);
        }
    }
    println!("{programs} programs of libpcap, {matches} matches");
    assert!(programs >= 500 && matches >= 1_000, "{programs} {matches}");
}

/// `protochain` is a loop, and facts about a frame are no part of it in a file.
fn leads_back(instructions: &[Instruction]) -> bool {
    instructions.iter().any(|instruction| {
        instruction.code == 0x05 && instruction.k >= 1 << 31
            || matches!(instruction.code, 0x20 | 0x28 | 0x30) && instruction.k >= 0xffff_f000
    })
}
