//! What the first bytes of a packet are: the registry of link types shared by pcap and pcapng
//! (IETF draft-ietf-opsawg-pcaplinktype).

use std::fmt;

use wire::link_type;

/// A link type's number. Every value can be carried; those that this project handles have names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback: four bytes of address family in the writer's byte order.
    pub const NULL: Self = Self(link_type::NULL);
    /// Ethernet, without preamble, usually without FCS.
    pub const ETHERNET: Self = Self(link_type::ETHERNET);
    /// PPP, maybe with HDLC-like framing.
    pub const PPP: Self = Self(9);
    /// Raw IPv4 or IPv6, told apart by the version nibble.
    pub const RAW: Self = Self(link_type::RAW);
    /// IEEE 802.11 without a header of the capturing radio.
    pub const IEEE802_11: Self = Self(105);
    /// OpenBSD loopback: four bytes of address family in network byte order.
    pub const LOOP: Self = Self(link_type::LOOP);
    /// Linux "cooked" capture, version 1: 16 bytes in place of the link layer's header.
    pub const LINUX_SLL: Self = Self(link_type::LINUX_SLL);
    /// IEEE 802.11 after a radiotap header.
    pub const IEEE802_11_RADIOTAP: Self = Self(127);
    /// Private to the user, the first of sixteen.
    pub const USER0: Self = Self(147);
    /// USB packets with Linux's padded header.
    pub const USB_LINUX_MMAPPED: Self = Self(220);
    /// Raw IPv4.
    pub const IPV4: Self = Self(link_type::IPV4);
    /// Raw IPv6.
    pub const IPV6: Self = Self(link_type::IPV6);
    /// Linux netlink messages.
    pub const NETLINK: Self = Self(253);
    /// Linux "cooked" capture, version 2: 20 bytes with the interface index.
    pub const LINUX_SLL2: Self = Self(link_type::LINUX_SLL2);

    /// The registry's name, if it is one of the named ones.
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::NULL => "NULL",
            Self::ETHERNET => "ETHERNET",
            Self::PPP => "PPP",
            Self::RAW => "RAW",
            Self::IEEE802_11 => "IEEE802_11",
            Self::LOOP => "LOOP",
            Self::LINUX_SLL => "LINUX_SLL",
            Self::IEEE802_11_RADIOTAP => "IEEE802_11_RADIOTAP",
            Self::USER0 => "USER0",
            Self::USB_LINUX_MMAPPED => "USB_LINUX_MMAPPED",
            Self::IPV4 => "IPV4",
            Self::IPV6 => "IPV6",
            Self::NETLINK => "NETLINK",
            Self::LINUX_SLL2 => "LINUX_SLL2",
            _ => return None,
        })
    }
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "link type {}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_types_show_their_name_and_others_their_number() {
        assert_eq!(LinkType(1).to_string(), "ETHERNET");
        assert_eq!(LinkType(276).to_string(), "LINUX_SLL2");
        assert_eq!(LinkType(4242).to_string(), "link type 4242");
    }
}
