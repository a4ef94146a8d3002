//! What IP carries.

use wire::random::Random;

use super::packet::{payload, random_bytes};
use crate::pools::{ICMP_TYPES, ICMP6_TYPES, PORTS, below, one_of};

pub(super) const ICMP: u8 = 1;
pub(super) const IGMP: u8 = 2;
pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
pub(super) const AH: u8 = 51;
pub(super) const ICMP6: u8 = 58;
pub(super) const SCTP: u8 = 132;

/// A packet of the protocol.
pub(super) fn transport(random: &mut Random, protocol: u8) -> Vec<u8> {
    match protocol {
        TCP => {
            let flags = random.next_u64() as u8;
            tcp(random, flags)
        }
        UDP => {
            let payload = payload(random);
            let (source, destination) = (one_of(random, &PORTS), one_of(random, &PORTS));
            udp(source, destination, &payload)
        }
        SCTP => sctp(random),
        ICMP => {
            let number = one_of(random, &ICMP_TYPES);
            icmp(random, number)
        }
        ICMP6 => {
            let number = one_of(random, &ICMP6_TYPES);
            icmp(random, number)
        }
        IGMP => {
            let number = one_of(random, &[0x11, 0x16, 0x17, 0x22]);
            icmp(random, number)
        }
        AH => authenticated(random, TCP),
        _ => [random_bytes(random, 16), payload(random)].concat(),
    }
}

pub(super) fn tcp(random: &mut Random, flags: u8) -> Vec<u8> {
    let (source, destination) = (one_of(random, &PORTS), one_of(random, &PORTS));
    let option_words = one_of(random, &[0, 0, 1, 3, 5, 10]);
    let mut bytes = [source.to_be_bytes(), destination.to_be_bytes()].concat();
    bytes.extend(random_bytes(random, 8));
    bytes.push(((5 + option_words) << 4) as u8);
    bytes.push(flags);
    bytes.extend(random_bytes(random, 6));
    bytes.extend(random_bytes(random, option_words * 4));
    bytes.extend(payload(random));
    bytes
}

pub(super) fn udp(source: u16, destination: u16, payload: &[u8]) -> Vec<u8> {
    let length_bytes = (8 + payload.len()) as u16;
    let header = [source, destination, length_bytes, 0].map(u16::to_be_bytes).concat();
    [&header, payload].concat()
}

fn sctp(random: &mut Random) -> Vec<u8> {
    let (source, destination) = (one_of(random, &PORTS), one_of(random, &PORTS));
    let mut bytes = [source.to_be_bytes(), destination.to_be_bytes()].concat();
    bytes.extend(random_bytes(random, 8));
    let chunk = below(random, 15) as u8;
    bytes.extend([chunk, 0, 0, 4]);
    bytes.extend(payload(random));
    bytes
}

/// ICMP, ICMPv6 or IGMP: they begin alike.
pub(super) fn icmp(random: &mut Random, number: u8) -> Vec<u8> {
    let code = one_of(random, &[0, 0, 1, 3, 13]);
    [vec![number, code], random_bytes(random, 6), payload(random)].concat()
}

/// An authentication header of 24 bytes, then another protocol.
pub(super) fn authenticated(random: &mut Random, then: u8) -> Vec<u8> {
    let mut bytes = vec![then, 4, 0, 0];
    bytes.extend(random_bytes(random, 20));
    bytes.extend(transport(random, then));
    bytes
}
