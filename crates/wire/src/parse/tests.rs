//! The pass over frames written by hand, where the limits and the odd cases are.

use super::*;
use crate::checksum::{ChecksumState, verify};

const MACS: [u8; 12] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];

fn frame(parts: &[&[u8]]) -> Vec<u8> {
    [&[&MACS[..]], parts].concat().concat()
}

/// IPv4 header of `total_bytes`, with `protocol` and the fragment field.
fn ipv4_header(total_bytes: u8, protocol: u8, fragment: u16) -> [u8; 20] {
    let [high, low] = fragment.to_be_bytes();
    let [a, b, c] = [total_bytes, protocol, 64];
    [0x45, 0, 0, a, 0, 1, high, low, c, b, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]
}

fn ipv6_header(payload_bytes: u16, next_header: u8) -> [u8; 40] {
    let mut ip = [0; 40];
    ip[0] = 0x60;
    ip[4..6].copy_from_slice(&payload_bytes.to_be_bytes());
    ip[6] = next_header;
    ip[7] = 64;
    ip[23] = 1;
    ip[39] = 2;
    ip
}

#[test]
fn five_vlan_tags_are_one_too_many() {
    let tag = [0x81, 0, 0, 5];
    let four = frame(&[&tag, &tag, &tag, &tag, &[8, 0], &ipv4_header(20, 253, 0)]);
    let headers = parse_ethernet(&four);
    assert_eq!((headers.vlans().len(), headers.network_offset()), (4, Some(30)));
    assert!(headers.marks.is_empty());
    let five = frame(&[&tag, &tag, &tag, &tag, &tag, &[8, 0], &ipv4_header(20, 253, 0)]);
    let headers = parse_ethernet(&five);
    assert_eq!((headers.vlans().len(), headers.network()), (4, Network::None));
    assert_eq!(headers.marks, Marks::TOO_DEEP);
    assert_eq!(headers.outer_vlan_id(), Some(5));
}

#[test]
fn nine_labels_are_one_too_many() {
    let label = [0, 1, 0, 64];
    let stack = |count: usize| [label.repeat(count), vec![0, 1, 1, 64]].concat();
    let eight = frame(&[&[0x88, 0x47], &stack(7), &ipv4_header(20, 253, 0)]);
    let headers = parse_ethernet(&eight);
    assert_eq!((headers.mpls_labels(), headers.network()), (8, Network::Ipv4));
    let nine = frame(&[&[0x88, 0x47], &stack(8), &ipv4_header(20, 253, 0)]);
    let headers = parse_ethernet(&nine);
    assert_eq!((headers.network(), headers.marks), (Network::None, Marks::TOO_DEEP));
}

#[test]
fn labels_before_something_else_than_ip() {
    // A pseudowire control word: first nibble 0 (RFC 4385).
    let headers = parse_ethernet(&frame(&[&[0x88, 0x48], &[0, 1, 1, 64], &[0; 20]]));
    assert_eq!((headers.network(), headers.ethertype()), (Network::None, 0x8848));
    assert!(headers.marks.is_empty());
    assert_eq!(headers.payload_offset(), None);
    // A frame that ends behind the last label lacks what was labelled.
    let headers = parse_ethernet(&frame(&[&[0x88, 0x47], &[0, 1, 1, 64]]));
    assert!(headers.is_truncated());
}

#[test]
fn nine_extension_headers_are_one_too_many() {
    for (count, marks) in [(8, Marks::default()), (9, Marks::TOO_DEEP)] {
        let mut chain = [60, 0, 1, 4, 0, 0, 0, 0].repeat(count);
        chain[8 * (count - 1)] = 17;
        let udp = [0, 1, 0, 2, 0, 8, 0, 1];
        let ip = ipv6_header(8 * (count as u16 + 1), 60);
        let packet = [&ip[..], &chain, &udp].concat();
        let headers = parse_ip(&packet);
        assert_eq!(headers.marks, marks, "{count}");
        assert_eq!(headers.ports(&packet).is_some(), count == 8);
        assert_eq!(headers.protocol(), Some(if count == 8 { 17 } else { 60 }));
    }
}

#[test]
fn contradictions_are_malformed() {
    let malformed = [
        // Version 5; header of 16 bytes; total length below the header's.
        [&[0x55][..], &ipv4_header(20, 17, 0)[1..]].concat(),
        [&[0x44][..], &ipv4_header(20, 17, 0)[1..]].concat(),
        ipv4_header(19, 17, 0).to_vec(),
        // UDP header cut by the total length; UDP length 7; beyond the packet.
        [&ipv4_header(27, 17, 0)[..], &[0, 1, 0, 2, 0, 8, 0, 0]].concat(),
        [&ipv4_header(28, 17, 0)[..], &[0, 1, 0, 2, 0, 7, 0, 0]].concat(),
        [&ipv4_header(28, 17, 0)[..], &[0, 1, 0, 2, 0, 9, 0, 0]].concat(),
        // TCP data offset 4, and 6 with 20 bytes.
        [&ipv4_header(40, 6, 0)[..], &[0; 12], &[0x40, 0], &[0; 6]].concat(),
        [&ipv4_header(40, 6, 0)[..], &[0; 12], &[0x60, 0], &[0; 6]].concat(),
        // Extension header longer than the packet.
        [&ipv6_header(8, 60)[..], &[17, 1, 1, 4, 0, 0, 0, 0]].concat(),
    ];
    for packet in malformed {
        let mut ethertype = [8, 0];
        if packet[0] == 0x60 {
            ethertype = [0x86, 0xdd];
        }
        let data = frame(&[&ethertype, &packet]);
        let headers = parse_ethernet(&data);
        assert_eq!(headers.marks, Marks::MALFORMED, "{packet:02x?}");
        assert_ne!(verify(&data, &headers), ChecksumState::Valid);
    }
}

#[test]
fn bad_tcp_data_offset_has_ports_but_no_payload() {
    let tcp = [&[0, 1, 0, 2][..], &[0; 8], &[0x40, 0], &[0; 6]].concat();
    let packet = [&ipv4_header(40, 6, 0)[..], &tcp].concat();
    let headers = parse_ip(&packet);
    assert_eq!(headers.ports(&packet), Some((1, 2)));
    assert_eq!((headers.transport_offset(), headers.payload_offset()), (Some(20), None));
}

#[test]
fn fragments_have_ports_only_in_the_first() {
    let udp = [0, 1, 0, 2, 0, 99, 0, 1];
    for (field, kind, ports) in [
        (0x4000, Fragment::None, None),
        (0x2000, Fragment::First, Some((1, 2))),
        (0x2001, Fragment::Later, None),
        (0x0001, Fragment::Later, None),
    ] {
        let packet = [&ipv4_header(28, 17, field)[..], &udp].concat();
        let headers = parse_ip(&packet);
        assert_eq!(headers.fragment(), kind, "{field:x}");
        // The UDP length fits the whole datagram only: no fault of a fragment.
        assert_eq!(headers.is_malformed(), kind == Fragment::None, "{field:x}");
        if kind != Fragment::None {
            assert_eq!(headers.ports(&packet), ports, "{field:x}");
        }
        assert_eq!(headers.protocol(), Some(17));
    }
}

#[test]
fn padding_is_not_payload() {
    let udp = [0, 1, 0, 2, 0, 10, 0, 0, 0xaa, 0xbb];
    let data = frame(&[&[8, 0], &ipv4_header(30, 17, 0), &udp, &[0xee; 16]]);
    assert_eq!(data.len(), 60);
    let headers = parse_ethernet(&data);
    assert_eq!((headers.payload_offset(), headers.network_end()), (Some(42), 44));
    assert_eq!(headers.payload(&data), [0xaa, 0xbb]);
}

#[test]
fn udp_without_checksum() {
    let udp = [0, 1, 0, 2, 0, 8, 0, 0];
    let mut ip = ipv4_header(28, 17, 0);
    let sum = crate::checksum::checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let packet = [&ip[..], &udp].concat();
    assert_eq!(verify(&packet, &parse_ip(&packet)), ChecksumState::Absent);
    let packet = [&ipv6_header(8, 17)[..], &udp].concat();
    assert_eq!(verify(&packet, &parse_ip(&packet)), ChecksumState::Invalid);
    let packet = [&ipv4_header(28, 17, 0)[..], &udp].concat();
    assert_eq!(verify(&packet, &parse_ip(&packet)), ChecksumState::Invalid);
}

#[test]
fn a_routing_header_hides_the_destination() {
    let routing = [17, 0, 4, 1, 0, 0, 0, 0];
    let udp = [0, 1, 0, 2, 0, 8, 0x12, 0x34];
    let packet = [&ipv6_header(16, 43)[..], &routing, &udp].concat();
    let headers = parse_ip(&packet);
    assert_eq!((headers.marks, headers.ports(&packet)), (Marks::ROUTED, Some((1, 2))));
    assert_eq!(verify(&packet, &headers), ChecksumState::Absent);
}

#[test]
fn jumbogram_ends_with_the_data() {
    let hop_by_hop = [17, 0, 0xc2, 4, 0, 1, 0x11, 0x78];
    let packet = [&ipv6_header(0, 0)[..], &hop_by_hop, &[0, 1, 0, 2], &[0; 70_000]].concat();
    let headers = parse_ip(&packet);
    assert_eq!(headers.network_end(), packet.len());
    assert_eq!(headers.ports(&packet), Some((1, 2)));
}

#[test]
fn other_protocols_are_left_alone() {
    // 802.3 length with LLC, ESP, ICMP number over IPv6.
    let headers = parse_ethernet(&frame(&[&[0, 38], &[0x42; 38]]));
    assert_eq!((headers.ethertype(), headers.network()), (38, Network::None));
    let packet = [&ipv6_header(8, 50)[..], &[0; 8]].concat();
    assert_eq!(parse_ip(&packet).protocol(), Some(50));
    assert_eq!(parse_ip(&packet).transport(), Transport::None);
    let packet = [&ipv6_header(8, 1)[..], &[0; 8]].concat();
    assert_eq!(parse_ip(&packet).transport(), Transport::None);
}

#[test]
fn arp_of_other_sizes_has_no_addresses() {
    // InfiniBand: 20 bytes of hardware address, IPv4.
    let mut arp = vec![0, 32, 8, 0, 20, 4, 0, 1];
    arp.extend([&[7; 20][..], &[10, 0, 0, 1], &[0; 20], &[10, 0, 0, 2]].concat());
    let data = frame(&[&[8, 6], &arp, &[0; 9]]);
    let headers = parse_ethernet(&data);
    assert_eq!(headers.network_end(), 14 + 56);
    assert_eq!(headers.source(&data), Some([10, 0, 0, 1].into()));
    assert_eq!(headers.destination(&data), Some([10, 0, 0, 2].into()));
    let mut other = data.clone();
    other[16] = 9;
    assert_eq!(parse_ethernet(&other).source(&other), None);
    let cut = &data[..60];
    assert!(parse_ethernet(cut).is_truncated());
}

#[test]
fn authentication_header_before_tcp_over_ipv4() {
    let authentication = [6, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 9, 9, 9, 9];
    let tcp = [&[0, 1, 0, 2][..], &[0; 8], &[0x50, 2], &[0; 6]].concat();
    let packet = [&ipv4_header(56, 51, 0)[..], &authentication, &tcp].concat();
    let headers = parse_ip(&packet);
    assert_eq!((headers.protocol(), headers.payload_offset()), (Some(6), Some(56)));
}

#[test]
fn headers_are_small() {
    assert!(size_of::<Headers>() <= 64, "{}", size_of::<Headers>());
}
