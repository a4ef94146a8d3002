//! Frames of all kinds that a filter tells apart, and of those that it must not stumble over.
//!
//! They are made here, the same each time. Each has a *kind*: what it is, or what was done to it.
//! A frame of a kind that names a protocol is whole, so that the expression which names the same
//! protocol takes it; `…-broken`, `truncated`, `random` and the like promise nothing.

mod arp;
mod damage;
mod ipv4;
mod ipv6;
mod link;
mod link_protocol;
mod llc;
mod packet;
mod tag;
mod transport;
mod tunnel;

use wire::random::Random;

use packet::Packet;

/// What is captured of a frame, and how long it was.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// What was captured of it.
    pub data: Vec<u8>,
    /// How many bytes it had on the wire.
    pub wire_bytes: u32,
    /// What it is, such as `ip-tcp`.
    pub kind: &'static str,
}

/// Link types of capture files that there are frames of.
pub const ETHERNET: u16 = 1;
/// IPv4 or IPv6 without anything before it.
pub const RAW: u16 = 101;
/// What Linux gives of "any" interface.
pub const LINUX_SLL: u16 = 113;
/// What newer programs get of "any" interface.
pub const LINUX_SLL2: u16 = 276;

const SEED: u64 = 0x0f11_7e55;

/// More than 2,000 frames of a link type; none of one that is not among the four above.
pub fn corpus(link_type: u16) -> Vec<Frame> {
    let random = &mut Random::new(SEED);
    let packets = packets(random);
    let mut frames: Vec<Frame> =
        packets.iter().filter_map(|packet| link::frame(random, link_type, packet)).collect();
    frames.extend(link::addressed(random, link_type));
    if !frames.is_empty() {
        let damaged = damage::frames(random, &frames);
        frames.extend(damaged);
    }
    frames
}

/// What all link types carry.
fn packets(random: &mut Random) -> Vec<Packet> {
    let mut packets = ipv4::packets(random);
    packets.extend(ipv6::packets(random));
    packets.extend(arp::packets(random));
    packets.extend(link_protocol::packets(random));
    packets.extend(llc::packets(random));
    packets.extend(tag::packets(random));
    packets.extend(tunnel::packets(random));
    packets
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashSet};

    use super::*;

    #[test]
    fn there_are_enough_frames_and_always_the_same() {
        for link_type in [ETHERNET, RAW, LINUX_SLL, LINUX_SLL2] {
            let frames = corpus(link_type);
            assert!(frames.len() >= 2_000, "{}", frames.len());
            assert_eq!(frames, corpus(link_type));
            let distinct: HashSet<&Frame> = frames.iter().collect();
            assert!(distinct.len() * 100 >= frames.len() * 95, "{}", distinct.len());
            for frame in &frames {
                assert!(frame.wire_bytes as usize >= frame.data.len());
            }
        }
        assert_eq!(corpus(2), []);
    }

    #[test]
    fn kinds_are_many_and_none_is_rare() {
        let mut counts = BTreeMap::new();
        for frame in corpus(ETHERNET) {
            *counts.entry(frame.kind).or_insert(0) += 1;
        }
        assert!(counts.len() >= 90, "{}: {counts:?}", counts.len());
        let rare: Vec<_> = counts.iter().filter(|&(_, &count)| count < 4).collect();
        // There is but one empty frame, and as many of one byte as there are reasons for.
        assert!(rare.iter().all(|&(&kind, _)| kind == "empty"), "{rare:?}");
    }
}
