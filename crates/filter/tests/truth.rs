//! Every expression means what libpcap says that it means, on every frame of a corpus.
//!
//! The reference is libpcap's program before its optimiser: that one removes loads, which
//! changes answers about cut frames. What is left out has a name and a reason, in [`Fate`], and is
//! counted. `FILTER_EXPRESSIONS=50000` tries as many generated ones.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::sync::Mutex;

use filter::parse::parse;
use filter::syntax::{ByteTest, Expression, Kind, Primitive};
use filter::{Filter, Link, Packet};
use oracle::frames::{self, Frame, corpus};
use oracle::{Compiled, Instruction, Libpcap, expressions, instruction};

/// Of this one the exceptions are counted; others may have more or fewer.
const COUNTED: &str = "libpcap version 1.10.3";

const SNAP_BYTES: u32 = 262_144;

/// libpcap looks up protocols by a function of the C library that two threads must not call at once.
static COMPILING: Mutex<()> = Mutex::new(());

/// What became of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    /// Both have a filter, and all answers were the same.
    Agreed,
    Refused,
    /// Refused by both because no frame can match, by libpcap only while it optimises.
    Empty,
    /// Its optimiser refuses what no frame can match, and we accept a filter that matches nothing.
    EmptyForLibpcapAlone,
    /// We refuse what no frame can match, and its optimiser did not see it.
    EmptyForUsAlone,
    /// `protochain` needs a loop, and is refused here by name.
    ProtocolChain,
    /// libpcap forgets to load the byte of `byte N & M` and `byte N | M`.
    ByteWithBits,
    /// libpcap's program reads memory that it did not set: its answer is left to chance.
    UnsetMemory,
}

type Counts = BTreeMap<Fate, usize>;

/// Pairs of an expression and a frame that each test compares at least.
const PAIRS_MIN: u64 = 5_000 * 2_000;

/// So many of each fate.
fn expected(counts: [usize; 8]) -> Counts {
    let fates = [
        Fate::Agreed,
        Fate::Refused,
        Fate::Empty,
        Fate::EmptyForLibpcapAlone,
        Fate::EmptyForUsAlone,
        Fate::ProtocolChain,
        Fate::ByteWithBits,
        Fate::UnsetMemory,
    ];
    fates.into_iter().zip(counts).filter(|(_, count)| *count > 0).collect()
}

struct Judge {
    libpcap: Libpcap,
    link: Link,
    number: u16,
    frames: Vec<Frame>,
}

impl Judge {
    fn compile(&self, text: &str, optimise: bool) -> Result<Compiled, String> {
        let _alone = COMPILING.lock().unwrap();
        self.libpcap.compile(text, self.number, SNAP_BYTES, optimise)
    }

    /// What became of `text`, or in which way it is wrong here.
    fn judge(&self, text: &str) -> Result<Fate, String> {
        let (theirs, ours) = match (self.compile(text, false), Filter::new(text, self.link)) {
            (Err(_), Err(_)) => return Ok(Fate::Refused),
            (Err(message), Ok(_)) => return Err(format!("libpcap refuses it: {message}")),
            (Ok(_), Err(error)) => return self.refused(text, &error),
            (Ok(theirs), Ok(ours)) => (theirs, ours),
        };
        if uses(text, &|primitive| {
            matches!(primitive, Primitive::Byte { test: ByteTest::And | ByteTest::Or, .. })
        }) {
            return Ok(Fate::ByteWithBits);
        }
        if instruction::reads_unset_scratch(&theirs.instructions()) {
            return Ok(Fate::UnsetMemory);
        }
        let program = instructions(&ours).ok_or("it has no program")?;
        let by_batch = in_batches(&ours, &self.frames);
        let mut matched_frames = 0;
        for (frame, in_batch) in self.frames.iter().zip(by_batch) {
            let expected = theirs.matches(&frame.data, frame.wire_bytes);
            matched_frames += usize::from(expected);
            let answer = ours.matches(&packet(frame));
            let by_program = self.libpcap.run(&program, &frame.data, frame.wire_bytes);
            if [answer, in_batch, by_program] != [expected; 3] {
                return Err(format!(
                    "on {} ({} of {} bytes) libpcap says {expected}, our evaluator {answer}, in a \
                     batch {in_batch}, our program {by_program}",
                    frame.kind,
                    frame.data.len(),
                    frame.wire_bytes
                ));
            }
        }
        // libpcap's optimiser takes its time: it is asked only where it may find that out.
        if matched_frames > 0 {
            return Ok(Fate::Agreed);
        }
        match self.compile(text, true) {
            Err(message) if message.contains("rejects all") => Ok(Fate::EmptyForLibpcapAlone),
            _ => Ok(Fate::Agreed),
        }
    }

    /// Why we refuse what libpcap accepts without its optimiser.
    fn refused(&self, text: &str, error: &filter::FilterError) -> Result<Fate, String> {
        if error.message.starts_with("no packet can match") {
            return match self.compile(text, true) {
                Err(message) if message.contains("rejects all") => Ok(Fate::Empty),
                _ => Ok(Fate::EmptyForUsAlone),
            };
        }
        let is_chain = |primitive: &Primitive| {
            matches!(primitive, Primitive::Id { qualifiers, .. }
                if qualifiers.kind == Some(Kind::ProtoChain))
        };
        if uses(text, &is_chain) && error.message.contains("protochain") {
            return Ok(Fate::ProtocolChain);
        }
        Err(format!("we refuse it: {error}"))
    }
}

/// Whether one of the tests of `text` is such a one.
fn uses(text: &str, is_such: &dyn Fn(&Primitive) -> bool) -> bool {
    fn any(expression: &Expression, is_such: &dyn Fn(&Primitive) -> bool) -> bool {
        match expression {
            Expression::Primitive(primitive, _) => is_such(primitive),
            Expression::Not(inner) => any(inner, is_such),
            Expression::Chain(first, joined) => {
                any(first, is_such) || joined.iter().any(|(_, next)| any(next, is_such))
            }
        }
    }
    matches!(parse(text), Ok(Some(expression)) if any(&expression, is_such))
}

fn packet(frame: &Frame) -> Packet<'_> {
    Packet { data: &frame.data, wire_bytes: frame.wire_bytes, ..Packet::default() }
}

/// The answers to batches of all sizes.
fn in_batches(filter: &Filter, frames: &[Frame]) -> Vec<bool> {
    let mut batch = filter.batch();
    let packets: Vec<Packet<'_>> = frames.iter().map(packet).collect();
    let mut answers = Vec::with_capacity(packets.len());
    let mut rest = packets.as_slice();
    while !rest.is_empty() {
        let count = (1 + answers.len() % 97).min(64).min(rest.len());
        let (some, others) = rest.split_at(count);
        let bits = batch.matches(some);
        answers.extend((0..count).map(|lane| bits >> lane & 1 == 1));
        rest = others;
    }
    answers
}

fn instructions(filter: &Filter) -> Option<Vec<Instruction>> {
    let program = filter.program()?;
    let same = |i: &filter::Instruction| Instruction { code: i.code, jt: i.jt, jf: i.jf, k: i.k };
    Some(program.0.iter().map(same).collect())
}

fn all_expressions() -> Vec<String> {
    let count = std::env::var("FILTER_EXPRESSIONS").ok();
    let count = count.map_or(5_900, |count| count.parse().unwrap());
    let mut all = expressions::hand_picked();
    all.extend(expressions::generated(1, count));
    assert!(all.len() >= 5_000, "{}", all.len());
    all
}

/// Judges all expressions on all frames of a link; `accepted` of them have a filter at least.
fn agrees(test: &str, link: Link, number: u16, accepted: usize) -> Option<Counts> {
    let libpcap = match Libpcap::load() {
        Ok(libpcap) => libpcap,
        Err(reason) => {
            testing::say_skipped(test, reason);
            return None;
        }
    };
    let is_counted =
        libpcap.version().starts_with(COUNTED) && std::env::var_os("FILTER_EXPRESSIONS").is_none();
    let judge = Judge { libpcap, link, number, frames: corpus(number) };
    let mut counts = Counts::new();
    let mut wrong = Vec::new();
    let all = all_expressions();
    for text in &all {
        match judge.judge(text) {
            Ok(fate) => *counts.entry(fate).or_default() += 1,
            Err(why) => wrong.push(format!("{text:.200}: {why}")),
        }
    }
    let shown = wrong.len().min(30);
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong[..shown].join("\n"));
    let of = |fate| counts.get(&fate).copied().unwrap_or(0);
    let agreed = of(Fate::Agreed) + of(Fate::EmptyForLibpcapAlone);
    let pairs = agreed as u64 * judge.frames.len() as u64;
    println!(
        "{link:?}: {} expressions, {} frames, {pairs} pairs agree; {counts:?}",
        all.len(),
        judge.frames.len()
    );
    assert!(judge.frames.len() >= 2_000, "{}", judge.frames.len());
    assert!(agreed >= accepted, "{agreed}");
    assert!(pairs >= PAIRS_MIN, "{pairs}");
    // What could not be compared stays little.
    let left_out = of(Fate::ProtocolChain) + of(Fate::ByteWithBits) + of(Fate::UnsetMemory);
    assert!(left_out * 20 <= all.len(), "{left_out} were not compared");
    assert!(of(Fate::EmptyForUsAlone) * 1_000 <= all.len(), "{counts:?}");
    is_counted.then_some(counts)
}

#[test]
fn ethernet_agrees_with_libpcap() {
    let counts = agrees("ethernet_agrees_with_libpcap", Link::Ethernet, frames::ETHERNET, 5_000);
    let Some(counts) = counts else { return };
    assert_eq!(counts, expected([5266, 732, 714, 28, 1, 194, 38, 76]));
}

#[test]
fn raw_ip_agrees_with_libpcap() {
    let counts = agrees("raw_ip_agrees_with_libpcap", Link::Raw, frames::RAW, 3_000);
    let Some(counts) = counts else { return };
    assert_eq!(counts, expected([3135, 2619, 1073, 4, 0, 134, 23, 61]));
}

#[test]
fn cooked_agrees_with_libpcap() {
    let counts = agrees("cooked_agrees_with_libpcap", Link::LinuxCooked, frames::LINUX_SLL, 3_500);
    let Some(counts) = counts else { return };
    assert_eq!(counts, expected([3589, 2619, 611, 9, 1, 134, 25, 61]));
}

#[test]
fn cooked_v2_agrees_with_libpcap() {
    let test = "cooked_v2_agrees_with_libpcap";
    let Some(counts) = agrees(test, Link::LinuxCooked2, frames::LINUX_SLL2, 3_500) else { return };
    assert_eq!(counts, expected([3584, 2619, 617, 9, 0, 134, 25, 61]));
}
