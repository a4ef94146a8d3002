//! What one pass over a frame found: offsets, kinds and marks.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::VLAN_TAGS_MAX;
use crate::bytes::chunk;
use crate::ethertype;

/// The network protocol at [`Headers::l3_offset`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Network {
    /// None that is known, or its header was not complete.
    #[default]
    None,
    /// ARP, RFC 826.
    Arp,
    /// IPv4, RFC 791.
    Ipv4,
    /// IPv6, RFC 8200.
    Ipv6,
}

/// The transport protocol at [`Headers::l4_offset`], if its fixed header is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Transport {
    /// None that is known, a later fragment, or an incomplete header.
    #[default]
    None,
    /// TCP, RFC 9293.
    Tcp,
    /// UDP, RFC 768.
    Udp,
    /// ICMP for IPv4, RFC 792.
    Icmp,
    /// ICMP for IPv6, RFC 4443.
    Icmpv6,
    /// SCTP, RFC 9260.
    Sctp,
}

/// Whether an IP packet is a part of a larger one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fragment {
    /// A whole packet (or an IPv6 atomic fragment, RFC 6946).
    #[default]
    None,
    /// The first of several fragments: it has the l4 header.
    First,
    /// Any fragment after the first: no l4 header.
    Later,
}

/// A VLAN tag, IEEE 802.1Q clause 9.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct VlanTag {
    /// Tag protocol identifier: 0x8100, 0x88a8 or 0x9100.
    pub tpid: u16,
    /// Tag control information: priority (3 bits), drop eligible (1 bit), id (12 bits).
    pub tci: u16,
}

impl VlanTag {
    /// VLAN id, 0 to 4095.
    #[inline]
    pub const fn id(self) -> u16 {
        self.tci & 0x0fff
    }

    /// Priority code point, 0 to 7.
    #[inline]
    pub const fn priority(self) -> u8 {
        (self.tci >> 13) as u8
    }

    /// Drop eligible indicator.
    #[inline]
    pub const fn drop_eligible(self) -> bool {
        self.tci & 0x1000 != 0
    }
}

/// What is remarkable about a frame; a set of bits.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Marks(u8);

impl Marks {
    /// Fewer bytes are there than the headers say: cut by a snap length, or a short frame.
    pub const TRUNCATED: Self = Self(1);
    /// A length or version contradicts the bytes around it.
    pub const MALFORMED: Self = Self(2);
    /// More VLAN tags, MPLS labels or extension headers than are followed.
    pub const TOO_DEEP: Self = Self(4);
    /// An IPv6 routing header with segments left: the destination in the IPv6
    /// header is not the final one, which the transport checksum covers
    /// (RFC 8200 section 8.1).
    pub const ROUTED: Self = Self(8);

    /// Whether all bits of `other` are set.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether at least one bit of `other` is set.
    #[inline]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether no mark is set.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The set of all marks of both.
    #[inline]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    #[inline]
    pub(super) fn insert(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl fmt::Display for Marks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (Self::TRUNCATED, "truncated"),
            (Self::MALFORMED, "malformed"),
            (Self::TOO_DEEP, "too deep"),
            (Self::ROUTED, "routed"),
        ];
        let mut separator = "";
        for (_, name) in names.into_iter().filter(|(mark, _)| self.contains(*mark)) {
            write!(formatter, "{separator}{name}")?;
            separator = ", ";
        }
        Ok(())
    }
}

impl fmt::Debug for Marks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Marks({self})")
    }
}

/// Where the headers of one frame are, and what they are.
///
/// All offsets are bytes from the start of the slice that was parsed and never
/// lie beyond its end. Methods that take the data expect that same slice; with
/// another they may return wrong values or `None`, but never panic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    /// How many entries of `vlan_tags` are set.
    pub vlan_count: u8,
    /// How many MPLS labels stand before the network header.
    pub mpls_count: u8,
    /// The IP protocol after all extension headers; 0 without IP.
    pub ip_protocol: u8,
    /// Network protocol.
    pub network: Network,
    /// Transport protocol.
    pub transport: Transport,
    /// Whether the packet is a fragment, and which.
    pub fragment: Fragment,
    /// What is remarkable.
    pub marks: Marks,
    /// VLAN tags, outermost first.
    pub vlans: [VlanTag; VLAN_TAGS_MAX],
    /// Tag control information (priority 3 bits, drop eligible 1, id 12),
    /// outermost first.
    pub vlan_tags: [u16; VLAN_TAGS_MAX],
    /// The EtherType after all VLAN tags (0x8847 for MPLS); below 0x0600 an
    /// IEEE 802.3 length. For raw IP that of the IP version.
    pub ethertype: u16,
    /// Start of the network header, or of what follows the tags and labels.
    pub l3_offset: u16,
    /// Start of what follows the IP header and its extensions; 0 without IP.
    pub l4_offset: u16,
    /// Start of the payload behind the innermost header that was understood.
    pub payload_offset: u16,
    /// End of the IP or ARP packet, without Ethernet padding.
    pub network_end: u32,
    /// End of the payload: `network_end`, or less if the UDP length says so.
    pub payload_end: u32,
}

impl Headers {
    /// No header found in `bytes` bytes.
    #[inline]
    pub(super) fn ending_at(bytes: usize) -> Self {
        let end = u32::try_from(bytes).unwrap_or(u32::MAX);
        Self { network_end: end, payload_end: end, ..Self::default() }
    }

    /// The network header, if any, starts at `at`.
    #[inline]
    pub(super) fn start_l3(&mut self, at: usize) {
        self.l3_offset = at as u16;
        self.payload_offset = at as u16;
    }

    /// What follows the IP headers starts at `at` and ends before `end`.
    #[inline]
    pub(super) fn start_l4(&mut self, at: usize, end: usize) {
        self.l4_offset = at as u16;
        self.payload_offset = at as u16;
        self.network_end = end as u32;
        self.payload_end = end as u32;
    }

    /// The smaller of what is there and what the IP header says; marks truncation.
    #[inline]
    pub(super) fn limit(&mut self, available: usize, said: usize) -> usize {
        if said > available {
            self.marks.insert(Marks::TRUNCATED);
            return available;
        }
        said
    }

    /// An inner header needs more than there is: the fault of the capture if it
    /// is truncated already, of the packet otherwise.
    #[inline]
    pub(super) fn cut_short(&mut self) {
        if !self.marks.contains(Marks::TRUNCATED) {
            self.marks.insert(Marks::MALFORMED);
        }
    }

    /// The VLAN tags, outermost first.
    #[inline]
    pub fn vlans(&self) -> &[VlanTag] {
        self.vlans.get(..usize::from(self.vlan_count)).unwrap_or_default()
    }

    /// Tag control information of each VLAN tag, outermost first.
    pub fn vlan_tags(&self) -> &[u16] {
        self.vlan_tags.get(..usize::from(self.vlan_count)).unwrap_or_default()
    }

    /// VLAN id of the outermost tag.
    #[inline]
    pub fn outer_vlan_id(&self) -> Option<u16> {
        (self.vlan_count > 0).then_some(self.vlans[0].id())
    }

    /// The EtherType after all VLAN tags (0x8847 and 0x8848 for MPLS); below
    /// 0x0600 an IEEE 802.3 length, 0 if the Ethernet header is not complete.
    /// For raw IP that of the IP version.
    #[inline]
    pub const fn ethertype(&self) -> u16 {
        self.ethertype
    }

    /// How many MPLS labels stand before the network header.
    #[inline]
    pub const fn mpls_labels(&self) -> usize {
        self.mpls_count as usize
    }

    /// The network protocol whose fixed header is complete.
    #[inline]
    pub const fn network(&self) -> Network {
        self.network
    }

    /// Start of the ARP, IPv4 or IPv6 header.
    #[inline]
    pub fn network_offset(&self) -> Option<usize> {
        (self.network != Network::None).then_some(usize::from(self.l3_offset))
    }

    /// End of the IP packet by its own length field, or of the ARP packet, cut
    /// to the data: Ethernet padding lies behind it. The end of the data where
    /// there is neither.
    #[inline]
    pub const fn network_end(&self) -> usize {
        self.network_end as usize
    }

    /// Whether the network protocol is IPv4 or IPv6.
    #[inline]
    pub fn is_ip(&self) -> bool {
        matches!(self.network, Network::Ipv4 | Network::Ipv6)
    }

    /// The IP protocol behind all extension headers that are there; `None`
    /// without IP. Known for later fragments too.
    #[inline]
    pub fn protocol(&self) -> Option<u8> {
        self.is_ip().then_some(self.ip_protocol)
    }

    /// The transport protocol whose fixed header is complete.
    #[inline]
    pub const fn transport(&self) -> Transport {
        self.transport
    }

    /// Start of the header of [`Headers::transport`].
    #[inline]
    pub fn transport_offset(&self) -> Option<usize> {
        (self.transport != Transport::None).then_some(usize::from(self.l4_offset))
    }

    /// Start of what follows a complete TCP (with its options), UDP, ICMP,
    /// ICMPv6 or SCTP header; at most [`Headers::network_end`].
    #[inline]
    pub fn payload_offset(&self) -> Option<usize> {
        (self.transport != Transport::None && self.payload_offset > self.l4_offset)
            .then_some(usize::from(self.payload_offset))
    }

    /// Whether the packet is a fragment, and which.
    #[inline]
    pub const fn fragment(&self) -> Fragment {
        self.fragment
    }

    /// Whether bytes are missing that the headers speak of.
    #[inline]
    pub const fn is_truncated(&self) -> bool {
        self.marks.contains(Marks::TRUNCATED)
    }

    /// Whether a length or version contradicts the bytes around it.
    #[inline]
    pub const fn is_malformed(&self) -> bool {
        self.marks.contains(Marks::MALFORMED)
    }

    /// Source address of the IP header, or the sender's of ARP for IPv4.
    #[inline]
    pub fn source(&self, data: &[u8]) -> Option<IpAddr> {
        self.addresses(data).map(|(source, _)| source)
    }

    /// Destination address of the IP header, or the target's of ARP for IPv4.
    #[inline]
    pub fn destination(&self, data: &[u8]) -> Option<IpAddr> {
        self.addresses(data).map(|(_, destination)| destination)
    }

    /// Source and destination address of the IP header, or sender and target
    /// protocol address of ARP for IPv4 (RFC 826).
    #[inline]
    pub fn addresses(&self, data: &[u8]) -> Option<(IpAddr, IpAddr)> {
        let l3 = usize::from(self.l3_offset);
        match self.network {
            Network::Ipv4 => {
                let source = chunk::<4>(data, l3 + 12)?;
                let destination = chunk::<4>(data, l3 + 16)?;
                Some((Ipv4Addr::from(*source).into(), Ipv4Addr::from(*destination).into()))
            }
            Network::Ipv6 => {
                let source = chunk::<16>(data, l3 + 8)?;
                let destination = chunk::<16>(data, l3 + 24)?;
                Some((Ipv6Addr::from(*source).into(), Ipv6Addr::from(*destination).into()))
            }
            Network::Arp => arp_addresses(data.get(l3..self.network_end())?),
            Network::None => None,
        }
    }

    /// Source and destination port of TCP, UDP or SCTP.
    #[inline]
    pub fn ports(&self, data: &[u8]) -> Option<(u16, u16)> {
        if !matches!(self.transport, Transport::Tcp | Transport::Udp | Transport::Sctp) {
            return None;
        }
        let ports = chunk::<4>(data, usize::from(self.l4_offset))?;
        Some((u16::from_be_bytes([ports[0], ports[1]]), u16::from_be_bytes([ports[2], ports[3]])))
    }

    /// The bytes from the network header on to the end of its packet.
    #[inline]
    pub fn network_bytes<'a>(&self, data: &'a [u8]) -> &'a [u8] {
        data.get(usize::from(self.l3_offset)..self.network_end as usize).unwrap_or_default()
    }

    /// The bytes after the IP headers to the end of the IP packet; empty without IP.
    #[inline]
    pub fn transport_bytes<'a>(&self, data: &'a [u8]) -> &'a [u8] {
        if self.l4_offset == 0 {
            return &[];
        }
        data.get(usize::from(self.l4_offset)..self.network_end as usize).unwrap_or_default()
    }

    /// The payload, without padding.
    #[inline]
    pub fn payload<'a>(&self, data: &'a [u8]) -> &'a [u8] {
        data.get(usize::from(self.payload_offset)..self.payload_end as usize).unwrap_or_default()
    }
}

/// Sender and target protocol address of an ARP packet for IPv4; its hardware
/// addresses may be of any length.
#[cold]
fn arp_addresses(arp: &[u8]) -> Option<(IpAddr, IpAddr)> {
    let fixed = arp.first_chunk::<8>()?;
    if fixed[2..4] != ethertype::IPV4.to_be_bytes() || fixed[5] != 4 {
        return None;
    }
    let hardware_bytes = usize::from(fixed[4]);
    let sender = chunk::<4>(arp, 8 + hardware_bytes)?;
    let target = chunk::<4>(arp, 12 + 2 * hardware_bytes)?;
    Some((Ipv4Addr::from(*sender).into(), Ipv4Addr::from(*target).into()))
}
