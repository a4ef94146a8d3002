//! Which packets are looked for.
//!
//! Criteria of one kind are alternatives, different kinds must all hold: hosts A or B, and port 53,
//! and the hour from ten to eleven. A kind without any criterion does not restrict.
//!
//! What they mean, on the bytes of the packet: a *host* or *network* matches the source or
//! destination of the outermost IP header, or sender or target of an ARP packet; a *port* the source
//! or destination port of TCP, UDP or SCTP. Fragments after the first have no ports and so never
//! match a port; packets inside tunnels are not looked at.
//! Limits: Ethernet, raw IP, Linux "cooked" and loopback captures; packets of other link types
//! match only if nothing but the time is restricted.

use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

use wire::parse::{Headers, Network, parse_ethernet, parse_ip};

use crate::record::LinkType;

/// Addresses with a common beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IpNetwork {
    address: IpAddr,
    prefix_length: u8,
}

impl IpNetwork {
    /// `None` if the prefix is longer than the address. Bits behind the prefix do not matter.
    pub fn new(address: IpAddr, prefix_length: u8) -> Option<Self> {
        let bits = if address.is_ipv4() { 32 } else { 128 };
        (prefix_length <= bits).then_some(Self { address, prefix_length })
    }

    /// Whether `address` is in it; never for the other version of IP.
    pub fn contains(&self, address: IpAddr) -> bool {
        let length = u32::from(self.prefix_length);
        match (self.address, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let differing = u32::from(network) ^ u32::from(address);
                differing.checked_shr(32 - length).unwrap_or(0) == 0
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let differing = u128::from(network) ^ u128::from(address);
                differing.checked_shr(128 - length).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

/// Why a text is no network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "«{text}» is no network; write an address and a prefix length, as 10.0.0.0/8 or 2001:db8::/32"
)]
pub struct NetworkError {
    text: String,
}

impl FromStr for IpNetwork {
    type Err = NetworkError;

    /// `address/length`, or an address alone for that one host.
    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let error = || NetworkError { text: text.into() };
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| error())?;
        let all = if address.is_ipv4() { 32 } else { 128 };
        let length = length.map_or(Ok(all), str::parse).map_err(|_| error())?;
        Self::new(address, length).ok_or_else(error)
    }
}

/// What a packet must have to be found. The default is everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// Earliest time that is found, in ns since the Unix epoch.
    pub from_ns: u64,
    /// Earliest time that is not found any more; `u64::MAX` for no end.
    pub to_ns: u64,
    /// Addresses.
    pub hosts: Vec<IpAddr>,
    /// Networks.
    pub networks: Vec<IpNetwork>,
    /// Ports of TCP, UDP, SCTP.
    pub ports: Vec<u16>,
    /// IP protocols, behind IPv6 extension headers.
    pub protocols: Vec<u8>,
    /// VLAN identifiers (12 bits) in any of the packet's tags.
    pub vlans: Vec<u16>,
    /// EtherTypes behind all VLAN tags, as 0x0806 for ARP.
    pub ethertypes: Vec<u16>,
}

impl Default for Selection {
    fn default() -> Self {
        Self {
            from_ns: 0,
            to_ns: u64::MAX,
            hosts: Vec::new(),
            networks: Vec::new(),
            ports: Vec::new(),
            protocols: Vec::new(),
            vlans: Vec::new(),
            ethertypes: Vec::new(),
        }
    }
}

impl Selection {
    /// All packets of `from_ns..to_ns`.
    pub fn between(from_ns: u64, to_ns: u64) -> Self {
        Self { from_ns, to_ns, ..Self::default() }
    }

    /// Whether the time is looked for.
    #[inline]
    pub fn holds_time(&self, time_ns: u64) -> bool {
        time_ns >= self.from_ns && (time_ns < self.to_ns || self.to_ns == u64::MAX)
    }

    /// Whether any time from `min_ns` to `max_ns`, both included, may be looked for.
    pub fn overlaps(&self, min_ns: u64, max_ns: u64) -> bool {
        let ordered = self.from_ns < self.to_ns || self.to_ns == u64::MAX;
        let begins = min_ns < self.to_ns || self.to_ns == u64::MAX;
        ordered && begins && max_ns >= self.from_ns
    }

    /// Whether only the time is restricted, so that packets need not be looked into.
    pub fn is_time_only(&self) -> bool {
        self.hosts.is_empty()
            && self.networks.is_empty()
            && self.ports.is_empty()
            && self.protocols.is_empty()
            && self.vlans.is_empty()
            && self.ethertypes.is_empty()
    }

    /// Whether a packet has what is asked for, apart from its time.
    pub fn holds_packet(&self, link_type: LinkType, data: &[u8]) -> bool {
        if self.is_time_only() {
            return true;
        }
        let Some((packet, headers)) = parse(link_type, data) else {
            return false;
        };
        self.holds_fields(&headers) && self.holds_ports(packet, &headers) && {
            let ends = ends(packet, &headers);
            self.holds_hosts(ends) && self.holds_networks(ends)
        }
    }

    fn holds_fields(&self, headers: &Headers) -> bool {
        let of_vlan = |tag: &u16| self.vlans.contains(&(tag & 0x0fff));
        (self.protocols.is_empty()
            || (headers.is_ip() && self.protocols.contains(&headers.ip_protocol)))
            && (self.vlans.is_empty() || headers.vlan_tags().iter().any(of_vlan))
            && (self.ethertypes.is_empty() || self.ethertypes.contains(&headers.ethertype))
    }

    fn holds_ports(&self, packet: &[u8], headers: &Headers) -> bool {
        self.ports.is_empty()
            || headers.ports(packet).is_some_and(|(source, destination)| {
                self.ports.contains(&source) || self.ports.contains(&destination)
            })
    }

    fn holds_hosts(&self, ends: Option<(IpAddr, IpAddr)>) -> bool {
        self.hosts.is_empty()
            || ends.is_some_and(|(a, b)| self.hosts.contains(&a) || self.hosts.contains(&b))
    }

    fn holds_networks(&self, ends: Option<(IpAddr, IpAddr)>) -> bool {
        self.networks.is_empty()
            || ends.is_some_and(|(a, b)| {
                self.networks.iter().any(|network| network.contains(a) || network.contains(b))
            })
    }
}

/// The packet from its first header that is understood, and its headers.
fn parse(link_type: LinkType, data: &[u8]) -> Option<(&[u8], Headers)> {
    let behind = match link_type {
        LinkType::ETHERNET => return Some((data, parse_ethernet(data))),
        LinkType::RAW | LinkType::IPV4 | LinkType::IPV6 => 0,
        LinkType::NULL | LinkType::LOOP => 4,
        LinkType::LINUX_SLL => 16,
        LinkType::LINUX_SLL2 => 20,
        _ => return None,
    };
    let packet = data.get(behind..)?;
    Some((packet, parse_ip(packet)))
}

/// Source and destination, or sender and target of ARP over Ethernet and IPv4 (RFC 826).
fn ends(packet: &[u8], headers: &Headers) -> Option<(IpAddr, IpAddr)> {
    if headers.network != Network::Arp {
        return headers.addresses(packet);
    }
    let arp = packet.get(usize::from(headers.l3_offset)..)?;
    let of_ipv4 = arp.get(2..6)? == [8, 0, 6, 4];
    let address = |at: usize| Some(IpAddr::V4(Ipv4Addr::from(*arp.get(at..)?.first_chunk()?)));
    if of_ipv4 { Some((address(14)?, address(24)?)) } else { None }
}

#[cfg(test)]
mod tests;
