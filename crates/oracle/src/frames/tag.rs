//! What stands between the link layer and IP: VLAN tags, MPLS labels, PPPoE.

use wire::random::Random;

use super::packet::{IPV4, IPV6, Packet, long_payload};
use super::transport::{ICMP, SCTP, TCP, UDP};
use super::{arp, ipv4, ipv6, link_protocol, llc};
use crate::pools::{LABELS, SESSIONS, VLANS, below, one_of};

const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];
const MPLS: u16 = 0x8847;
const MPLS_MULTICAST: u16 = 0x8848;
const DISCOVERY: u16 = 0x8863;
const SESSION: u16 = 0x8864;

pub(super) fn packets(random: &mut Random) -> Vec<Packet> {
    let mut packets = tagged(random);
    packets.extend(labelled(random));
    packets.extend(pppoe(random));
    packets.extend(mixed(random));
    packets
}

/// A whole packet of IPv4 or IPv6.
pub(super) fn ip(random: &mut Random) -> Packet {
    let protocol = one_of(random, &[TCP, TCP, UDP, UDP, SCTP, ICMP, 58, 51, 89]);
    if below(random, 3) == 0 {
        ipv6::whole(random, protocol)
    } else {
        ipv4::whole(random, protocol)
    }
}

pub(super) fn tag(random: &mut Random, kind: &'static str, tpid: u16, inner: &Packet) -> Packet {
    let priority = one_of(random, &[0, 0, 0x1000, 0xa000, 0xf000]);
    let control = one_of(random, &VLANS) | priority;
    Packet::new(kind, tpid, [&control.to_be_bytes(), inner.typed().as_slice()].concat())
}

fn tagged(random: &mut Random) -> Vec<Packet> {
    let mut packets = Vec::new();
    for tpid in TAGS {
        for _ in 0..16 {
            let inner = ip(random);
            packets.push(tag(random, "vlan", tpid, &inner));
        }
        for inner_tpid in TAGS {
            for _ in 0..4 {
                let inner = ip(random);
                let inner = tag(random, "", inner_tpid, &inner);
                packets.push(tag(random, "vlan-double", tpid, &inner));
                let inner = tag(random, "", 0x8100, &inner);
                packets.push(tag(random, "vlan-triple", tpid, &inner));
            }
        }
        let inner = ip(random).typed();
        packets.push(Packet::new("vlan", tpid, [&[0, 0], inner.as_slice()].concat()));
    }
    let others =
        [arp::packets(random), link_protocol::packets(random), llc::packets(random)].concat();
    for inner in others.iter().step_by(6) {
        let tpid = one_of(random, &TAGS);
        packets.push(tag(random, "vlan-other", tpid, inner));
    }
    packets
}

/// Labels, of which the last says that it is.
fn labels(random: &mut Random, count: usize, rest: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for index in 1..=count {
        let traffic_class = below(random, 8) as u32;
        let bottom = u32::from(index == count);
        let label = one_of(random, &LABELS) << 12 | traffic_class << 9 | bottom << 8 | 64;
        bytes.extend(label.to_be_bytes());
    }
    bytes.extend(rest);
    bytes
}

fn labelled(random: &mut Random) -> Vec<Packet> {
    let mut packets = Vec::new();
    for (count, kind) in [(1, "mpls"), (2, "mpls-double"), (3, "mpls-triple")] {
        for _ in 0..18 {
            let inner = ip(random);
            packets.push(Packet::new(kind, MPLS, labels(random, count, &inner.bytes)));
        }
    }
    for _ in 0..4 {
        let inner = ip(random);
        packets.push(Packet::new(
            "mpls-multicast",
            MPLS_MULTICAST,
            labels(random, 1, &inner.bytes),
        ));
        // What the last label leads to need not be IP.
        let rest = long_payload(random);
        packets.push(Packet::new("mpls-other", MPLS, labels(random, 2, &rest)));
    }
    packets
}

fn pppoe_header(code: u8, session: u16, rest: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x11, code];
    bytes.extend(session.to_be_bytes());
    bytes.extend((rest.len() as u16).to_be_bytes());
    bytes.extend(rest);
    bytes
}

fn session(random: &mut Random, kind: &'static str, protocol: u16, inner: &[u8]) -> Packet {
    let rest = [&protocol.to_be_bytes(), inner].concat();
    let session = one_of(random, &SESSIONS);
    Packet::new(kind, SESSION, pppoe_header(0, session, &rest))
}

fn pppoe(random: &mut Random) -> Vec<Packet> {
    let mut packets = Vec::new();
    for code in [0x09, 0x07, 0x19, 0x65, 0xa7] {
        for _ in 0..2 {
            let (session, rest) = (one_of(random, &SESSIONS), long_payload(random));
            packets.push(Packet::new("pppoed", DISCOVERY, pppoe_header(code, session, &rest)));
        }
    }
    for protocol in [TCP, TCP, UDP, UDP, SCTP, ICMP] {
        for _ in 0..4 {
            let inner = ipv4::whole(random, protocol);
            packets.push(session(random, "pppoes-ip", 0x0021, &inner.bytes));
            let inner = ipv6::whole(random, protocol);
            packets.push(session(random, "pppoes-ip6", 0x0057, &inner.bytes));
        }
    }
    for protocol in [0xc021, 0x8021, 0xc223, 0x0031] {
        let rest = long_payload(random);
        packets.push(session(random, "pppoes-other", protocol, &rest));
    }
    for _ in 0..4 {
        let inner = ip(random);
        let rest = labels(random, 1, &inner.bytes);
        packets.push(session(random, "pppoes-mpls", 0x0281, &rest));
    }
    packets
}

/// One within the other.
fn mixed(random: &mut Random) -> Vec<Packet> {
    let mut packets = Vec::new();
    for _ in 0..8 {
        let inner = ip(random);
        let inner = Packet::new("", MPLS, labels(random, 1, &inner.bytes));
        packets.push(tag(random, "vlan-mpls", 0x8100, &inner));
        let inner = ipv4::whole(random, TCP);
        let inner = session(random, "", 0x0021, &inner.bytes);
        packets.push(tag(random, "vlan-pppoes", 0x8100, &inner));
        // Types that stand for IP, without room for it.
        let ether_type = one_of(random, &[IPV4, IPV6]);
        let short = Packet::new("", ether_type, vec![0x45]);
        packets.push(tag(random, "vlan-short", 0x8100, &short));
    }
    packets
}
