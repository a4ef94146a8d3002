//! The link layer around a packet.

use wire::random::Random;

use super::packet::{Carried, IPV4, IPV6, Packet, random_bytes};
use super::transport::{TCP, UDP};
use super::{ETHERNET, Frame, LINUX_SLL, LINUX_SLL2, RAW, ipv4, ipv6};
use crate::pools::{MACS, Mac, below, once_in, one_of};

/// Protocols of the "cooked" link types that are no EtherTypes.
const NOVELL: u16 = 0x0001;
const LLC: u16 = 0x0004;

/// The hardware type of Ethernet.
const ARPHRD_ETHER: u16 = 1;

/// The packet in a frame of that link type, if it is one of ours.
pub(super) fn frame(random: &mut Random, link_type: u16, packet: &Packet) -> Option<Frame> {
    let mut kind = packet.kind;
    let data = match link_type {
        ETHERNET => {
            let (destination, source) = (one_of(random, &MACS), one_of(random, &MACS));
            ethernet(random, destination, source, packet)
        }
        RAW => {
            if !matches!(packet.carried, Carried::EtherType(IPV4 | IPV6)) {
                kind = "raw-other";
            }
            packet.bytes.clone()
        }
        LINUX_SLL => sll(random, packet),
        LINUX_SLL2 => sll2(random, packet),
        _ => return None,
    };
    Some(Frame { wire_bytes: data.len() as u32, data, kind })
}

/// Half of the short ones are padded to what Ethernet wants.
fn ethernet(random: &mut Random, destination: Mac, source: Mac, packet: &Packet) -> Vec<u8> {
    let mut data = [&destination, source.as_slice(), &packet.typed()].concat();
    if data.len() < 60 && once_in(random, 2) {
        data.resize(60, 0);
    }
    data
}

fn protocol(packet: &Packet) -> [u8; 2] {
    let number = match packet.carried {
        Carried::EtherType(ether_type) => ether_type,
        Carried::Llc => LLC,
        Carried::Novell => NOVELL,
    };
    number.to_be_bytes()
}

/// An address of Ethernet in the room of eight bytes.
fn padded_address(random: &mut Random) -> Vec<u8> {
    [one_of(random, &MACS).as_slice(), &random_bytes(random, 2)].concat()
}

fn sll(random: &mut Random, packet: &Packet) -> Vec<u8> {
    let direction = below(random, 5) as u16;
    let mut data = [direction, ARPHRD_ETHER, 6].map(u16::to_be_bytes).concat();
    data.extend(padded_address(random));
    data.extend(protocol(packet));
    data.extend(&packet.bytes);
    data
}

fn sll2(random: &mut Random, packet: &Packet) -> Vec<u8> {
    let mut data = [protocol(packet), [0, 0]].concat();
    let interface = one_of(random, &[1u32, 2, 3, 70_000]);
    data.extend(interface.to_be_bytes());
    data.extend(ARPHRD_ETHER.to_be_bytes());
    data.extend([below(random, 5) as u8, 6]);
    data.extend(padded_address(random));
    data.extend(&packet.bytes);
    data
}

/// Frames that matter for whom the link layer says they are for, or which way they go.
pub(super) fn addressed(random: &mut Random, link_type: u16) -> Vec<Frame> {
    let mut frames = Vec::new();
    for _ in 0..8 {
        for packet in [ipv4::whole(random, TCP), ipv6::whole(random, UDP)] {
            match link_type {
                ETHERNET => frames.extend(to_many(random, &packet)),
                LINUX_SLL => frames.extend(directed(&sll(random, &packet), 1)),
                LINUX_SLL2 => frames.extend(directed(&sll2(random, &packet), 10)),
                _ => {}
            }
        }
    }
    frames
}

fn to_many(random: &mut Random, packet: &Packet) -> Vec<Frame> {
    let groups = [
        ("ether-broadcast", [0xff; 6]),
        ("ether-multicast", [0x01, 0x00, 0x5e, 0x00, 0x00, 0x05]),
        ("ether-multicast", [0x33, 0x33, 0x00, 0x00, 0x00, 0x01]),
    ];
    let [source, ..] = MACS;
    groups
        .map(|(kind, destination)| {
            let data = ethernet(random, destination, source, packet);
            Frame { wire_bytes: data.len() as u32, data, kind }
        })
        .into()
}

/// The same frame in each direction, which is in the byte at an offset.
fn directed(data: &[u8], offset: usize) -> Vec<Frame> {
    let kinds =
        ["cooked-inbound", "cooked-inbound", "cooked-inbound", "cooked-inbound", "cooked-outbound"];
    let frame = |(direction, kind)| {
        let mut data = data.to_vec();
        data[offset] = direction;
        Frame { wire_bytes: data.len() as u32, data, kind }
    };
    (0u8..).zip(kinds).map(frame).collect()
}
