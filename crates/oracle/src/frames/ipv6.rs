//! IPv6: protocols, extension headers and headers that are wrong.

use std::net::Ipv6Addr;

use wire::random::Random;

use super::packet::{self, Packet, random_bytes};
use super::transport::{ICMP6, SCTP, TCP, UDP, authenticated, icmp, transport};
use crate::pools::{self, ICMP6_TYPES, IP_PROTOCOLS, one_of};

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AH: u8 = 51;
const NONE: u8 = 59;
const DESTINATION: u8 = 60;

pub(super) struct Header {
    pub(super) next: u8,
    pub(super) source: Ipv6Addr,
    pub(super) destination: Ipv6Addr,
}

impl Header {
    pub(super) fn new(random: &mut Random, next: u8) -> Self {
        let (source, destination) = (one_of(random, &pools::IPV6), one_of(random, &pools::IPV6));
        Self { next, source, destination }
    }

    pub(super) fn before(&self, random: &mut Random, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x60, one_of(random, &[0, 0x0f]), 0x12, 0x34];
        bytes.extend((payload.len() as u16).to_be_bytes());
        bytes.extend([self.next, one_of(random, &[1, 64, 255])]);
        bytes.extend(self.source.octets());
        bytes.extend(self.destination.octets());
        bytes.extend(payload);
        bytes
    }

    fn packet(&self, random: &mut Random, kind: &'static str, payload: &[u8]) -> Packet {
        Packet::new(kind, packet::IPV6, self.before(random, payload))
    }
}

/// A whole packet of the protocol, which follows the header at once.
pub(super) fn whole(random: &mut Random, protocol: u8) -> Packet {
    let payload = transport(random, protocol);
    Header::new(random, protocol).packet(random, kind(protocol), &payload)
}

fn kind(protocol: u8) -> &'static str {
    match protocol {
        TCP => "ip6-tcp",
        UDP => "ip6-udp",
        50 => "ip6-esp",
        AH => "ip6-ah",
        ICMP6 => "ip6-icmp6",
        103 => "ip6-pim",
        SCTP => "ip6-sctp",
        _ => "ip6-other",
    }
}

pub(super) fn packets(random: &mut Random) -> Vec<Packet> {
    let mut packets = Vec::new();
    for protocol in IP_PROTOCOLS {
        let count = if matches!(protocol, TCP | UDP) { 40 } else { 6 };
        packets.extend((0..count).map(|_| whole(random, protocol)));
    }
    for number in ICMP6_TYPES {
        let payload = icmp(random, number);
        packets.push(Header::new(random, ICMP6).packet(random, "ip6-icmp6", &payload));
    }
    packets.extend(extended(random));
    packets.extend(fragments(random));
    packets.extend(to_many(random));
    packets.extend(broken(random));
    packets
}

/// An extension header: options or routing, of 8 or 24 bytes.
fn extension(random: &mut Random, next: u8, rest: &[u8]) -> Vec<u8> {
    let units = one_of(random, &[0, 0, 2]);
    let mut bytes = vec![next, units as u8];
    bytes.extend(random_bytes(random, 6 + 8 * units));
    bytes.extend(rest);
    bytes
}

fn fragment(random: &mut Random, next: u8, offset_and_more: u16, rest: &[u8]) -> Vec<u8> {
    let mut bytes = vec![next, 0];
    bytes.extend(offset_and_more.to_be_bytes());
    bytes.extend(random_bytes(random, 4));
    bytes.extend(rest);
    bytes
}

/// Chains of one to three extension headers, then a protocol.
fn extended(random: &mut Random) -> Vec<Packet> {
    let chains: [&[u8]; 8] = [
        &[HOP_BY_HOP],
        &[ROUTING],
        &[DESTINATION],
        &[AH],
        &[HOP_BY_HOP, ROUTING],
        &[HOP_BY_HOP, DESTINATION, ROUTING],
        &[DESTINATION, AH],
        &[HOP_BY_HOP, DESTINATION, DESTINATION],
    ];
    let mut packets = Vec::new();
    for chain in chains {
        for protocol in [TCP, UDP, SCTP, ICMP6, NONE] {
            for _ in 0..2 {
                let mut next = protocol;
                let mut payload = transport(random, protocol);
                for &header in chain.iter().rev() {
                    payload = match header {
                        AH => [vec![next, 4], random_bytes(random, 22), payload].concat(),
                        _ => extension(random, next, &payload),
                    };
                    next = header;
                }
                packets.push(Header::new(random, next).packet(random, "ip6-extension", &payload));
            }
        }
    }
    for then in [TCP, UDP] {
        let payload = authenticated(random, then);
        packets.push(Header::new(random, AH).packet(random, "ip6-ah", &payload));
    }
    packets
}

fn fragments(random: &mut Random) -> Vec<Packet> {
    let parts = [
        ("ip6-fragment-first", 0x0001),
        ("ip6-fragment-later", 0x0009),
        ("ip6-fragment-later", 0xfff8),
    ];
    let mut packets = Vec::new();
    for (kind, offset_and_more) in parts {
        for protocol in [TCP, UDP, SCTP, ICMP6, DESTINATION] {
            for _ in 0..3 {
                let payload = transport(random, protocol);
                let payload = fragment(random, protocol, offset_and_more, &payload);
                packets.push(Header::new(random, FRAGMENT).packet(random, kind, &payload));
            }
        }
    }
    packets
}

fn to_many(random: &mut Random) -> Vec<Packet> {
    let mut packets = Vec::new();
    for group in [1, 5, 0xfb] {
        for protocol in [UDP, ICMP6, HOP_BY_HOP] {
            let destination = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, group);
            let header = Header { destination, ..Header::new(random, protocol) };
            let payload = transport(random, protocol);
            packets.push(header.packet(random, "ip6-multicast", &payload));
        }
    }
    packets
}

/// Any version, lengths that the packet does not have, and extension headers that lead too far.
fn broken(random: &mut Random) -> Vec<Packet> {
    let mut packets = Vec::new();
    for nibble in 0..=15 {
        let mut version = whole(random, UDP).of_kind("ip6-broken");
        version.bytes[0] = nibble << 4;
        packets.push(version);
        let mut length = whole(random, TCP).of_kind("ip6-broken");
        length.bytes[4..6].copy_from_slice(&(u16::from(nibble) * 0x0105).to_be_bytes());
        packets.push(length);
    }
    for header in [HOP_BY_HOP, ROUTING, DESTINATION] {
        for units in [16, 255] {
            let payload = [vec![TCP, units], random_bytes(random, 38)].concat();
            packets.push(Header::new(random, header).packet(random, "ip6-broken", &payload));
        }
    }
    packets
}
