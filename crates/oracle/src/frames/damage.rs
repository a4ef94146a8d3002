//! Frames that are cut, or made of nothing sensible.

use std::collections::BTreeMap;

use wire::random::Random;

use super::Frame;
use super::packet::random_bytes;
use crate::pools::{below, once_in, one_of};

/// Kinds that are cut at every length, and so at every boundary between and within headers.
const CUT: [&str; 16] = [
    "ip-tcp",
    "ip-options",
    "ip-fragment-middle",
    "ip6-tcp",
    "ip6-extension",
    "arp",
    "decnet",
    "ipx-snap",
    "isis-l1-lsp",
    "vlan",
    "vlan-double",
    "mpls-double",
    "pppoes-ip",
    "geneve-ether",
    "geneve-ip",
    "raw-other",
];

/// No header ends later.
const CUT_BYTES_MAX: usize = 130;

pub(super) fn frames(random: &mut Random, whole: &[Frame]) -> Vec<Frame> {
    let mut frames = vec![Frame { data: Vec::new(), wire_bytes: 0, kind: "empty" }];
    frames.extend(short(random));
    frames.extend(cut_everywhere(whole));
    frames.extend(cut_anywhere(random, whole));
    frames.extend(noise(random));
    frames.extend(changed(random, whole));
    frames
}

/// Of one byte, such as begins IPv4 or IPv6; once it is all there was, once it is not.
fn short(random: &mut Random) -> Vec<Frame> {
    let mut frames = Vec::new();
    for byte in [0x00, 0x45, 0x60, 0xff] {
        let wire_bytes = one_of(random, &[60, 1514]);
        frames.push(Frame { data: vec![byte], wire_bytes: 1, kind: "one-byte" });
        frames.push(Frame { data: vec![byte], wire_bytes, kind: "one-byte" });
    }
    frames
}

/// Every second one says how long the frame was, the others that it was no longer.
fn cut_everywhere(whole: &[Frame]) -> Vec<Frame> {
    let mut frames = Vec::new();
    let first_of_kind: BTreeMap<_, _> =
        whole.iter().rev().map(|frame| (frame.kind, frame)).collect();
    for frame in CUT.iter().filter_map(|kind| first_of_kind.get(kind)) {
        for captured_bytes in 1..frame.data.len().min(CUT_BYTES_MAX) {
            let whole_bytes =
                if captured_bytes % 2 == 0 { frame.data.len() } else { captured_bytes };
            frames.push(Frame {
                data: frame.data[..captured_bytes].to_vec(),
                wire_bytes: whole_bytes as u32,
                kind: "truncated",
            });
        }
    }
    frames
}

fn cut_anywhere(random: &mut Random, whole: &[Frame]) -> Vec<Frame> {
    let mut frames = Vec::new();
    for frame in whole.iter().step_by(5) {
        let captured_bytes = below(random, frame.data.len());
        let captured = once_in(random, 2);
        let wire_bytes = if captured { captured_bytes as u32 } else { frame.wire_bytes };
        let data = frame.data[..captured_bytes].to_vec();
        frames.push(Frame { data, wire_bytes, kind: "truncated" });
    }
    frames
}

fn noise(random: &mut Random) -> Vec<Frame> {
    (0..100)
        .map(|_| {
            let count = 1 + below(random, 120);
            let data = random_bytes(random, count);
            let more = one_of(random, &[0, 0, 1, 1000]);
            Frame { wire_bytes: data.len() as u32 + more, data, kind: "random" }
        })
        .collect()
}

/// Whole frames but for one byte.
fn changed(random: &mut Random, whole: &[Frame]) -> Vec<Frame> {
    let mut frames = Vec::new();
    for frame in whole.iter().step_by(8).filter(|frame| !frame.data.is_empty()) {
        let mut data = frame.data.clone();
        let place = below(random, data.len().min(70));
        data[place] = random.next_u64() as u8;
        frames.push(Frame { data, wire_bytes: frame.wire_bytes, kind: "changed" });
    }
    frames
}
