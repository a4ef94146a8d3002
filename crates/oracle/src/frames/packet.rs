//! What a link layer carries.

use wire::random::Random;

use crate::pools::{PAYLOAD_BYTES, one_of};

/// How the link layer says what it carries.
#[derive(Clone, Copy, Debug)]
pub(super) enum Carried {
    EtherType(u16),
    /// By an LLC header, which the bytes begin with.
    Llc,
    /// Not at all: IPX as Novell put it into 802.3, beginning with ffff.
    Novell,
}

#[derive(Clone, Debug)]
pub(super) struct Packet {
    pub(super) kind: &'static str,
    pub(super) carried: Carried,
    pub(super) bytes: Vec<u8>,
}

pub(super) const IPV4: u16 = 0x0800;
pub(super) const IPV6: u16 = 0x86dd;

impl Packet {
    pub(super) fn new(kind: &'static str, ether_type: u16, bytes: Vec<u8>) -> Self {
        Self { kind, carried: Carried::EtherType(ether_type), bytes }
    }

    pub(super) fn of_kind(self, kind: &'static str) -> Self {
        Self { kind, ..self }
    }

    /// What follows addresses or a tag: the EtherType, or the length where there is none.
    pub(super) fn typed(&self) -> Vec<u8> {
        let field = match self.carried {
            Carried::EtherType(ether_type) => ether_type,
            Carried::Llc | Carried::Novell => self.bytes.len().min(1500) as u16,
        };
        [&field.to_be_bytes(), self.bytes.as_slice()].concat()
    }
}

pub(super) fn random_bytes(random: &mut Random, count: usize) -> Vec<u8> {
    (0..count).map(|_| random.next_u64() as u8).collect()
}

/// Some bytes that mean nothing, of a length from the pool.
pub(super) fn payload(random: &mut Random) -> Vec<u8> {
    let count = one_of(random, &PAYLOAD_BYTES);
    random_bytes(random, count)
}

/// As many bytes as the shortest frame of Ethernet wants, at least.
pub(super) fn long_payload(random: &mut Random) -> Vec<u8> {
    let bytes = payload(random);
    if bytes.len() < 46 { random_bytes(random, 46) } else { bytes }
}
