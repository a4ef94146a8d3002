//! What 802.3 carries behind an LLC header, SNAP among it, and IPX without any.

use wire::random::Random;

use super::ipv4;
use super::packet::{Carried, IPV4, Packet, long_payload, random_bytes};
use super::transport::UDP;
use crate::pools::one_of;

/// Service access points that have names.
const SAPS: [(&str, u8); 4] =
    [("stp", 0x42), ("ipx-llc", 0xe0), ("netbeui", 0xf0), ("llc-ip", 0x06)];

/// Kinds of PDU of IS-IS.
const ISIS: [(&str, u8); 10] = [
    ("isis-l1-iih", 15),
    ("isis-l2-iih", 16),
    ("isis-ptp-iih", 17),
    ("isis-l1-lsp", 18),
    ("isis-l2-lsp", 20),
    ("isis-l1-csnp", 24),
    ("isis-l2-csnp", 25),
    ("isis-l1-psnp", 26),
    ("isis-l2-psnp", 27),
    ("isis-other", 31),
];

/// Control bytes of the frames of LLC that have no number.
const UNNUMBERED: [(&str, u8); 8] = [
    ("llc-ui", 0x03),
    ("llc-ua", 0x63),
    ("llc-disc", 0x43),
    ("llc-dm", 0x0f),
    ("llc-sabme", 0x6f),
    ("llc-test", 0xe3),
    ("llc-xid", 0xaf),
    ("llc-frmr", 0x87),
];
const SUPERVISORY: [(&str, u8); 3] = [("llc-rr", 0x01), ("llc-rnr", 0x05), ("llc-rej", 0x09)];

/// Organisation and protocol of SNAP.
const SNAP: [(&str, [u8; 3], u16); 6] = [
    ("ipx-snap", [0, 0, 0], 0x8137),
    ("snap-aarp", [0, 0, 0], 0x80f3),
    ("snap-atalk", [8, 0, 7], 0x809b),
    ("snap-other", [0, 0, 0x0c], 0x2000),
    ("snap-other", [8, 0, 7], 0x80f3),
    ("snap-other", [0, 0, 0], 0x809b),
];

fn llc(kind: &'static str, parts: [&[u8]; 2]) -> Packet {
    Packet { kind, carried: Carried::Llc, bytes: parts.concat() }
}

pub(super) fn packets(random: &mut Random) -> Vec<Packet> {
    let mut packets = Vec::new();
    for _ in 0..5 {
        for (kind, sap) in SAPS {
            packets.push(llc(kind, [&[sap, sap, 3], &long_payload(random)]));
        }
        for (kind, organisation, protocol) in SNAP {
            packets.push(snap(random, kind, organisation, protocol));
        }
        packets.extend(osi(random));
        packets.extend(controls(random));
        let bytes = [vec![0xff, 0xff], long_payload(random)].concat();
        packets.push(Packet { kind: "ipx-novell", carried: Carried::Novell, bytes });
        let inner = ipv4::whole(random, UDP);
        let header = [0xaa, 0xaa, 3, 0, 0, 0].into_iter().chain(IPV4.to_be_bytes());
        packets.push(llc("snap-ip", [&header.collect::<Vec<u8>>(), &inner.bytes]));
    }
    packets
}

fn snap(random: &mut Random, kind: &'static str, organisation: [u8; 3], protocol: u16) -> Packet {
    let header = [&[0xaa, 0xaa, 3], organisation.as_slice(), &protocol.to_be_bytes()].concat();
    llc(kind, [&header, &long_payload(random)])
}

fn osi(random: &mut Random) -> Vec<Packet> {
    let mut packets = Vec::new();
    for (kind, protocol) in [("clnp", 0x81), ("esis", 0x82), ("iso-other", 0x80)] {
        packets.push(llc(kind, [&[0xfe, 0xfe, 3, protocol], &long_payload(random)]));
    }
    for (kind, pdu) in ISIS {
        packets.push(llc(kind, [&[0xfe, 0xfe, 3, 0x83, 27, 1, 0, pdu], &long_payload(random)]));
    }
    packets
}

/// Frames of all kinds that the control field tells apart, to access points without a name.
fn controls(random: &mut Random) -> Vec<Packet> {
    let mut packets = Vec::new();
    let mut push = |random: &mut Random, kind, control: &[u8]| {
        let saps = one_of(random, &[[0x04, 0x05], [0x80, 0x80], [0xfc, 0x01]]);
        let header = [&saps, control].concat();
        packets.push(llc(kind, [&header, &long_payload(random)]));
    };
    for (kind, control) in UNNUMBERED {
        // The bit that asks for an answer, or is one.
        let poll = one_of(random, &[0, 0x10]);
        push(random, kind, &[control | poll]);
    }
    for (kind, control) in SUPERVISORY {
        let number = random_bytes(random, 1);
        push(random, kind, &[control, number[0]]);
    }
    let number = random_bytes(random, 2);
    push(random, "llc-i", &[number[0] & 0xfe, number[1]]);
    packets
}
