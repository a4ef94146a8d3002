//! Values in all ways in which they can be written.

use wire::random::Random;

use crate::pools::{self, DECNET, MACS, PORTS, below, once_in, one_of};

/// Decimal as a rule, else hexadecimal or octal.
pub(super) fn number(random: &mut Random, value: u32) -> String {
    match below(random, 8) {
        0 => format!("{value:#x}"),
        1 => format!("0X{value:X}"),
        2 => format!("0{value:o}"),
        _ => value.to_string(),
    }
}

pub(super) fn ipv4(random: &mut Random) -> String {
    one_of(random, &pools::IPV4).to_string()
}

/// The short form, all groups, all digits, or capitals.
pub(super) fn ipv6(random: &mut Random) -> String {
    let address = one_of(random, &pools::IPV6);
    let groups = |digits: fn(u16) -> String| address.segments().map(digits).join(":");
    match below(random, 6) {
        0 => groups(|group| format!("{group:x}")),
        1 => groups(|group| format!("{group:04x}")),
        2 => groups(|group| format!("{group:X}")),
        _ => address.to_string(),
    }
}

pub(super) fn mac(random: &mut Random) -> String {
    let address = one_of(random, &MACS);
    let bytes = |by: &str| address.map(|byte| format!("{byte:02x}")).join(by);
    let [a, b, c, d, e, f] = address;
    match below(random, 8) {
        0 => bytes("-"),
        1 => bytes("."),
        2 => bytes(""),
        3 => format!("{a:02x}{b:02x}.{c:02x}{d:02x}.{e:02x}{f:02x}"),
        4 => address.map(|byte| format!("{byte:X}")).join(":"),
        _ => bytes(":"),
    }
}

const NETWORKS: [&str; 22] = [
    "10",
    "10.0",
    "10.0.0",
    "10.0.0.1",
    "172.16",
    "192.168",
    "192.168.1",
    "128.3",
    "224",
    "10.0.0.0/8",
    "10.0.0.0/30",
    "10.0.0.1/32",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "192.168.1/24",
    "192.168.1.64/26",
    "224.0.0.0/4",
    "128.0.0.0/1",
    "0.0.0.0/0",
    "10.0.0.0 mask 255.0.0.0",
    "192.168.1.0 mask 255.255.255.0",
    "10.0.0.1 mask 255.0.0.255",
];
const NETWORKS6: [&str; 11] = [
    "fe80::/10",
    "fe80::/64",
    "2001:db8::/32",
    "2001:DB8::/33",
    "2001:db8:0:1::/64",
    "2001:db8:0:1::/65",
    "ff00::/8",
    "::/0",
    "::1/128",
    "2001:db8::1",
    "::ffff:10.0.0.0/104",
];

pub(super) fn network(random: &mut Random) -> String {
    one_of(random, &NETWORKS).to_string()
}

pub(super) fn network6(random: &mut Random) -> String {
    one_of(random, &NETWORKS6).to_string()
}

/// A number as a rule, else a name that any protocol over IP may have a service of.
pub(super) fn port(random: &mut Random) -> String {
    if once_in(random, 6) {
        one_of(random, &["domain", "https", "sunrpc", "domain", "kerberos"]).to_string()
    } else {
        let port = u32::from(one_of(random, &PORTS));
        number(random, port)
    }
}

/// Either end may be the greater one.
pub(super) fn port_range(random: &mut Random) -> String {
    match below(random, 8) {
        0 => one_of(random, &["6000-6008", "ssh-http", "0-65535", "domain-443"]).to_string(),
        1 => port(random),
        _ => format!("{}-{}", one_of(random, &PORTS), one_of(random, &PORTS)),
    }
}

pub(super) fn decnet(random: &mut Random) -> String {
    let (area, node) = one_of(random, &DECNET);
    format!("{area}.{node}")
}
