//! Time per frame of asking a filter: `cargo bench -p filter --bench evaluate`.
//!
//! Each expression is asked of the same Ethernet frames by ours, in batches of 64 and one by one, and
//! by libpcap's interpreter, which runs the program of libpcap's own optimiser. The runs of all
//! alternate; the figures are medians of them, with the smallest and the largest of the ratios.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::hint::black_box;
use std::time::Instant;

use filter::{BATCH_PACKETS_MAX, Batch, Filter, Link, Packet};
use oracle::frames::{ETHERNET, Frame, corpus};
use oracle::{Compiled, Libpcap};

const RUNS: usize = 15;
/// Frames asked about in one run.
const ASKED: usize = 400_000;

const EXPRESSIONS: [&str; 12] = [
    "ip",
    "not ip6",
    "udp port 53",
    "tcp port 80 or tcp port 443",
    "host 10.0.0.1",
    "src net 192.168.0.0/16 and tcp",
    "net 10.0.0.0/8 and not port 22",
    "host 10.0.0.1 and host 10.0.0.2 and udp portrange 1000-2000",
    "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0 and not src and dst net 10.0.0.0/8",
    "vlan 100 and ip6",
    "ether host 00:11:22:33:44:55 or arp",
    "ip[6:2] & 0x1fff = 0 and len > 200 and icmp or icmp6",
];

/// What is asked, by whom, and of which frames.
struct Contest<'a> {
    batch: Batch,
    one_by_one: &'a Filter,
    libpcap: &'a Compiled,
    frames: &'a [Frame],
}

impl Contest<'_> {
    /// ns per frame of each: in batches, one by one, libpcap.
    fn run(&mut self) -> [f64; 3] {
        let (in_batches, matched) = timed(self.frames, BATCH_PACKETS_MAX, |frames| {
            let packets: [Packet<'_>; BATCH_PACKETS_MAX] =
                std::array::from_fn(|lane| frames.get(lane).map(packet).unwrap_or_default());
            self.batch.matches(&packets[..frames.len()]).count_ones() as usize
        });
        let (one_by_one, same) = timed(self.frames, 1, |frames| {
            frames.iter().filter(|frame| self.one_by_one.matches(&packet(frame))).count()
        });
        assert_eq!(same, matched);
        let (libpcap, _) = timed(self.frames, 1, |frames| {
            frames
                .iter()
                .filter(|frame| self.libpcap.matches(&frame.data, frame.wire_bytes))
                .count()
        });
        [in_batches, one_by_one, libpcap]
    }
}

#[inline]
fn packet(frame: &Frame) -> Packet<'_> {
    Packet { data: &frame.data, wire_bytes: frame.wire_bytes, ..Packet::default() }
}

/// ns per frame, and how many matched.
fn timed(frames: &[Frame], batch: usize, mut asks: impl FnMut(&[Frame]) -> usize) -> (f64, usize) {
    let rounds = ASKED.div_ceil(frames.len());
    let mut matched = 0;
    let start = Instant::now();
    for _ in 0..rounds {
        for some in frames.chunks(batch) {
            matched += asks(black_box(some));
        }
    }
    let asked = (rounds * frames.len()) as f64;
    (start.elapsed().as_nanos() as f64 / asked, matched)
}

fn median(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [values[values.len() / 2], values[0], values[values.len() - 1]]
}

/// What most networks carry.
fn is_common(frame: &&Frame) -> bool {
    const KINDS: [&str; 8] =
        ["ip-tcp", "ip-udp", "ip-icmp", "ip6-tcp", "ip6-udp", "ip6-icmp6", "arp", "vlan"];
    KINDS.contains(&frame.kind)
}

fn main() {
    let libpcap = match Libpcap::load() {
        Ok(libpcap) => libpcap,
        Err(reason) => return println!("nothing is measured without libpcap: {reason}"),
    };
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    println!("{}", libpcap.version());
    let all: Vec<Frame> =
        corpus(ETHERNET).into_iter().filter(|f| f.wire_bytes as usize == f.data.len()).collect();
    let common: Vec<Frame> = all.iter().filter(is_common).cloned().collect();
    for (name, frames) in [("common", &common), ("of all kinds", &all)] {
        println!("\n{} frames, {name}: ns a frame", frames.len());
        println!("   batch  single libpcap   libpcap/batch      libpcap/single      expression");
        for text in EXPRESSIONS {
            if only.as_ref().is_some_and(|only| !text.contains(only)) {
                continue;
            }
            let ours = Filter::new(text, Link::Ethernet).unwrap();
            let theirs = libpcap.compile(text, ETHERNET, 262_144, true).unwrap();
            let mut contest =
                Contest { batch: ours.batch(), one_by_one: &ours, libpcap: &theirs, frames };
            contest.run();
            let runs: Vec<[f64; 3]> = (0..RUNS).map(|_| contest.run()).collect();
            let of = |side: usize| median(runs.iter().map(|run| run[side]).collect())[0];
            let ratio = |side: usize| {
                let [middle, least, most] =
                    median(runs.iter().map(|run| run[2] / run[side]).collect());
                format!("{middle:.2} [{least:.2}, {most:.2}]")
            };
            println!(
                "{:>8.2}{:>8.2}{:>8.2}   {:<19}{:<19} {text}",
                of(0),
                of(1),
                of(2),
                ratio(0),
                ratio(1)
            );
        }
    }
}
