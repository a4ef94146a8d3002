//! ARP and RARP, of IPv4 and of others.

use wire::random::Random;

use super::packet::{IPV4, IPV6, Packet, random_bytes};
use crate::pools::{self, MACS, one_of};

const ARP: u16 = 0x0806;
const RARP: u16 = 0x8035;

pub(super) fn packets(random: &mut Random) -> Vec<Packet> {
    let mut packets = Vec::new();
    for _ in 0..30 {
        let operation = one_of(random, &[1, 2]);
        packets.push(Packet::new("arp", ARP, of_ipv4(random, operation)));
    }
    for _ in 0..16 {
        let operation = one_of(random, &[3, 4]);
        packets.push(Packet::new("rarp", RARP, of_ipv4(random, operation)));
    }
    for ether_type in [ARP, RARP] {
        for (protocol, length_bytes) in [(IPV6, 16), (0x809b, 4), (0x0805, 8), (IPV4, 0)] {
            let bytes = [
                [1, protocol].map(u16::to_be_bytes).concat(),
                vec![6, length_bytes, 0, 1],
                random_bytes(random, 2 * (6 + usize::from(length_bytes))),
            ];
            packets.push(Packet::new("arp-other", ether_type, bytes.concat()));
        }
    }
    packets
}

fn of_ipv4(random: &mut Random, operation: u16) -> Vec<u8> {
    let mut bytes = [1, IPV4].map(u16::to_be_bytes).concat();
    bytes.extend([6, 4]);
    bytes.extend(operation.to_be_bytes());
    for _ in 0..2 {
        bytes.extend(one_of(random, &MACS));
        bytes.extend(one_of(random, &pools::IPV4).octets());
    }
    bytes
}
