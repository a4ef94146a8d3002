//! Which packets are looked for.
//!
//! Criteria of one kind are alternatives, different kinds must all hold: hosts A or B, and port 53,
//! and the hour from ten to eleven. A kind without any criterion does not restrict.
//!
//! What they mean, on the bytes of the packet: a *host* or *network* matches the source or
//! destination of the outermost IP header, or sender or target of an ARP packet; a *port* the source
//! or destination port of TCP, UDP or SCTP. Fragments after the first have no ports and so never
//! match a port; packets inside tunnels are not looked at. Of a packet that was cut when it was
//! captured it may be unknown whether it has what is asked for: a [`Verdict`] says so.
//! Limits: Ethernet, raw IP, Linux "cooked" and loopback captures; packets of other link types
//! match only if nothing but the time is restricted.

use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

use wire::parse::{Fragment, Headers, Marks, Network, parse_link};
use wire::{ethertype, ip_protocol};

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

    /// `address/length`. An address alone is refused: a forgotten length would be one host, and an
    /// empty answer would look like a true one.
    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let error = || NetworkError { text: text.into() };
        let (address, length) = text.split_once('/').ok_or_else(error)?;
        let address: IpAddr = address.parse().map_err(|_| error())?;
        let length = length.parse().map_err(|_| error())?;
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

    /// Whether a whole packet has what is asked for, apart from its time.
    pub fn holds_packet(&self, link_type: LinkType, data: &[u8]) -> bool {
        self.judge(link_type, data, 0) == Verdict::Holds
    }

    /// What is known of a packet of `original_length` bytes by those that were captured, apart from
    /// its time.
    pub fn judge(&self, link_type: LinkType, data: &[u8], original_length: u32) -> Verdict {
        if self.is_time_only() {
            return Verdict::Holds;
        }
        let is_cut = (data.len() as u64) < u64::from(original_length);
        let Some((bytes, headers)) = parse_link(link_type.0, data) else {
            return Verdict::Differs;
        };
        let packet = Packet { bytes, headers, is_cut };
        let kinds = [Self::judge_tags, Self::judge_protocol, Self::judge_ports, Self::judge_ends];
        kinds.iter().map(|judge| judge(self, &packet)).max().unwrap_or(Verdict::Holds)
    }

    fn judge_tags(&self, packet: &Packet<'_>) -> Verdict {
        let headers = &packet.headers;
        let of_vlan = |tag: &u16| self.vlans.contains(&(tag & 0x0fff));
        let tag = self.vlans.is_empty() || headers.vlan_tags().iter().any(of_vlan);
        let ethertype = self.ethertypes.is_empty() || self.ethertypes.contains(&headers.ethertype);
        let lacks = packet.lacks_tags() && !(tag && self.ethertypes.is_empty());
        Verdict::of((!lacks).then_some(tag && ethertype))
    }

    fn judge_protocol(&self, packet: &Packet<'_>) -> Verdict {
        if self.protocols.is_empty() {
            return Verdict::Holds;
        }
        let headers = &packet.headers;
        let holds = headers.is_ip() && self.protocols.contains(&headers.ip_protocol);
        Verdict::of((!packet.lacks_protocol()).then_some(holds))
    }

    fn judge_ports(&self, packet: &Packet<'_>) -> Verdict {
        if self.ports.is_empty() {
            return Verdict::Holds;
        }
        if packet.lacks_protocol() {
            return Verdict::Undecided;
        }
        if !packet.has_ports() {
            return Verdict::Differs;
        }
        match packet.ports() {
            Some(ports) => Verdict::of(Some(ports.iter().any(|port| self.ports.contains(port)))),
            None => packet.missing(),
        }
    }

    fn judge_ends(&self, packet: &Packet<'_>) -> Verdict {
        if self.hosts.is_empty() && self.networks.is_empty() {
            return Verdict::Holds;
        }
        let Some(ends) = ends(packet.bytes, &packet.headers) else {
            let lacks = packet.lacks_network() || packet.headers.network == Network::Arp;
            return if lacks { packet.missing() } else { Verdict::Differs };
        };
        let ends = [ends.0, ends.1];
        let of_network = |network: &IpNetwork| ends.iter().any(|end| network.contains(*end));
        let host = self.hosts.is_empty() || ends.iter().any(|end| self.hosts.contains(end));
        let network = self.networks.is_empty() || self.networks.iter().any(of_network);
        Verdict::of(Some(host && network))
    }
}

/// What is known of a packet. Of several kinds of criteria the greatest verdict is that of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// It has what is asked for.
    Holds,
    /// It was cut when it was captured, before the headers that decide.
    Undecided,
    /// It has not.
    Differs,
}

impl Verdict {
    /// Of what is known, or not.
    fn of(known: Option<bool>) -> Self {
        match known {
            Some(true) => Self::Holds,
            None => Self::Undecided,
            Some(false) => Self::Differs,
        }
    }
}

/// A packet from its first header that is understood.
struct Packet<'a> {
    bytes: &'a [u8],
    headers: Headers,
    /// Bytes of its end were not captured.
    is_cut: bool,
}

impl Packet<'_> {
    /// What to say where bytes are needed that are not there.
    fn missing(&self) -> Verdict {
        if self.is_cut { Verdict::Undecided } else { Verdict::Differs }
    }

    /// Whether the cut lies in the network header or before.
    fn lacks_network(&self) -> bool {
        self.is_cut
            && self.headers.network == Network::None
            && self.headers.marks.contains(Marks::TRUNCATED)
    }

    /// Whether the cut lies in the Ethernet header or the VLAN tags.
    fn lacks_tags(&self) -> bool {
        let ahead = matches!(
            self.headers.ethertype,
            0 | ethertype::VLAN | ethertype::VLAN_SERVICE | ethertype::VLAN_STACKED
        );
        ahead && self.lacks_network()
    }

    /// Whether the cut lies before what says the IP protocol, among the extension headers at last.
    fn lacks_protocol(&self) -> bool {
        let headers = &self.headers;
        let extension = match headers.network {
            Network::None => return self.lacks_network() && headers.ethertype != ethertype::ARP,
            Network::Arp => return false,
            Network::Ipv4 => headers.ip_protocol == ip_protocol::AUTHENTICATION,
            Network::Ipv6 => ip_protocol::is_extension(headers.ip_protocol),
        };
        let followed = !headers.marks.contains(Marks::TOO_DEEP);
        self.is_cut && extension && followed && headers.fragment != Fragment::Later
    }

    fn has_ports(&self) -> bool {
        let (udp, tcp, sctp) = (ip_protocol::UDP, ip_protocol::TCP, ip_protocol::SCTP);
        let protocol = self.headers.protocol();
        let of_ports = protocol.is_some_and(|protocol| [udp, tcp, sctp].contains(&protocol));
        of_ports && self.headers.fragment != Fragment::Later
    }

    /// Source and destination port, which stand first in each of the headers that have them: the
    /// rest of the header need not be there.
    fn ports(&self) -> Option<[u16; 2]> {
        let at = usize::from(self.headers.l4_offset);
        // No IP header is that short: an l4 offset of 0 is none.
        let packet = self.bytes.get(..self.headers.network_end()).filter(|_| at > 0)?;
        let [a, b, c, d] = *packet.get(at..)?.first_chunk()?;
        Some([u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])])
    }
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
