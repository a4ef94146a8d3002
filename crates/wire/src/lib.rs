//! Frames as bytes and as fields: finding headers, reading and writing them,
//! making frames from templates, checksums, flow keys and stamps. No I/O.
//!
//! # Where to look
//!
//! | job | module |
//! |---|---|
//! | where the headers of a frame are, in one pass | [`parse`] |
//! | one header's fields, read and written | [`ethernet`], [`vlan`], [`mpls`], [`arp`], [`ipv4`], [`ipv6`], [`icmp`], [`tcp`], [`udp`], [`sctp`] |
//! | internet checksums: whole, incremental, verified | [`checksum`] |
//! | which conversation a frame belongs to | [`flow_key`] |
//! | frames in great numbers, with fields that change | [`template`] |
//! | reproducible random numbers | [`random`] |
//! | sequence and time in the payload | [`stamp`] |
//! | numbers with names | [`ethertype`], [`ip_protocol`] |
//!
//! # Vocabulary
//!
//! A *frame* is the bytes on the wire from the destination MAC address on,
//! without FCS; a *packet* begins with its IP header. An *offset* counts bytes
//! from the start of the slice that was given. A *view* is a buffer read and
//! written by field names. *Truncated* means that bytes are missing that the
//! headers speak of, *malformed* that lengths contradict each other.
//!
//! # Example
//!
//! ```
//! use wire::parse::{Network, parse_ip};
//!
//! let packet = [
//!     0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, // IPv4
//!     0x04, 0xd2, 0, 53, 0, 8, 0, 0, // UDP
//! ];
//! let headers = parse_ip(&packet);
//! assert_eq!(headers.network(), Network::Ipv4);
//! assert_eq!(headers.ports(&packet), Some((1234, 53)));
//! assert_eq!(headers.payload_offset(), Some(28));
//! ```
//!
//! # Limits
//!
//! No input makes anything here panic, loop or allocate per frame. Followed are
//! at most 4 VLAN tags, 8 MPLS labels and 8 IPv6 extension headers. Not
//! supported: tunnels (GRE, VXLAN, IP in IP), PPPoE, MACsec, 802.3 LLC,
//! reassembly of fragments, SCTP's CRC32c, the Ethernet FCS.

#![forbid(unsafe_code)]

pub mod arp;
mod bytes;
pub mod checksum;
pub mod ethernet;
pub mod ethertype;
pub mod flow_key;
pub mod icmp;
pub mod ip_protocol;
pub mod ipv4;
pub mod ipv6;
pub mod link_type;
mod mac_address;
pub mod mpls;
pub mod parse;
pub mod random;
pub mod sctp;
pub mod stamp;
pub mod tcp;
pub mod template;
pub mod udp;
mod view;
pub mod vlan;

pub use mac_address::{MacAddress, MacAddressError};
pub use view::HeaderError;
