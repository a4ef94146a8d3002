//! Time per frame of asking a filter: `cargo bench -p filter --bench evaluate`.
//!
//! Each expression is asked of the same Ethernet frames by our evaluator and by libpcap's
//! interpreter, which runs the program of libpcap's own optimiser. The runs of both alternate;
//! the figures are medians of them, with the smallest and the largest of the ratios.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::hint::black_box;
use std::time::Instant;

use filter::{Filter, Link, Packet};
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
    ours: &'a Filter,
    theirs: &'a Compiled,
    frames: &'a [Frame],
}

impl Contest<'_> {
    /// ns per frame of each.
    fn run(&self) -> [f64; 2] {
        let ours = self.timed(|frame| {
            self.ours.matches(&Packet {
                data: &frame.data,
                wire_bytes: frame.wire_bytes,
                ..Packet::default()
            })
        });
        let theirs = self.timed(|frame| self.theirs.matches(&frame.data, frame.wire_bytes));
        assert_eq!(ours.1, theirs.1);
        [ours.0, theirs.0]
    }

    /// ns per frame, and how many matched.
    fn timed(&self, mut asks: impl FnMut(&Frame) -> bool) -> (f64, usize) {
        let rounds = ASKED.div_ceil(self.frames.len());
        let mut matched = 0;
        let start = Instant::now();
        for _ in 0..rounds {
            for frame in self.frames {
                matched += usize::from(asks(black_box(frame)));
            }
        }
        let asked = (rounds * self.frames.len()) as f64;
        (start.elapsed().as_nanos() as f64 / asked, matched)
    }
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
        println!("{:>8} {:>8}   times [least, most]   expression", "ours", "libpcap");
        for text in EXPRESSIONS {
            if only.as_ref().is_some_and(|only| !text.contains(only)) {
                continue;
            }
            let ours = Filter::new(text, Link::Ethernet).unwrap();
            let theirs = libpcap.compile(text, ETHERNET, 262_144, true).unwrap();
            let contest = Contest { ours: &ours, theirs: &theirs, frames };
            contest.run();
            let runs: Vec<[f64; 2]> = (0..RUNS).map(|_| contest.run()).collect();
            let of = |side: usize| median(runs.iter().map(|run| run[side]).collect());
            let [ratio, least, most] = median(runs.iter().map(|run| run[1] / run[0]).collect());
            let [ours, theirs] = [of(0)[0], of(1)[0]];
            println!("{ours:>8.2} {theirs:>8.2}   {ratio:.2} [{least:.2}, {most:.2}]   {text}");
        }
    }
}
