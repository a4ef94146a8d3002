//! What an expression consists of: a qualifier and an id, a keyword, or a relation.

use wire::random::Random;

use super::{AND, NOT, OR, arithmetic, value};
use crate::pools::{
    IP_PROTOCOLS, LABELS, PAYLOAD_BYTES, SESSIONS, VLANS, VNIS, below, once_in, one_of,
};

const DIRECTIONS: [&str; 9] =
    ["", "", "", "src ", "dst ", "src or dst ", "dst or src ", "src and dst ", "dst and src "];

const KEYWORDS: [&str; 56] = [
    "ip",
    "ip",
    "ip",
    "ip6",
    "ip6",
    "ip6",
    "tcp",
    "tcp",
    "tcp",
    "udp",
    "udp",
    "udp",
    "arp",
    "arp",
    "rarp",
    "sctp",
    "sctp",
    "icmp",
    "icmp",
    "icmp6",
    "icmp6",
    "igmp",
    "igrp",
    "pim",
    "vrrp",
    "carp",
    "ah",
    "esp",
    "iso",
    "clnp",
    "esis",
    "es-is",
    "isis",
    "is-is",
    "l1",
    "l2",
    "iih",
    "lsp",
    "snp",
    "csnp",
    "psnp",
    "stp",
    "ipx",
    "netbeui",
    "atalk",
    "aarp",
    "decnet",
    "lat",
    "sca",
    "moprc",
    "mopdl",
    "broadcast",
    "multicast",
    "ether multicast",
    "ip multicast",
    "ip6 multicast",
];

const IP_NAMES: [&str; 14] = [
    "\\tcp",
    "\\udp",
    "\\sctp",
    "\\icmp",
    "\\igmp",
    "\\pim",
    "\\vrrp",
    "\\ah",
    "\\esp",
    "gre",
    "ospf",
    "eigrp",
    "ipv6-icmp",
    "ipv6",
];

const ETHER_NAMES: [&str; 17] = [
    "\\ip",
    "\\ip6",
    "\\arp",
    "\\rarp",
    "\\atalk",
    "\\aarp",
    "\\decnet",
    "\\sca",
    "\\lat",
    "\\mopdl",
    "\\moprc",
    "\\iso",
    "\\stp",
    "\\ipx",
    "\\netbeui",
    "loopback",
    "\\ip",
];

const ETHER_NUMBERS: [u32; 18] = [
    0x0800, 0x86dd, 0x0806, 0x8100, 0x88a8, 0x9100, 0x8847, 0x8863, 0x8864, 0x9000, 0x88cc, 0x42,
    0xe0, 0xfe, 0xaa, 0x05dc, 0x05dd, 0x0600,
];

const LLC_TYPES: [&str; 14] =
    ["i", "s", "u", "rr", "rnr", "rej", "ui", "ua", "disc", "dm", "sabme", "test", "xid", "frmr"];

/// Those that make no sense on Ethernet, or never do.
const REFUSED: [&str; 46] = [
    "wlan type mgt",
    "type data subtype null",
    "subtype beacon",
    "wlan addr1 00:11:22:33:44:55",
    "ra 00:11:22:33:44:55",
    "dir tods",
    "on eth0",
    "ifname eth0",
    "rset main",
    "ruleset main",
    "rnr 1",
    "rulenum 1",
    "srnr 2",
    "reason match",
    "action pass",
    "action block",
    "fisu",
    "lssu",
    "lsu",
    "msu",
    "hfisu",
    "hmsu",
    "sio 1",
    "opc 2",
    "dpc > 1",
    "sls (1 or 2)",
    "hopc 1",
    "vpi 1",
    "vci 5",
    "lane",
    "metac",
    "bcc",
    "sc",
    "ilmic",
    "oam",
    "oamf4",
    "connectmsg",
    "metaconnect",
    "radio",
    "radio[0] = 1",
    "gateway 10.0.0.1",
    "ip broadcast",
    "port 65536",
    "net 10.1.2.3/8",
    "tcp host 10.0.0.1",
    "vlan 4096",
];

pub(super) fn primitive(random: &mut Random) -> String {
    match below(random, 100) {
        0..=10 => host(random),
        11..=18 => network(random),
        19..=28 => port(random),
        29..=32 => port_range(random),
        33..=45 => one_of(random, &KEYWORDS).to_string(),
        46..=53 => protocol(random),
        54 => protocol_chain(random),
        55..=60 => ether_host(random),
        61..=64 => vlan(random),
        65..=67 => tunnel(random),
        68..=71 => length(random),
        72..=74 => logical_link(random),
        75..=76 => odd(random),
        77 => one_of(random, &REFUSED).to_string(),
        _ => arithmetic::relation(random),
    }
}

/// One id, or several that share the qualifiers before them.
fn ids(random: &mut Random, id: fn(&mut Random) -> String) -> String {
    let (first, second) = (id(random), id(random));
    match below(random, 10) {
        0 => format!("{first} {} {second}", one_of(random, &OR)),
        1 => format!("({first} {} {second})", one_of(random, &OR)),
        2 => match below(random, 4) {
            0 => format!("{first} {} {second}", one_of(random, &AND)),
            1 => format!("{first} or {second} or {}", id(random)),
            2 => format!("{first} and {}{second}", one_of(random, &NOT)),
            _ => format!("({first} or ({second} and not {}))", id(random)),
        },
        _ => first,
    }
}

fn host(random: &mut Random) -> String {
    let direction = one_of(random, &DIRECTIONS);
    // A direction alone is enough to say that a host follows.
    let word = if !direction.is_empty() && once_in(random, 2) { "" } else { "host " };
    if once_in(random, 3) {
        let protocol = one_of(random, &["", "", "ip6 "]);
        format!("{protocol}{direction}{word}{}", ids(random, value::ipv6))
    } else {
        let protocol = one_of(random, &["", "", "", "ip ", "ip ", "arp ", "rarp "]);
        format!("{protocol}{direction}{word}{}", ids(random, value::ipv4))
    }
}

fn network(random: &mut Random) -> String {
    let direction = one_of(random, &DIRECTIONS);
    if once_in(random, 3) {
        let protocol = one_of(random, &["", "", "ip6 "]);
        format!("{protocol}{direction}net {}", ids(random, value::network6))
    } else {
        let protocol = one_of(random, &["", "", "", "ip ", "ip ", "arp ", "rarp "]);
        format!("{protocol}{direction}net {}", ids(random, value::network))
    }
}

fn port(random: &mut Random) -> String {
    let direction = one_of(random, &DIRECTIONS);
    if once_in(random, 12) {
        // Services that one protocol alone has.
        return format!(
            "{direction}port {}",
            one_of(random, &["http", "ssh", "ntp", "tftp", "www"])
        );
    }
    let protocol = one_of(random, &["", "", "tcp ", "tcp ", "udp ", "udp ", "sctp "]);
    format!("{protocol}{direction}port {}", ids(random, value::port))
}

fn port_range(random: &mut Random) -> String {
    let direction = one_of(random, &DIRECTIONS);
    let protocol = one_of(random, &["", "tcp ", "udp ", "sctp "]);
    format!("{protocol}{direction}portrange {}", ids(random, value::port_range))
}

fn ip_protocol(random: &mut Random) -> String {
    if once_in(random, 2) {
        return one_of(random, &IP_NAMES).to_string();
    }
    let protocol = u32::from(one_of(random, &IP_PROTOCOLS));
    value::number(random, protocol)
}

fn ether_protocol(random: &mut Random) -> String {
    if once_in(random, 2) {
        return one_of(random, &ETHER_NAMES).to_string();
    }
    let protocol = one_of(random, &ETHER_NUMBERS);
    value::number(random, protocol)
}

fn protocol(random: &mut Random) -> String {
    match below(random, 8) {
        0 | 1 => format!("ether proto {}", ids(random, ether_protocol)),
        2 => {
            format!("iso proto {}", one_of(random, &["\\clnp", "\\esis", "\\isis", "0x80", "129"]))
        }
        3 => format!("isis proto {}", one_of(random, &["15", "16", "18", "0x14", "27", "(31)"])),
        4 => format!("ip6 proto {}", ids(random, ip_protocol)),
        5 => format!("proto {}", ids(random, ip_protocol)),
        _ => format!("ip proto {}", ids(random, ip_protocol)),
    }
}

fn protocol_chain(random: &mut Random) -> String {
    let protocol = one_of(random, &["", "ip ", "ip6 ", "ip6 "]);
    format!("{protocol}protochain {}", ip_protocol(random))
}

fn ether_host(random: &mut Random) -> String {
    let direction = one_of(random, &DIRECTIONS);
    if once_in(random, 8) {
        return format!("decnet {direction}host {}", value::decnet(random));
    }
    let link = one_of(random, &["ether ", "ether ", "ether ", "link ", "fddi ", "tr ", "wlan "]);
    let word = if !direction.is_empty() && once_in(random, 2) { "" } else { "host " };
    format!("{link}{direction}{word}{}", ids(random, value::mac))
}

/// A keyword, half of the times with a number.
fn numbered(random: &mut Random, keyword: &str, number: u32) -> String {
    if once_in(random, 2) {
        return keyword.to_string();
    }
    format!("{keyword} {}", value::number(random, number))
}

fn vlan(random: &mut Random) -> String {
    let number = u32::from(one_of(random, &VLANS));
    numbered(random, "vlan", number)
}

fn tunnel(random: &mut Random) -> String {
    match below(random, 6) {
        0 => {
            let label = one_of(random, &LABELS);
            numbered(random, "mpls", label)
        }
        1 => "pppoed".into(),
        2 | 3 => {
            let session = u32::from(one_of(random, &SESSIONS));
            numbered(random, "pppoes", session)
        }
        _ => {
            let vni = one_of(random, &VNIS);
            numbered(random, "geneve", vni)
        }
    }
}

fn length(random: &mut Random) -> String {
    let payload_bytes = one_of(random, &PAYLOAD_BYTES);
    let bytes = (payload_bytes + one_of(random, &[0, 34, 54, 60, 100])) as u32;
    let bytes = value::number(random, bytes);
    match below(random, 3) {
        0 => format!("less {bytes}"),
        1 => format!("greater {bytes}"),
        _ => format!(
            "{} {} {bytes}",
            one_of(random, &["len", "length"]),
            arithmetic::compare(random)
        ),
    }
}

fn logical_link(random: &mut Random) -> String {
    if once_in(random, 3) { "llc".into() } else { format!("llc {}", one_of(random, &LLC_TYPES)) }
}

/// What is seldom used, or means something on other links.
fn odd(random: &mut Random) -> String {
    match below(random, 6) {
        0 => "inbound".into(),
        1 => "outbound".into(),
        2 => format!("ifindex {}", one_of(random, &["1", "2", "0x3", "70000"])),
        3 => one_of(random, &["ether broadcast", "link broadcast", "link multicast"]).into(),
        _ => {
            let operator = one_of(random, &["=", "<", ">", "&", "|"]);
            let (offset, number) = (below(random, 40), one_of(random, &[0, 1, 6, 0x45, 0x60, 255]));
            format!("byte {offset} {operator} {number}")
        }
    }
}
