//! Frames and packets within packets: Geneve, VXLAN, GRE, IP in IP.

use wire::random::Random;

use super::packet::{self, Packet, random_bytes};
use super::tag::{ip, tag};
use super::transport::{ICMP, TCP, UDP, udp};
use super::{arp, ipv4, ipv6};
use crate::pools::{MACS, PORTS, VNIS, once_in, one_of};

const GENEVE_PORT: u16 = 6081;
const VXLAN_PORT: u16 = 4789;
/// An Ethernet frame, where an EtherType is asked for.
const ETHERNET: u16 = 0x6558;

pub(super) fn packets(random: &mut Random) -> Vec<Packet> {
    let mut packets = geneve_packets(random);
    packets.extend(geneve_oddities(random));
    for _ in 0..8 {
        let inner = ip(random);
        let rest = [vxlan(random), ethernet(random, &inner)].concat();
        packets.push(over_udp(random, "vxlan", VXLAN_PORT, &rest));
        packets.push(gre(random));
        let inner = ipv4::whole(random, TCP).bytes;
        packets.push(over_ip(random, "ip-in-ip", 4, &inner));
        let inner = ipv6::whole(random, UDP).bytes;
        packets.push(over_ip(random, "ip6-in-ip", 41, &inner));
    }
    packets
}

fn ethernet(random: &mut Random, inner: &Packet) -> Vec<u8> {
    let (destination, source) = (one_of(random, &MACS), one_of(random, &MACS));
    [&destination, source.as_slice(), &inner.typed()].concat()
}

/// Behind IPv4, or once in three times IPv6.
fn over_udp(random: &mut Random, kind: &'static str, port: u16, rest: &[u8]) -> Packet {
    let source = one_of(random, &PORTS);
    let payload = udp(source, port, rest);
    if once_in(random, 3) {
        let header = ipv6::Header::new(random, UDP);
        Packet::new(kind, packet::IPV6, header.before(random, &payload))
    } else {
        over_ip(random, kind, UDP, &payload)
    }
}

fn over_ip(random: &mut Random, kind: &'static str, protocol: u8, payload: &[u8]) -> Packet {
    let header = ipv4::Header::new(random, protocol);
    Packet::new(kind, packet::IPV4, header.before(random, payload))
}

fn geneve(random: &mut Random, version: u8, option_words: u8, protocol: u16) -> Vec<u8> {
    // Control and critical bits.
    let flags = one_of(random, &[0, 0, 0x80, 0x40, 0xc0]);
    let mut bytes = vec![version << 6 | option_words, flags];
    bytes.extend(protocol.to_be_bytes());
    bytes.extend((one_of(random, &VNIS) << 8).to_be_bytes());
    bytes.extend(random_bytes(random, 4 * usize::from(option_words)));
    bytes
}

fn geneve_packets(random: &mut Random) -> Vec<Packet> {
    let mut packets = Vec::new();
    for option_words in [0, 0, 1, 2, 7, 63] {
        for protocol in [TCP, UDP, ICMP] {
            let inner = ip(random);
            let rest =
                [geneve(random, 0, option_words, ETHERNET), ethernet(random, &inner)].concat();
            packets.push(over_udp(random, "geneve-ether", GENEVE_PORT, &rest));
            let inner = ipv4::whole(random, protocol);
            let rest = [geneve(random, 0, option_words, packet::IPV4), inner.bytes].concat();
            packets.push(over_udp(random, "geneve-ip", GENEVE_PORT, &rest));
            let inner = ipv6::whole(random, protocol);
            let rest = [geneve(random, 0, option_words, packet::IPV6), inner.bytes].concat();
            packets.push(over_udp(random, "geneve-ip6", GENEVE_PORT, &rest));
        }
    }
    packets
}

/// Other versions, tags and ARP within, Geneve within Geneve, and nothing within.
fn geneve_oddities(random: &mut Random) -> Vec<Packet> {
    let mut packets = Vec::new();
    for version in 1..=3 {
        for _ in 0..2 {
            let inner = ip(random);
            let rest = [geneve(random, version, 1, ETHERNET), ethernet(random, &inner)].concat();
            packets.push(over_udp(random, "geneve-version", GENEVE_PORT, &rest));
        }
    }
    for inner in arp::packets(random).iter().step_by(6) {
        let rest = [geneve(random, 0, 0, ETHERNET), ethernet(random, inner)].concat();
        packets.push(over_udp(random, "geneve-arp", GENEVE_PORT, &rest));
    }
    for _ in 0..6 {
        let inner = ip(random);
        let inner = tag(random, "", 0x8100, &inner);
        let rest = [geneve(random, 0, 1, ETHERNET), ethernet(random, &inner)].concat();
        packets.push(over_udp(random, "geneve-vlan", GENEVE_PORT, &rest));
    }
    for _ in 0..6 {
        let inner = ip(random);
        let rest = [geneve(random, 0, 1, ETHERNET), ethernet(random, &inner)].concat();
        let inner = over_udp(random, "", GENEVE_PORT, &rest);
        let rest = [geneve(random, 0, 2, ETHERNET), ethernet(random, &inner)].concat();
        packets.push(over_udp(random, "geneve-nested", GENEVE_PORT, &rest));
        let rest = geneve(random, 0, 0, packet::IPV4);
        packets.push(over_udp(random, "geneve-empty", GENEVE_PORT, &rest));
    }
    packets
}

fn vxlan(random: &mut Random) -> Vec<u8> {
    [[0x0800_0000, one_of(random, &VNIS) << 8].map(u32::to_be_bytes)].concat().concat()
}

/// With a key or without, around IPv4, IPv6 or a frame.
fn gre(random: &mut Random) -> Packet {
    let inner = ip(random);
    let packet::Carried::EtherType(ether_type) = inner.carried else {
        return over_ip(random, "gre", 47, &[]);
    };
    let mut payload = if once_in(random, 2) {
        [&[0x20, 0], &ether_type.to_be_bytes()[..], &[0, 0, 0, 7]].concat()
    } else {
        [&[0, 0], &ether_type.to_be_bytes()[..]].concat()
    };
    payload.extend(inner.bytes);
    over_ip(random, "gre", 47, &payload)
}
