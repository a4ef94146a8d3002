//! One forward pass over a frame that finds where its headers are.
//!
//! Vocabulary: *l3* is the network header (ARP, IPv4, IPv6), *l4* what follows
//! the IP header and its extensions (TCP, UDP, …), *payload* what follows the
//! l4 header. Offsets count bytes from the start of the slice that was parsed.
//!
//! Limits: 4 VLAN tags, 8 MPLS labels, 8 IPv6 extension headers; more set
//! [`Marks::TOO_DEEP`] and end the pass there. Tunnels (GRE, VXLAN, IP in IP),
//! PPPoE, MACsec and 802.3 LLC are not entered: what is inside them is payload.
//! No input makes the pass panic or loop.

mod headers;
#[cfg(test)]
mod tests;

pub use headers::{Fragment, Headers, Marks, Network, Transport, VlanTag};

use crate::bytes::{chunk, u16_at};
use crate::ethernet::ETHERNET_BYTES;
use crate::ipv6::IPV6_BYTES;
use crate::{ethertype, ip_protocol, link_type};

/// Most VLAN tags that are followed.
pub const VLAN_TAGS_MAX: usize = 4;
/// Most MPLS labels that are followed.
pub const MPLS_LABELS_MAX: usize = 8;
/// Most IPv6 extension headers that are followed.
pub const EXTENSION_HEADERS_MAX: usize = 8;

/// Finds the headers of an Ethernet frame without FCS.
///
/// Never fails: what could not be read is told by [`Headers::marks`], and what
/// was read up to there is filled in. Nothing is copied but the VLAN tags.
#[inline]
pub fn parse_ethernet(frame: &[u8]) -> Headers {
    let mut headers = Headers::ending_at(frame.len());
    let Some(ethernet) = frame.first_chunk::<ETHERNET_BYTES>() else {
        headers.marks.insert(Marks::TRUNCATED);
        return headers;
    };
    headers.ethertype = u16_at(ethernet, 12);
    let mut at = ETHERNET_BYTES;
    if is_vlan(headers.ethertype) {
        match vlan_tags(frame, &mut headers) {
            Some(after) => at = after,
            None => return headers,
        }
    }
    headers.start_l3(at);
    match headers.ethertype {
        ethertype::IPV4 => ipv4(frame, at, &mut headers),
        ethertype::IPV6 => ipv6(frame, at, &mut headers),
        ethertype::ARP => arp(frame, at, &mut headers),
        ethertype::MPLS_UNICAST | ethertype::MPLS_MULTICAST => mpls(frame, at, &mut headers),
        _ => {}
    }
    headers
}

/// Finds the headers of a packet that begins with its IPv4 or IPv6 header
/// (pcap link type 101, LINKTYPE_RAW, and tun devices).
///
/// A first nibble other than 4 and 6 sets [`Marks::MALFORMED`].
#[inline]
pub fn parse_ip(packet: &[u8]) -> Headers {
    let mut headers = Headers::ending_at(packet.len());
    match packet.first().map(|byte| byte >> 4) {
        Some(4) => {
            headers.ethertype = ethertype::IPV4;
            ipv4(packet, 0, &mut headers);
        }
        Some(6) => {
            headers.ethertype = ethertype::IPV6;
            ipv6(packet, 0, &mut headers);
        }
        Some(_) => headers.marks.insert(Marks::MALFORMED),
        None => headers.marks.insert(Marks::TRUNCATED),
    }
    headers
}

/// Finds the headers of a packet of a link type, by pcap's numbers
/// (IETF draft-ietf-opsawg-pcaplinktype).
///
/// Gives the packet from its first header that is understood, and its headers; `None` for link types
/// that are not looked into.
#[inline]
pub fn parse_link(link_type: u16, data: &[u8]) -> Option<(&[u8], Headers)> {
    let behind = match link_type {
        link_type::ETHERNET => return Some((data, parse_ethernet(data))),
        link_type::RAW | link_type::IPV4 | link_type::IPV6 => 0,
        link_type::NULL | link_type::LOOP => 4,
        link_type::LINUX_SLL => 16,
        link_type::LINUX_SLL2 => 20,
        _ => return None,
    };
    let packet = data.get(behind..).unwrap_or_default();
    Some((packet, parse_ip(packet)))
}

/// Whether `value` announces an IEEE 802.1Q, 802.1ad or older stacked VLAN tag.
#[inline(always)]
fn is_vlan(value: u16) -> bool {
    matches!(value, ethertype::VLAN | ethertype::VLAN_SERVICE | ethertype::VLAN_STACKED)
}

/// Reads the tags after the MAC addresses; the offset after them, or `None` if
/// the pass ends here.
#[cold]
fn vlan_tags(frame: &[u8], headers: &mut Headers) -> Option<usize> {
    let mut at = ETHERNET_BYTES;
    while is_vlan(headers.ethertype) {
        headers.start_l3(at);
        let place = usize::from(headers.vlan_count);
        if place >= VLAN_TAGS_MAX {
            headers.marks.insert(Marks::TOO_DEEP);
            return None;
        }
        let Some(tag) = chunk::<4>(frame, at) else {
            headers.marks.insert(Marks::TRUNCATED);
            return None;
        };
        let tci = u16_at(tag, 0);
        headers.vlans[place] = VlanTag { tpid: headers.ethertype, tci };
        headers.vlan_tags[place] = tci;
        headers.vlan_count += 1;
        headers.ethertype = u16_at(tag, 2);
        at += 4;
    }
    Some(at)
}

/// Reads the label stack (RFC 3032 section 2.1), then IP by its first nibble
/// (RFC 4928 section 3).
#[cold]
fn mpls(frame: &[u8], mut at: usize, headers: &mut Headers) {
    loop {
        let Some(entry) = chunk::<4>(frame, at) else {
            headers.marks.insert(Marks::TRUNCATED);
            return;
        };
        if usize::from(headers.mpls_count) == MPLS_LABELS_MAX {
            headers.marks.insert(Marks::TOO_DEEP);
            return;
        }
        headers.mpls_count += 1;
        at += 4;
        headers.start_l3(at);
        if entry[2] & 1 != 0 {
            break;
        }
    }
    match frame.get(at).map(|byte| byte >> 4) {
        Some(4) => ipv4(frame, at, headers),
        Some(6) => ipv6(frame, at, headers),
        Some(_) => {}
        None => headers.marks.insert(Marks::TRUNCATED),
    }
}

/// Checks that an ARP packet (RFC 826) is complete; other address sizes than
/// Ethernet and IPv4 have their length computed from the header.
#[cold]
fn arp(frame: &[u8], at: usize, headers: &mut Headers) {
    let Some(fixed) = chunk::<8>(frame, at) else {
        headers.marks.insert(Marks::TRUNCATED);
        return;
    };
    headers.network = Network::Arp;
    let end = at + 8 + 2 * (usize::from(fixed[4]) + usize::from(fixed[5]));
    if end > frame.len() {
        headers.marks.insert(Marks::TRUNCATED);
        return;
    }
    headers.network_end = end as u32;
    headers.payload_offset = end as u16;
    headers.payload_end = end as u32;
}

/// IPv4 header, RFC 791 section 3.1.
#[inline]
fn ipv4(data: &[u8], at: usize, headers: &mut Headers) {
    let Some(ip) = chunk::<20>(data, at) else {
        headers.marks.insert(Marks::TRUNCATED);
        return;
    };
    let header_bytes = usize::from(ip[0] & 0x0f) * 4;
    let total_bytes = usize::from(u16_at(ip, 2));
    if ip[0] >> 4 != 4 || header_bytes < 20 || total_bytes < header_bytes {
        headers.marks.insert(Marks::MALFORMED);
        return;
    }
    headers.network = Network::Ipv4;
    headers.ip_protocol = ip[9];
    let fragment = u16_at(ip, 6) & 0x3fff;
    if fragment != 0 {
        headers.fragment = if fragment & 0x1fff == 0 { Fragment::First } else { Fragment::Later };
    }
    let end = headers.limit(data.len(), at + total_bytes);
    let l4 = at + header_bytes;
    if l4 > end {
        return;
    }
    headers.start_l4(l4, end);
    if ip[9] == ip_protocol::AUTHENTICATION && headers.fragment != Fragment::Later {
        ipv4_authentication(data, l4, end, headers);
    } else {
        transport(data, l4, end, headers);
    }
}

/// IPv4 packet whose protocol is the authentication header (RFC 4302).
#[cold]
fn ipv4_authentication(data: &[u8], at: usize, end: usize, headers: &mut Headers) {
    let Some(header) = chunk::<8>(data, at) else {
        headers.cut_short();
        return;
    };
    let after = at + ip_protocol::extension_bytes(ip_protocol::AUTHENTICATION, header[1]);
    if after > end {
        headers.cut_short();
        return;
    }
    headers.ip_protocol = header[0];
    headers.start_l4(after, end);
    transport(data, after, end, headers);
}

/// IPv6 header, RFC 8200 section 3. A payload length of zero in front of a
/// hop-by-hop header is a jumbogram (RFC 2675): it ends where the data end.
#[inline]
fn ipv6(data: &[u8], at: usize, headers: &mut Headers) {
    let Some(ip) = chunk::<IPV6_BYTES>(data, at) else {
        headers.marks.insert(Marks::TRUNCATED);
        return;
    };
    if ip[0] >> 4 != 6 {
        headers.marks.insert(Marks::MALFORMED);
        return;
    }
    headers.network = Network::Ipv6;
    headers.ip_protocol = ip[6];
    let payload_bytes = usize::from(u16_at(ip, 4));
    let l4 = at + IPV6_BYTES;
    let end = if payload_bytes == 0 && ip[6] == ip_protocol::HOP_BY_HOP {
        data.len()
    } else {
        headers.limit(data.len(), l4 + payload_bytes)
    };
    headers.start_l4(l4, end);
    if ip_protocol::is_extension(ip[6]) {
        ipv6_extensions(data, l4, end, headers);
    } else {
        transport(data, l4, end, headers);
    }
}

/// The chain of extension headers, RFC 8200 section 4, in any order.
#[cold]
fn ipv6_extensions(data: &[u8], mut at: usize, end: usize, headers: &mut Headers) {
    let mut depth = 0;
    while ip_protocol::is_extension(headers.ip_protocol) && headers.fragment != Fragment::Later {
        if depth == EXTENSION_HEADERS_MAX {
            headers.marks.insert(Marks::TOO_DEEP);
            return;
        }
        depth += 1;
        let Some(header) = chunk::<8>(data, at) else {
            headers.cut_short();
            return;
        };
        let bytes = ip_protocol::extension_bytes(headers.ip_protocol, header[1]);
        if at + bytes > end {
            headers.cut_short();
            return;
        }
        if headers.ip_protocol == ip_protocol::FRAGMENT {
            let field = u16_at(header, 2);
            if field & 0xfff8 != 0 {
                headers.fragment = Fragment::Later;
            } else if field & 1 != 0 {
                headers.fragment = Fragment::First;
            }
        } else if headers.ip_protocol == ip_protocol::ROUTING && header[3] != 0 {
            headers.marks.insert(Marks::ROUTED);
        }
        headers.ip_protocol = header[0];
        at += bytes;
        headers.start_l4(at, end);
    }
    transport(data, at, end, headers);
}

/// The l4 header, if the packet has one and it is complete.
#[inline]
fn transport(data: &[u8], at: usize, end: usize, headers: &mut Headers) {
    if headers.fragment == Fragment::Later {
        return;
    }
    let Some(data) = data.get(..end) else { return };
    match headers.ip_protocol {
        ip_protocol::UDP => udp(data, at, headers),
        ip_protocol::TCP => tcp(data, at, headers),
        ip_protocol::ICMP if headers.network == Network::Ipv4 => {
            fixed_header(data, at, 8, Transport::Icmp, headers);
        }
        ip_protocol::ICMPV6 if headers.network == Network::Ipv6 => {
            fixed_header(data, at, 8, Transport::Icmpv6, headers);
        }
        ip_protocol::SCTP => fixed_header(data, at, 12, Transport::Sctp, headers),
        _ => {}
    }
}

/// UDP header, RFC 768. `data` ends where the IP packet ends.
#[inline]
fn udp(data: &[u8], at: usize, headers: &mut Headers) {
    let Some(udp) = chunk::<8>(data, at) else {
        headers.cut_short();
        return;
    };
    headers.transport = Transport::Udp;
    headers.payload_offset = (at + 8) as u16;
    let bytes = usize::from(u16_at(udp, 4));
    let available = data.len() - at;
    if bytes < 8 {
        headers.marks.insert(Marks::MALFORMED);
    } else if bytes <= available {
        headers.payload_end = (at + bytes) as u32;
    } else if headers.fragment == Fragment::None {
        headers.cut_short();
    }
}

/// TCP header, RFC 9293 section 3.1. `data` ends where the IP packet ends.
#[inline]
fn tcp(data: &[u8], at: usize, headers: &mut Headers) {
    let Some(tcp) = chunk::<20>(data, at) else {
        headers.cut_short();
        return;
    };
    let header_bytes = usize::from(tcp[12] >> 4) * 4;
    headers.transport = Transport::Tcp;
    if header_bytes < 20 {
        headers.marks.insert(Marks::MALFORMED);
    } else if at + header_bytes > data.len() {
        headers.cut_short();
    } else {
        headers.payload_offset = (at + header_bytes) as u16;
    }
}

/// An l4 header of constant length.
#[inline]
fn fixed_header(data: &[u8], at: usize, bytes: usize, kind: Transport, headers: &mut Headers) {
    if at + bytes > data.len() {
        headers.cut_short();
        return;
    }
    headers.transport = kind;
    headers.payload_offset = (at + bytes) as u16;
}
