//! What is told by its EtherType alone and is not IP.

use wire::random::Random;

use super::packet::{Packet, long_payload};
use crate::pools::{DECNET, one_of};

const TYPES: [(&str, u16); 11] = [
    ("mopdl", 0x6001),
    ("moprc", 0x6002),
    ("lat", 0x6004),
    ("sca", 0x6007),
    ("ipx", 0x8137),
    ("atalk", 0x809b),
    ("aarp", 0x80f3),
    ("loopback", 0x9000),
    ("ether-type", 0x88cc),
    ("ether-type", 0x0600),
    // Neither a length nor an EtherType.
    ("ether-type", 0x05dd),
];

const DECNET_TYPE: u16 = 0x6003;

pub(super) fn packets(random: &mut Random) -> Vec<Packet> {
    let mut packets = Vec::new();
    for (kind, ether_type) in TYPES {
        packets.extend((0..8).map(|_| Packet::new(kind, ether_type, long_payload(random))));
    }
    for padded in [false, true] {
        for long in [false, true] {
            packets.extend((0..8).map(|_| {
                let bytes = decnet(random, padded, long);
                Packet::new("decnet", DECNET_TYPE, bytes)
            }));
        }
    }
    packets
}

/// A routing header of DECnet phase IV, short or long, perhaps with a byte of padding before.
fn decnet(random: &mut Random, padded: bool, long: bool) -> Vec<u8> {
    let mut address = || {
        let (area, node) = one_of(random, &DECNET);
        (u16::from(area) << 10 | node).to_le_bytes()
    };
    let (destination, source) = (address(), address());
    let mut header = Vec::new();
    if padded {
        header.push(0x81);
    }
    if long {
        header.extend([0x06, 0, 0, 0xaa, 0, 4, 0]);
        header.extend(destination);
        header.extend([0, 0, 0xaa, 0, 4, 0]);
        header.extend(source);
        header.extend([0, 0, 0, 0]);
    } else {
        header.push(0x02);
        header.extend(destination);
        header.extend(source);
        header.push(0);
    }
    let payload = long_payload(random);
    let length_bytes = ((header.len() + payload.len()) as u16).to_le_bytes();
    [&length_bytes, header.as_slice(), payload.as_slice()].concat()
}
