//! Time per frame of parsing, checksums and flow keys: `cargo bench -p wire --bench parse`.
//!
//! Each line is the best of several runs over a ring of frames that stays in
//! the cache, with addresses and ports that differ; etherparse, where it does
//! the same job, stands next to ours. A word as argument selects lines by name.
#![allow(clippy::expect_used)]

use std::hint::black_box;
use std::time::Instant;

use etherparse::{PacketBuilder, SlicedPacket};
use wire::checksum::{ChecksumState, checksum, verify};
use wire::flow_key::FlowKey;
use wire::parse::parse_ethernet;

const FRAMES: usize = 256;
const ROUNDS: usize = 2000;
const RUNS: usize = 9;

fn report(name: &str, frames: &[Vec<u8>], mut work: impl FnMut(&[u8])) {
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    if only.is_some_and(|only| !name.contains(&only)) {
        return;
    }
    let mut best_ns = f64::INFINITY;
    for _ in 0..RUNS {
        let start = Instant::now();
        for _ in 0..ROUNDS {
            for frame in frames {
                work(black_box(frame));
            }
        }
        let frames_worked = (ROUNDS * frames.len()) as f64;
        best_ns = best_ns.min(start.elapsed().as_nanos() as f64 / frames_worked);
    }
    let bytes = frames.first().map_or(0, Vec::len);
    println!(
        "{name:<42} {bytes:>5} bytes {best_ns:>8.2} ns/frame {:>7.2} GB/s",
        bytes as f64 / best_ns
    );
}

fn frames(make: impl Fn(u8, &mut Vec<u8>)) -> Vec<Vec<u8>> {
    (0..FRAMES)
        .map(|number| {
            let mut frame = Vec::new();
            make(number as u8, &mut frame);
            frame
        })
        .collect()
}

fn udp_v4(payload_bytes: usize) -> Vec<Vec<u8>> {
    frames(|number, frame| {
        PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv4([10, 0, 0, number], [10, 0, 1, number], 64)
            .udp(1024 + u16::from(number), 53)
            .write(frame, &vec![number; payload_bytes])
            .expect("a frame in memory");
    })
}

fn udp_v6() -> Vec<Vec<u8>> {
    frames(|number, frame| {
        PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv6([number; 16], [7; 16], 64)
            .udp(1024 + u16::from(number), 53)
            .write(frame, &[number; 18])
            .expect("a frame in memory");
    })
}

fn tcp_v4_vlan() -> Vec<Vec<u8>> {
    frames(|number, frame| {
        PacketBuilder::ethernet2([2; 6], [4; 6])
            .single_vlan(etherparse::VlanId::try_new(5).expect("below 4096"))
            .ipv4([10, 0, 0, number], [10, 0, 1, number], 64)
            .tcp(1024 + u16::from(number), 80, 1, 512)
            .write(frame, &[number; 18])
            .expect("a frame in memory");
    })
}

fn main() {
    let kinds =
        [("udp over ipv4", udp_v4(18)), ("udp over ipv6", udp_v6()), ("tcp, vlan", tcp_v4_vlan())];
    for (kind, frames) in &kinds {
        report(&format!("parse {kind}"), frames, |frame| {
            black_box(parse_ethernet(frame));
        });
        report(&format!("parse {kind}, etherparse"), frames, |frame| {
            let _ = black_box(SlicedPacket::from_ethernet(frame));
        });
        report(&format!("parse and flow key, {kind}"), frames, |frame| {
            let key = FlowKey::from_headers(frame, &parse_ethernet(frame));
            black_box(key.map(|key| key.normalised().0.symmetric_hash()));
        });
        report(&format!("parse and verify, {kind}"), frames, |frame| {
            let state = verify(frame, &parse_ethernet(frame));
            assert!(black_box(state) == ChecksumState::Valid);
        });
    }
    for payload_bytes in [22, 470, 1472, 8958] {
        let frames = udp_v4(payload_bytes);
        report("checksum", &frames, |frame| {
            black_box(checksum(frame));
        });
        report("checksum, etherparse", &frames, |frame| {
            let sum = etherparse::checksum::Sum16BitWords::new().add_slice(frame);
            black_box(sum.ones_complement());
        });
    }
}
