//! EtherType values (IEEE 802 Numbers, IANA) that this crate knows by name.

/// IPv4, RFC 894.
pub const IPV4: u16 = 0x0800;
/// ARP, RFC 826.
pub const ARP: u16 = 0x0806;
/// Customer VLAN tag, IEEE 802.1Q.
pub const VLAN: u16 = 0x8100;
/// Service VLAN tag, IEEE 802.1ad (QinQ).
pub const VLAN_SERVICE: u16 = 0x88a8;
/// Stacked VLAN tag of equipment older than IEEE 802.1ad.
pub const VLAN_STACKED: u16 = 0x9100;
/// IPv6, RFC 2464.
pub const IPV6: u16 = 0x86dd;
/// MPLS with a downstream-assigned label, RFC 5332.
pub const MPLS_UNICAST: u16 = 0x8847;
/// MPLS with an upstream-assigned label, RFC 5332.
pub const MPLS_MULTICAST: u16 = 0x8848;
/// For local experiments, IEEE 802 clause 9: what frames without IP carry by default.
pub const LOCAL_EXPERIMENT: u16 = 0x88b5;
