//! Link types of captures whose packets are looked into
//! (IETF draft-ietf-opsawg-pcaplinktype).

/// BSD loopback: four bytes of address family in the writer's byte order, then IP.
pub const NULL: u16 = 0;
/// Ethernet, without preamble, usually without FCS.
pub const ETHERNET: u16 = 1;
/// Raw IPv4 or IPv6, told apart by the version nibble.
pub const RAW: u16 = 101;
/// OpenBSD loopback: four bytes of address family in network byte order, then IP.
pub const LOOP: u16 = 108;
/// Linux "cooked" capture, version 1: 16 bytes in place of the link layer's header.
pub const LINUX_SLL: u16 = 113;
/// Raw IPv4.
pub const IPV4: u16 = 228;
/// Raw IPv6.
pub const IPV6: u16 = 229;
/// Linux "cooked" capture, version 2: 20 bytes with the interface index.
pub const LINUX_SLL2: u16 = 276;
