//! What the frames of a template are: the description that is compiled.
//!
//! Everything has a default, so that a description names only what matters:
//! `TemplateSpec::default()` is a 60-byte IPv4 UDP frame with a stamp, between
//! addresses of the benchmark network 198.18.0.0/15 (RFC 2544), discard port.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::{Field, Template, TemplateError, layout};
use crate::stamp::StampKind;
use crate::tcp::TcpFlags;
use crate::{MacAddress, ethertype, ip_protocol};

/// A frame and how its fields change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateSpec {
    /// Source MAC address.
    pub source_mac: Field<MacAddress>,
    /// Destination MAC address.
    pub destination_mac: Field<MacAddress>,
    /// VLAN tags, outermost first; at most 4.
    pub vlan_tags: Vec<VlanSpec>,
    /// MPLS labels, outermost first; at most 8, and only before IP.
    pub mpls_labels: Vec<MplsSpec>,
    /// Network header.
    pub network: NetworkSpec,
    /// Transport header.
    pub transport: TransportSpec,
    /// Payload bytes that are not the stamp.
    pub payload: PayloadFill,
    /// Frame size in bytes, without FCS. Sizes below 60 are padded by most devices.
    pub size: Field<u16>,
    /// Stamp at the start of the payload.
    pub stamp: Option<StampKind>,
    /// Stream number in linerate's stamp.
    pub stream: u16,
}

impl Default for TemplateSpec {
    fn default() -> Self {
        Self {
            source_mac: MacAddress([0x02, 0, 0, 0, 0, 1]).into(),
            destination_mac: MacAddress([0x02, 0, 0, 0, 0, 2]).into(),
            vlan_tags: Vec::new(),
            mpls_labels: Vec::new(),
            network: NetworkSpec::Ipv4(Ipv4Spec::default()),
            transport: TransportSpec::Udp(UdpSpec::default()),
            payload: PayloadFill::Zeros,
            size: Field::Fixed(60),
            stamp: Some(StampKind::Linerate),
            stream: 0,
        }
    }
}

impl TemplateSpec {
    /// Prepares frames of this description. The same description and seed give
    /// the same frames on every machine.
    ///
    /// # Errors
    ///
    /// A size below what headers and stamp need, a field beyond its bits, a
    /// range downwards, a step of 0, too many tags or labels, a transport
    /// without IP, or an empty payload pattern.
    pub fn compile(&self, seed: u64) -> Result<Template, TemplateError> {
        layout::compile(self, seed)
    }

    /// Smallest size in bytes without FCS that headers and stamp leave room for.
    pub fn frame_bytes_least(&self) -> usize {
        layout::frame_bytes_least(self)
    }
}

/// A VLAN tag, IEEE 802.1Q.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VlanSpec {
    /// Tag protocol identifier: 0x8100, 0x88a8, 0x9100.
    pub tpid: u16,
    /// VLAN id, 0 to 4095.
    pub id: Field<u16>,
    /// Priority code point, 0 to 7.
    pub priority: u8,
    /// Drop eligible indicator.
    pub drop_eligible: bool,
}

impl Default for VlanSpec {
    fn default() -> Self {
        Self { tpid: ethertype::VLAN, id: Field::Fixed(1), priority: 0, drop_eligible: false }
    }
}

/// An MPLS label stack entry, RFC 3032. The bottom bit is set where it belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MplsSpec {
    /// Label, 0 to 1048575.
    pub label: Field<u32>,
    /// Traffic class, 0 to 7 (RFC 5462).
    pub traffic_class: u8,
    /// Time to live.
    pub ttl: u8,
}

impl Default for MplsSpec {
    fn default() -> Self {
        Self { label: Field::Fixed(16), traffic_class: 0, ttl: 64 }
    }
}

/// The network header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetworkSpec {
    /// None: the payload follows the EtherType.
    None {
        /// EtherType of the frame.
        ethertype: u16,
    },
    /// IPv4 without options.
    Ipv4(Ipv4Spec),
    /// IPv6 without extension headers.
    Ipv6(Ipv6Spec),
}

impl NetworkSpec {
    /// No network header, EtherType for local experiments.
    pub const fn none() -> Self {
        Self::None { ethertype: ethertype::LOCAL_EXPERIMENT }
    }
}

/// Fields of the IPv4 header, RFC 791.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ipv4Spec {
    /// Source address.
    pub source: Field<Ipv4Addr>,
    /// Destination address.
    pub destination: Field<Ipv4Addr>,
    /// Time to live.
    pub ttl: u8,
    /// The former type of service byte: DSCP (6 bits) and ECN (2 bits).
    pub tos: u8,
    /// Identification.
    pub id: Field<u16>,
    /// The flag «don't fragment».
    pub dont_fragment: bool,
}

impl Default for Ipv4Spec {
    fn default() -> Self {
        Self {
            source: Ipv4Addr::new(198, 18, 0, 1).into(),
            destination: Ipv4Addr::new(198, 19, 0, 1).into(),
            ttl: 64,
            tos: 0,
            id: Field::Fixed(0),
            dont_fragment: false,
        }
    }
}

/// Fields of the IPv6 header, RFC 8200.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ipv6Spec {
    /// Source address.
    pub source: Field<Ipv6Addr>,
    /// Destination address.
    pub destination: Field<Ipv6Addr>,
    /// Hop limit.
    pub hop_limit: u8,
    /// Traffic class: DSCP (6 bits) and ECN (2 bits).
    pub traffic_class: u8,
    /// Flow label, 0 to 1048575.
    pub flow_label: Field<u32>,
}

impl Default for Ipv6Spec {
    /// Addresses of the benchmark network 2001:2::/48 (RFC 5180).
    fn default() -> Self {
        Self {
            source: Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 1).into(),
            destination: Ipv6Addr::new(0x2001, 2, 0, 1, 0, 0, 0, 1).into(),
            hop_limit: 64,
            traffic_class: 0,
            flow_label: Field::Fixed(0),
        }
    }
}

/// The transport header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransportSpec {
    /// None: the payload follows the network header.
    None {
        /// IP protocol number of what follows; unused without IP.
        protocol: u8,
    },
    /// UDP.
    Udp(UdpSpec),
    /// TCP without options.
    Tcp(TcpSpec),
    /// Echo request of ICMP or, over IPv6, ICMPv6.
    IcmpEcho(IcmpEchoSpec),
}

impl TransportSpec {
    /// No transport header, IP protocol for experiments.
    pub const fn none() -> Self {
        Self::None { protocol: ip_protocol::EXPERIMENT }
    }
}

/// Fields of the UDP header, RFC 768.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UdpSpec {
    /// Source port.
    pub source_port: Field<u16>,
    /// Destination port.
    pub destination_port: Field<u16>,
    /// Whether to write the checksum; 0 otherwise, which over IPv6 makes
    /// receivers discard the datagram.
    pub checksum: bool,
}

impl Default for UdpSpec {
    /// Both ports are 9, discard.
    fn default() -> Self {
        Self { source_port: Field::Fixed(9), destination_port: Field::Fixed(9), checksum: true }
    }
}

/// Fields of the TCP header, RFC 9293.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpSpec {
    /// Source port.
    pub source_port: Field<u16>,
    /// Destination port.
    pub destination_port: Field<u16>,
    /// Sequence number.
    pub sequence: Field<u32>,
    /// Acknowledgment number.
    pub acknowledgment: u32,
    /// Control bits.
    pub flags: TcpFlags,
    /// Receive window as in the header, unscaled.
    pub window: u16,
}

impl Default for TcpSpec {
    /// A SYN to port 9.
    fn default() -> Self {
        Self {
            source_port: Field::Fixed(1024),
            destination_port: Field::Fixed(9),
            sequence: Field::Fixed(0),
            acknowledgment: 0,
            flags: TcpFlags::SYN,
            window: u16::MAX,
        }
    }
}

/// Fields of an ICMP echo request, RFC 792 and RFC 4443 section 4.1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IcmpEchoSpec {
    /// Identifier.
    pub identifier: Field<u16>,
    /// Sequence number.
    pub sequence: Field<u16>,
}

impl Default for IcmpEchoSpec {
    /// The sequence counts up.
    fn default() -> Self {
        let sequence = Field::Step { first: 0, last: u16::MAX, step: 1 };
        Self { identifier: Field::Fixed(1), sequence }
    }
}

/// What the payload consists of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PayloadFill {
    /// Zeros.
    #[default]
    Zeros,
    /// These bytes over and over.
    Pattern(Vec<u8>),
    /// 0, 1, … 255, 0, …
    Incrementing,
}

impl PayloadFill {
    /// The payload byte number `at`.
    pub(super) fn byte(&self, at: usize) -> u8 {
        match self {
            Self::Zeros => 0,
            Self::Pattern(bytes) => {
                at.checked_rem(bytes.len()).and_then(|at| bytes.get(at)).copied().unwrap_or(0)
            }
            Self::Incrementing => at as u8,
        }
    }
}
