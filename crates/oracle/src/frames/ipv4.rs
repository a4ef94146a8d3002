//! IPv4: protocols, options, fragments and headers that are wrong.

use std::net::Ipv4Addr;

use wire::random::Random;

use super::packet::{self, Packet, payload, random_bytes};
use super::transport::{ICMP, SCTP, TCP, UDP, authenticated, icmp, tcp, transport};
use crate::pools::{self, ICMP_TYPES, IP_PROTOCOLS, one_of};

const MORE_FRAGMENTS: u16 = 0x2000;

/// A header, of which all can be chosen.
pub(super) struct Header {
    pub(super) protocol: u8,
    pub(super) source: Ipv4Addr,
    pub(super) destination: Ipv4Addr,
    option_words: usize,
    flags_and_offset: u16,
}

impl Header {
    pub(super) fn new(random: &mut Random, protocol: u8) -> Self {
        Self {
            protocol,
            source: one_of(random, &pools::IPV4),
            destination: one_of(random, &pools::IPV4),
            option_words: 0,
            flags_and_offset: one_of(random, &[0, 0x4000]),
        }
    }

    pub(super) fn before(&self, random: &mut Random, payload: &[u8]) -> Vec<u8> {
        let header_bytes = 20 + 4 * self.option_words;
        let total_bytes = (header_bytes + payload.len()) as u16;
        let mut bytes = vec![0x40 | (header_bytes / 4) as u8, one_of(random, &[0, 0x10, 0xb8])];
        bytes.extend(total_bytes.to_be_bytes());
        bytes.extend(random_bytes(random, 2));
        bytes.extend(self.flags_and_offset.to_be_bytes());
        bytes.extend([one_of(random, &[1, 64, 255]), self.protocol]);
        bytes.extend(random_bytes(random, 2));
        bytes.extend(self.source.octets());
        bytes.extend(self.destination.octets());
        bytes.extend(random_bytes(random, 4 * self.option_words));
        bytes.extend(payload);
        bytes
    }

    fn packet(&self, random: &mut Random, kind: &'static str, payload: &[u8]) -> Packet {
        Packet::new(kind, packet::IPV4, self.before(random, payload))
    }
}

/// A whole packet of the protocol.
pub(super) fn whole(random: &mut Random, protocol: u8) -> Packet {
    let header = Header::new(random, protocol);
    let payload = transport(random, protocol);
    header.packet(random, kind(protocol), &payload)
}

fn kind(protocol: u8) -> &'static str {
    match protocol {
        ICMP => "ip-icmp",
        2 => "ip-igmp",
        TCP => "ip-tcp",
        9 => "ip-igrp",
        UDP => "ip-udp",
        50 => "ip-esp",
        51 => "ip-ah",
        103 => "ip-pim",
        112 => "ip-vrrp",
        SCTP => "ip-sctp",
        _ => "ip-other",
    }
}

pub(super) fn packets(random: &mut Random) -> Vec<Packet> {
    let mut packets = Vec::new();
    for flags in 0..=255 {
        let header = Header::new(random, TCP);
        let payload = tcp(random, flags);
        packets.push(header.packet(random, "ip-tcp", &payload));
    }
    for protocol in IP_PROTOCOLS {
        let count = if protocol == UDP { 48 } else { 8 };
        packets.extend((0..count).map(|_| whole(random, protocol)));
    }
    for number in ICMP_TYPES {
        let header = Header::new(random, ICMP);
        let payload = icmp(random, number);
        packets.push(header.packet(random, "ip-icmp", &payload));
    }
    for then in [TCP, UDP, SCTP, ICMP, 51] {
        let header = Header::new(random, 51);
        let payload = authenticated(random, then);
        packets.push(header.packet(random, "ip-ah", &payload));
    }
    packets.extend(with_options(random));
    packets.extend(fragments(random));
    packets.extend(to_many(random));
    packets.extend(broken(random));
    packets
}

fn with_options(random: &mut Random) -> Vec<Packet> {
    let mut packets = Vec::new();
    for option_words in 1..=10 {
        for protocol in [TCP, UDP, SCTP, ICMP] {
            let header = Header { option_words, ..Header::new(random, protocol) };
            let payload = transport(random, protocol);
            packets.push(header.packet(random, "ip-options", &payload));
        }
    }
    packets
}

/// First, middle and last fragments, with and without options; the later ones begin with what
/// could be ports.
fn fragments(random: &mut Random) -> Vec<Packet> {
    let parts = [
        ("ip-fragment-first", MORE_FRAGMENTS),
        ("ip-fragment-middle", MORE_FRAGMENTS | 1),
        ("ip-fragment-middle", MORE_FRAGMENTS | 0x0100),
        ("ip-fragment-last", 0x0001),
        ("ip-fragment-last", 0x1fff),
    ];
    let mut packets = Vec::new();
    for (kind, flags_and_offset) in parts {
        for protocol in [TCP, UDP, SCTP, ICMP, 51] {
            for option_words in [0, 0, 2] {
                let header =
                    Header { flags_and_offset, option_words, ..Header::new(random, protocol) };
                let payload = transport(random, protocol);
                packets.push(header.packet(random, kind, &payload));
            }
        }
    }
    packets
}

fn to_many(random: &mut Random) -> Vec<Packet> {
    let groups = [
        ("ip-multicast", Ipv4Addr::new(224, 0, 0, 5)),
        ("ip-multicast", Ipv4Addr::new(239, 1, 2, 3)),
        ("ip-broadcast", Ipv4Addr::BROADCAST),
    ];
    let mut packets = Vec::new();
    for (kind, destination) in groups {
        for protocol in [UDP, 2, 103, 112] {
            let header = Header { destination, ..Header::new(random, protocol) };
            let payload = transport(random, protocol);
            packets.push(header.packet(random, kind, &payload));
        }
    }
    packets
}

/// Any version and header length, and total lengths that the packet does not have.
fn broken(random: &mut Random) -> Vec<Packet> {
    let mut packets = Vec::new();
    for nibble in 0..=15 {
        for protocol in [TCP, UDP, ICMP] {
            let mut short = whole(random, protocol).of_kind("ip-broken");
            short.bytes[0] = 0x40 | nibble;
            packets.push(short);
        }
        let mut other = whole(random, UDP).of_kind("ip-broken");
        other.bytes[0] = nibble << 4 | 5;
        packets.push(other);
        let mut length = whole(random, TCP).of_kind("ip-broken");
        length.bytes[2..4].copy_from_slice(&(u16::from(nibble) * 0x0105).to_be_bytes());
        packets.push(length);
    }
    let header = Header::new(random, UDP);
    for _ in 0..6 {
        let payload = payload(random);
        packets.push(header.packet(random, "ip-broken", &payload));
    }
    packets
}
