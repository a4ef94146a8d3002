//! Relations between arithmetic expressions.

use wire::random::Random;

use super::value;
use crate::pools::{ICMP_TYPES, ICMP6_TYPES, IP_PROTOCOLS, PORTS, below, once_in, one_of};

const OPERATORS: [&str; 8] = ["+", "-", "*", "&", "|", "^", "+", "&"];
const MASKS: [u32; 10] = [1, 0x0f, 0xf0, 0xff, 0x3f, 0x12, 0x1fff, 0x2000, 0xff00, 0x8000];
const SMALL: [u32; 12] = [0, 1, 2, 4, 5, 6, 14, 17, 20, 60, 64, 255];

const FLAGS: [&str; 8] =
    ["tcp-fin", "tcp-syn", "tcp-rst", "tcp-push", "tcp-ack", "tcp-urg", "tcp-ece", "tcp-cwr"];

const ICMP_NAMES: [&str; 15] = [
    "icmp-echoreply",
    "icmp-unreach",
    "icmp-sourcequench",
    "icmp-redirect",
    "icmp-echo",
    "icmp-routeradvert",
    "icmp-routersolicit",
    "icmp-timxceed",
    "icmp-paramprob",
    "icmp-tstamp",
    "icmp-tstampreply",
    "icmp-ireq",
    "icmp-ireqreply",
    "icmp-maskreq",
    "icmp-maskreply",
];

const ICMP6_NAMES: [&str; 29] = [
    "icmp6-destinationunreach",
    "icmp6-packettoobig",
    "icmp6-timeexceeded",
    "icmp6-parameterproblem",
    "icmp6-echo",
    "icmp6-echoreply",
    "icmp6-multicastlistenerquery",
    "icmp6-multicastlistenerreportv1",
    "icmp6-multicastlistenerdone",
    "icmp6-routersolicit",
    "icmp6-routeradvert",
    "icmp6-neighborsolicit",
    "icmp6-neighboradvert",
    "icmp6-redirect",
    "icmp6-routerrenum",
    "icmp6-nodeinformationquery",
    "icmp6-nodeinformationresponse",
    "icmp6-ineighbordiscoverysolicit",
    "icmp6-ineighbordiscoveryadvert",
    "icmp6-multicastlistenerreportv2",
    "icmp6-homeagentdiscoveryrequest",
    "icmp6-homeagentdiscoveryreply",
    "icmp6-mobileprefixsolicit",
    "icmp6-mobileprefixadvert",
    "icmp6-certpathsolicit",
    "icmp6-certpathadvert",
    "icmp6-multicastrouteradvert",
    "icmp6-multicastroutersolicit",
    "icmp6-multicastrouterterm",
];

/// Protocols that can be looked into, and how far it makes sense to.
const HEADERS: [(&str, usize); 32] = [
    ("ip", 20),
    ("ip", 20),
    ("ip", 40),
    ("ip", 20),
    ("ip6", 40),
    ("ip6", 48),
    ("tcp", 20),
    ("tcp", 20),
    ("tcp", 32),
    ("udp", 8),
    ("udp", 16),
    ("sctp", 16),
    ("icmp", 8),
    ("icmp6", 8),
    ("igmp", 8),
    ("ether", 20),
    ("ether", 14),
    ("link", 14),
    ("fddi", 14),
    ("tr", 14),
    ("arp", 28),
    ("rarp", 28),
    ("pim", 4),
    ("vrrp", 8),
    ("carp", 8),
    ("igrp", 8),
    ("decnet", 8),
    ("lat", 4),
    ("atalk", 4),
    ("moprc", 4),
    ("mopdl", 4),
    ("sca", 4),
];

pub(super) fn compare(random: &mut Random) -> &'static str {
    one_of(random, &["=", "==", "!=", ">", "<", ">=", "<=", "="])
}

pub(super) fn relation(random: &mut Random) -> String {
    match below(random, 10) {
        0 => flags(random),
        1 => messages(random),
        2 => known(random),
        3 | 4 => {
            let (field, mask) = (field(random, 0), one_of(random, &MASKS));
            let (mask, small) = (value::number(random, mask), one_of(random, &SMALL));
            format!("{field} & {mask} {} {small}", compare(random))
        }
        5 | 6 => {
            let (field, compare, small) =
                (field(random, 1), compare(random), one_of(random, &SMALL));
            format!("{field} {compare} {}", value::number(random, small))
        }
        _ => {
            let depth = one_of(random, &[0, 1, 1, 2, 3]);
            let (left, compare) = (term(random, depth), compare(random));
            format!("{left} {compare} {}", term(random, depth.saturating_sub(1)))
        }
    }
}

fn flags(random: &mut Random) -> String {
    let offset = one_of(random, &["tcpflags", "13", "0xd", "015"]);
    let (one, other) = (one_of(random, &FLAGS), one_of(random, &FLAGS));
    match below(random, 4) {
        0 => format!("tcp[{offset}] & {one} != 0"),
        1 => format!("tcp[{offset}] & ({one}|{other}) == ({one}|{other})"),
        2 => format!("tcp[{offset}] & ({one} | {other}) = {one}"),
        _ => format!("tcp[{offset}] == {one} + {other}"),
    }
}

fn messages(random: &mut Random) -> String {
    let compare = compare(random);
    match below(random, 6) {
        0 | 1 => format!("icmp[icmptype] {compare} {}", one_of(random, &ICMP_NAMES)),
        2 => format!("icmp6[icmp6type] {compare} {}", one_of(random, &ICMP6_NAMES)),
        3 => format!("icmp[icmptype:1] {compare} {}", one_of(random, &ICMP_TYPES)),
        4 => format!("icmp6[icmp6type] {compare} {}", one_of(random, &ICMP6_TYPES)),
        _ => format!("icmp[icmpcode] {compare} 1 or icmp6[icmp6code] = 0"),
    }
}

/// Fields that frames have values from the pools in.
fn known(random: &mut Random) -> String {
    let (compare, port, protocol) =
        (compare(random), one_of(random, &PORTS), one_of(random, &IP_PROTOCOLS));
    match below(random, 9) {
        0 => format!("tcp[0:2] {compare} {port}"),
        1 => format!("udp[2:2] {compare} {port}"),
        2 => format!("ip[9] {compare} {protocol}"),
        3 => format!("ip6[6] {compare} {protocol}"),
        4 => format!("ip[12:4] {compare} 0x0a000001"),
        5 => {
            format!("ether[12:2] {compare} {:#x}", one_of(random, &[0x0800, 0x86dd, 1500, 0x8100]))
        }
        6 => format!("(ip[0] & 0xf) << 2 {compare} {}", one_of(random, &[20, 24, 40, 60])),
        7 => format!("ip[2:2] - ((ip[0] & 0xf) << 2) - ((tcp[12] & 0xf0) >> 2) {compare} 0"),
        _ => format!("tcp[((tcp[12] & 0xf0) >> 2):4] {compare} 0x47455420"),
    }
}

/// Bytes of a header, at a constant offset or a computed one.
fn field(random: &mut Random, depth: usize) -> String {
    let (protocol, bytes) = one_of(random, &HEADERS);
    let offset = if depth > 0 && once_in(random, 6) {
        term(random, depth - 1)
    } else {
        let offset = below(random, bytes) as u32;
        value::number(random, offset)
    };
    let size = one_of(random, &["", "", "", ":1", ":2", ":2", ":4", " : 2 "]);
    format!("{protocol}[{offset}{size}]")
}

fn term(random: &mut Random, depth: usize) -> String {
    if depth == 0 {
        return match below(random, 8) {
            0 => "len".into(),
            1 | 2 => {
                let small = one_of(random, &SMALL);
                value::number(random, small)
            }
            _ => field(random, 0),
        };
    }
    let left = term(random, depth - 1);
    match below(random, 12) {
        0 => {
            format!("{left} {} {}", one_of(random, &["/", "%"]), one_of(random, &[1, 2, 3, 7, 256]))
        }
        1 => format!(
            "{left} {} {}",
            one_of(random, &["<<", ">>"]),
            one_of(random, &[0, 1, 4, 8, 31])
        ),
        2 => format!("-{left}"),
        3 => format!("{left} {} {}", one_of(random, &["/", "%", "<<", ">>"]), field(random, 0)),
        4 | 5 => {
            let operator = one_of(random, &OPERATORS);
            format!("({left} {operator} {})", term(random, depth - 1))
        }
        6 => format!("({left} & {:#x})", one_of(random, &MASKS)),
        7 => field(random, depth),
        _ => format!("{left} {} {}", one_of(random, &OPERATORS), term(random, depth - 1)),
    }
}
