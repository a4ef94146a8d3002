//! Every expression means what libpcap says that it means, on every frame of a corpus.
//!
//! The reference is libpcap's program before its optimiser: that one removes loads, which
//! changes answers about cut frames. `FILTER_EXPRESSIONS=50000` tries as many generated ones.
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
    fn judge(&self, text: &str, step: usize, first: usize) -> Result<Fate, String> {
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
        let mut matched_frames = 0;
        for frame in self.frames.iter().skip(first % step).step_by(step) {
            let packet =
                Packet { data: &frame.data, wire_bytes: frame.wire_bytes, ..Packet::default() };
            let expected = theirs.matches(&frame.data, frame.wire_bytes);
            matched_frames += usize::from(expected);
            let answer = ours.matches(&packet);
            let by_program = self.libpcap.run(&program, &frame.data, frame.wire_bytes);
            if (answer, by_program) != (expected, expected) {
                return Err(format!(
                    "on {} ({} of {} bytes) libpcap says {expected}, our evaluator {answer}, our \
                     program {by_program}",
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

fn instructions(filter: &Filter) -> Option<Vec<Instruction>> {
    let program = filter.program()?;
    let same = |i: &filter::Instruction| Instruction { code: i.code, jt: i.jt, jf: i.jf, k: i.k };
    Some(program.0.iter().map(same).collect())
}

fn all_expressions() -> Vec<String> {
    let count = std::env::var("FILTER_EXPRESSIONS").ok();
    let count = count.map_or(4_500, |count| count.parse().unwrap());
    let mut all = expressions::hand_picked();
    all.extend(expressions::generated(1, count));
    assert!(all.len() >= 5_000, "{}", all.len());
    all
}

/// Judges all expressions on the frames of a link, each on one in `step` of them.
fn agrees(test: &str, link: Link, number: u16, step: usize) -> Option<Counts> {
    let libpcap = match Libpcap::load() {
        Ok(libpcap) => libpcap,
        Err(reason) => {
            testing::say_skipped(test, reason);
            return None;
        }
    };
    let is_counted =
        libpcap.version().starts_with(COUNTED) && std::env::var_os("FILTER_EXPRESSIONS").is_none();
    let step = if is_counted { step } else { 1 };
    let judge = Judge { libpcap, link, number, frames: corpus(number) };
    let mut counts = Counts::new();
    let mut wrong = Vec::new();
    for (place, text) in all_expressions().iter().enumerate() {
        match judge.judge(text, step, place) {
            Ok(fate) => *counts.entry(fate).or_default() += 1,
            Err(why) => wrong.push(format!("{text:.200}: {why}")),
        }
    }
    let shown = wrong.len().min(30);
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong[..shown].join("\n"));
    println!("{link:?}: {counts:?}");
    is_counted.then_some(counts)
}

#[test]
fn ethernet_agrees_with_libpcap() {
    let counts = agrees("ethernet_agrees_with_libpcap", Link::Ethernet, frames::ETHERNET, 3);
    let Some(counts) = counts else { return };
    assert_eq!(counts, expected([4206, 650, 529, 27, 1, 139, 36, 61]));
}

#[test]
fn raw_ip_agrees_with_libpcap() {
    let counts = agrees("raw_ip_agrees_with_libpcap", Link::Raw, frames::RAW, 3);
    let Some(counts) = counts else { return };
    assert_eq!(counts, expected([2515, 2120, 841, 4, 0, 96, 23, 50]));
}

#[test]
fn cooked_agrees_with_libpcap() {
    let counts = agrees("cooked_agrees_with_libpcap", Link::LinuxCooked, frames::LINUX_SLL, 3);
    let Some(counts) = counts else { return };
    assert_eq!(counts, expected([2895, 2120, 454, 8, 1, 96, 25, 50]));
}

#[test]
fn cooked_v2_agrees_with_libpcap() {
    let counts = agrees("cooked_v2_agrees_with_libpcap", Link::LinuxCooked2, frames::LINUX_SLL2, 3);
    let Some(counts) = counts else { return };
    assert_eq!(counts, expected([2891, 2120, 459, 8, 0, 96, 25, 50]));
}
