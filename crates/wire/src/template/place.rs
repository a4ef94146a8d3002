//! A field that can change, as the source of its random values.

use crate::random;

/// Which field: each has its own random sequence under one seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// Source MAC address.
    SourceMac,
    /// Destination MAC address.
    DestinationMac,
    /// VLAN id of this tag, counted from 0 outermost.
    VlanId(u8),
    /// MPLS label of this stack entry, counted from 0 outermost.
    MplsLabel(u8),
    /// IPv4 or IPv6 source address.
    SourceAddress,
    /// IPv4 or IPv6 destination address.
    DestinationAddress,
    /// IPv4 identification.
    Identification,
    /// IPv6 flow label.
    FlowLabel,
    /// UDP or TCP source port.
    SourcePort,
    /// UDP or TCP destination port.
    DestinationPort,
    /// TCP sequence number.
    TcpSequence,
    /// ICMP echo identifier.
    IcmpIdentifier,
    /// ICMP echo sequence number.
    IcmpSequence,
    /// Frame size.
    Size,
}

impl Place {
    /// What [`Field::value`](super::Field::value) takes for this field of a template that
    /// was compiled with `seed`.
    pub const fn key(self, seed: u64) -> u64 {
        let number = match self {
            Self::SourceMac => 0,
            Self::DestinationMac => 1,
            Self::SourceAddress => 2,
            Self::DestinationAddress => 3,
            Self::Identification => 4,
            Self::FlowLabel => 5,
            Self::SourcePort => 6,
            Self::DestinationPort => 7,
            Self::TcpSequence => 8,
            Self::IcmpIdentifier => 9,
            Self::IcmpSequence => 10,
            Self::Size => 11,
            Self::VlanId(tag) => 0x100 + tag as u64,
            Self::MplsLabel(entry) => 0x200 + entry as u64,
        };
        random::key(seed, number)
    }
}
