//! Names of hosts, networks, services and protocols.

use std::net::{IpAddr, ToSocketAddrs};
use std::path::Path;

/// A service's port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortName {
    /// Its number.
    pub port: u16,
    /// Protocol number of TCP or UDP, if the service is one of that protocol only.
    pub transport: Option<u32>,
}

/// Where names are looked up.
pub trait Names {
    /// The addresses of a host, in order.
    fn host(&self, name: &str) -> Vec<IpAddr>;
    /// The MAC address of a host.
    fn ether_host(&self, name: &str) -> Option<[u8; 6]>;
    /// The number of a network.
    fn network(&self, name: &str) -> Option<u32>;
    /// The port of a service, or of a number.
    fn port(&self, name: &str) -> Option<PortName>;
    /// The number of a protocol over IP.
    fn protocol(&self, name: &str) -> Option<u32>;
}

/// Names as this machine knows them: services(5), protocols(5), networks(5), ethers(5), and its
/// resolver for hosts. Common services and protocols are known without the files.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemNames;

/// Services that filters name, for machines without /etc/services: port, whether TCP, whether UDP.
const SERVICES: [(&str, u16, bool, bool); 24] = [
    ("ftp-data", 20, true, false),
    ("ftp", 21, true, false),
    ("ssh", 22, true, false),
    ("telnet", 23, true, false),
    ("smtp", 25, true, false),
    ("domain", 53, true, true),
    ("bootps", 67, false, true),
    ("bootpc", 68, false, true),
    ("tftp", 69, false, true),
    ("http", 80, true, false),
    ("kerberos", 88, true, true),
    ("pop3", 110, true, false),
    ("ntp", 123, false, true),
    ("imap2", 143, true, false),
    ("snmp", 161, true, true),
    ("bgp", 179, true, false),
    ("ldap", 389, true, true),
    ("https", 443, true, true),
    ("syslog", 514, false, true),
    ("ldaps", 636, true, true),
    ("imaps", 993, true, false),
    ("pop3s", 995, true, false),
    ("nfs", 2049, true, true),
    ("mysql", 3306, true, false),
];

const PROTOCOLS: [(&str, u32); 14] = [
    ("ip", 0),
    ("icmp", 1),
    ("igmp", 2),
    ("tcp", 6),
    ("udp", 17),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("ipv6-icmp", 58),
    ("ospf", 89),
    ("pim", 103),
    ("vrrp", 112),
    ("l2tp", 115),
    ("sctp", 132),
];

impl Names for SystemNames {
    fn host(&self, name: &str) -> Vec<IpAddr> {
        let mut addresses: Vec<IpAddr> = Vec::new();
        for address in (name, 0).to_socket_addrs().into_iter().flatten() {
            if !addresses.contains(&address.ip()) {
                addresses.push(address.ip());
            }
        }
        addresses
    }

    fn ether_host(&self, name: &str) -> Option<[u8; 6]> {
        lines("/etc/ethers").into_iter().find_map(|line| {
            let (mac, host) = line.split_once(char::is_whitespace)?;
            if host.trim() != name {
                return None;
            }
            let mut bytes = mac.split(':').map(|byte| u8::from_str_radix(byte, 16));
            let mac = std::array::from_fn(|_| bytes.next().and_then(Result::ok));
            let mac: [Option<u8>; 6] = mac;
            let mac: Vec<u8> = mac.into_iter().collect::<Option<_>>()?;
            mac.try_into().ok()
        })
    }

    fn network(&self, name: &str) -> Option<u32> {
        entries("/etc/networks", name).find_map(|value| {
            value
                .split('.')
                .try_fold(0, |sum, part| Some(sum << 8 | u32::from(part.parse::<u8>().ok()?)))
        })
    }

    fn port(&self, name: &str) -> Option<PortName> {
        if let Ok(port) = name.parse::<u16>() {
            return Some(PortName { port, transport: None });
        }
        let mut of_tcp = None;
        let mut of_udp = None;
        for value in entries("/etc/services", name) {
            let (port, protocol) = value.split_once('/')?;
            let place = match protocol {
                "tcp" => &mut of_tcp,
                "udp" => &mut of_udp,
                _ => continue,
            };
            *place = place.or(port.parse::<u16>().ok());
        }
        if of_tcp.is_none()
            && of_udp.is_none()
            && !Path::new("/etc/services").exists()
            && let Some((_, port, tcp, udp)) = SERVICES.iter().find(|entry| entry.0 == name)
        {
            (of_tcp, of_udp) = (tcp.then_some(*port), udp.then_some(*port));
        }
        match (of_tcp, of_udp) {
            (Some(port), Some(other)) if port == other => Some(PortName { port, transport: None }),
            (Some(port), _) => Some(PortName { port, transport: Some(6) }),
            (None, Some(port)) => Some(PortName { port, transport: Some(17) }),
            (None, None) => None,
        }
    }

    fn protocol(&self, name: &str) -> Option<u32> {
        let known = || PROTOCOLS.iter().find(|entry| entry.0 == name).map(|entry| entry.1);
        entries("/etc/protocols", name).find_map(|value| value.parse().ok()).or_else(known)
    }
}

/// The second words of all lines that give `name` as their first word or as an alias.
fn entries(path: &str, name: &str) -> impl Iterator<Item = String> {
    lines(path).into_iter().filter_map(move |line| {
        let mut words = line.split_whitespace();
        let first = words.next()?;
        let value = words.next()?;
        let is_meant = first == name || words.any(|alias| alias == name);
        is_meant.then(|| value.to_string())
    })
}

/// A file's lines without comments; none if it cannot be read.
fn lines(path: &str) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| line.split('#').next().unwrap_or_default().to_string()).collect()
}

/// The decimal number that `text` begins with, maybe with a sign, and what follows it. Saturates.
pub(crate) fn number_in_front(text: &str) -> Option<(i64, &str)> {
    let digits_at = usize::from(text.starts_with(['-', '+']));
    let digits = text[digits_at..].bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return None;
    }
    let (number, rest) = text.split_at(digits_at + digits);
    let saturated = if number.starts_with('-') { i64::MIN } else { i64::MAX };
    Some((number.parse().unwrap_or(saturated), rest))
}
