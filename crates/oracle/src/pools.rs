//! The few values that both frames and expressions are made of, so that they often meet.

use std::net::{Ipv4Addr, Ipv6Addr};

use wire::random::Random;

/// Hosts, networks' own addresses, groups and broadcast addresses.
pub(crate) const IPV4: [Ipv4Addr; 12] = [
    Ipv4Addr::new(10, 0, 0, 1),
    Ipv4Addr::new(10, 0, 0, 2),
    Ipv4Addr::new(10, 9, 8, 7),
    Ipv4Addr::new(172, 16, 5, 9),
    Ipv4Addr::new(192, 168, 1, 1),
    Ipv4Addr::new(192, 168, 1, 77),
    Ipv4Addr::new(192, 168, 2, 255),
    Ipv4Addr::new(128, 3, 0, 1),
    Ipv4Addr::new(224, 0, 0, 5),
    Ipv4Addr::new(239, 1, 2, 3),
    Ipv4Addr::new(255, 255, 255, 255),
    Ipv4Addr::UNSPECIFIED,
];

pub(crate) const IPV6: [Ipv6Addr; 9] = [
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1),
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0x211, 0x22ff, 0xfe33, 0x4455),
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1),
    Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, 2),
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1),
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 5),
    Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0x0a00, 1),
    Ipv6Addr::LOCALHOST,
    Ipv6Addr::UNSPECIFIED,
];

pub(crate) type Mac = [u8; 6];

pub(crate) const MACS: [Mac; 8] = [
    [0x00, 0x11, 0x22, 0x33, 0x44, 0x55],
    [0x02, 0x00, 0x00, 0x00, 0x00, 0x01],
    [0x02, 0x00, 0x00, 0x00, 0x00, 0x02],
    [0xaa, 0x00, 0x04, 0x00, 0x01, 0x04],
    [0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
    [0x01, 0x00, 0x5e, 0x00, 0x00, 0x05],
    [0x33, 0x33, 0x00, 0x00, 0x00, 0x01],
    [0x01, 0x80, 0xc2, 0x00, 0x00, 0x00],
];

pub(crate) const PORTS: [u16; 12] = [0, 22, 53, 80, 123, 443, 1024, 4789, 6000, 6008, 6081, 65535];

/// Numbers that libpcap has a keyword for come first, then others that mean something.
pub(crate) const IP_PROTOCOLS: [u8; 22] = [
    6, 17, 132, 1, 58, 2, 9, 103, 112, 51, 50, // keywords
    0, 4, 41, 43, 44, 47, 59, 60, 88, 89, 255,
];

pub(crate) const VLANS: [u16; 6] = [0, 1, 100, 200, 300, 4095];
pub(crate) const LABELS: [u32; 6] = [0, 3, 16, 1024, 100_000, 0xf_ffff];
pub(crate) const SESSIONS: [u16; 4] = [0, 1, 0x27, 0xffff];
pub(crate) const VNIS: [u32; 4] = [0, 0xb, 100, 0xff_ffff];

/// As (area, node).
pub(crate) const DECNET: [(u8, u16); 3] = [(1, 1), (1, 1023), (63, 7)];

pub(crate) const ICMP_TYPES: [u8; 16] = [0, 3, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 40];
pub(crate) const ICMP6_TYPES: [u8; 30] = [
    1, 2, 3, 4, 128, 129, 130, 131, 132, 133, 134, 135, 136, 137, 138, 139, 140, 141, 142, 143,
    144, 145, 146, 147, 148, 149, 151, 152, 153, 200,
];
pub(crate) const PAYLOAD_BYTES: [usize; 8] = [0, 1, 4, 18, 26, 64, 200, 1200];

/// A member of an array that has some.
pub(crate) fn one_of<T: Copy, const N: usize>(random: &mut Random, list: &[T; N]) -> T {
    const { assert!(N > 0) };
    list[random.below(N as u64) as usize]
}

/// A number below `count`, at least 0.
pub(crate) fn below(random: &mut Random, count: usize) -> usize {
    random.below(count as u64) as usize
}

/// True once in `count` times.
pub(crate) fn once_in(random: &mut Random, count: usize) -> bool {
    below(random, count) == 0
}
