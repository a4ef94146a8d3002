//! Header views against etherparse: each field of every header in frames that
//! etherparse's writers made, read by both.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod frame;

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use frame::plan;
use proptest::prelude::*;
use wire::icmp::IcmpHeader;
use wire::ipv4::Ipv4Header;
use wire::ipv6::Ipv6Header;
use wire::parse::parse_ethernet;
use wire::tcp::{TcpFlags, TcpHeader};
use wire::udp::UdpHeader;

fn check_ipv4(bytes: &[u8], theirs: &etherparse::Ipv4Slice<'_>) -> Result<(), TestCaseError> {
    let ours = Ipv4Header::new_checked(bytes).unwrap();
    let payload = theirs.payload();
    let extensions = theirs.extensions().auth.is_some();
    let theirs = theirs.header();
    prop_assert_eq!(ours.header_bytes(), usize::from(theirs.ihl()) * 4);
    prop_assert_eq!(ours.tos(), theirs.dcp().value() << 2 | theirs.ecn().value());
    prop_assert_eq!(ours.total_bytes(), theirs.total_len());
    prop_assert_eq!(ours.id(), theirs.identification());
    prop_assert_eq!(ours.dont_fragment(), theirs.dont_fragment());
    prop_assert_eq!(ours.more_fragments(), theirs.more_fragments());
    let offset = usize::from(theirs.fragments_offset().value()) * 8;
    prop_assert_eq!(ours.fragment_offset_bytes(), offset);
    prop_assert_eq!(ours.ttl(), theirs.ttl());
    prop_assert_eq!(ours.protocol(), theirs.protocol().0);
    prop_assert_eq!(ours.checksum(), theirs.header_checksum());
    prop_assert!(ours.is_checksum_valid());
    prop_assert_eq!(ours.source(), theirs.source_addr());
    prop_assert_eq!(ours.destination(), theirs.destination_addr());
    prop_assert_eq!(ours.options(), theirs.options());
    if !extensions {
        prop_assert_eq!(ours.payload(), payload.payload);
    }
    Ok(())
}

fn check_ipv6(bytes: &[u8], theirs: &etherparse::Ipv6Slice<'_>) -> Result<(), TestCaseError> {
    let ours = Ipv6Header::new_checked(bytes).unwrap();
    let header = theirs.header();
    prop_assert_eq!(ours.traffic_class(), header.traffic_class());
    prop_assert_eq!(ours.flow_label(), header.flow_label().value());
    prop_assert_eq!(ours.payload_bytes(), header.payload_length());
    prop_assert_eq!(ours.next_header(), header.next_header().0);
    prop_assert_eq!(ours.hop_limit(), header.hop_limit());
    prop_assert_eq!(ours.source(), header.source_addr());
    prop_assert_eq!(ours.destination(), header.destination_addr());
    let mut extensions = ours.extensions();
    let mut fragmented = false;
    let mut bytes: Vec<u8> = Vec::new();
    for extension in extensions.by_ref() {
        bytes.extend(extension.as_bytes());
        let piece = extension.fragment();
        fragmented |= piece.is_some_and(|piece| piece.more_fragments || piece.offset_bytes > 0);
    }
    prop_assert_eq!(bytes, theirs.extensions().slice());
    prop_assert_eq!(fragmented, theirs.is_payload_fragmented());
    prop_assert_eq!(extensions.rest(), theirs.payload().payload);
    Ok(())
}

fn check_tcp(bytes: &[u8], theirs: &etherparse::TcpSlice<'_>) -> Result<(), TestCaseError> {
    let ours = TcpHeader::new_checked(bytes).unwrap();
    prop_assert_eq!(ours.source_port(), theirs.source_port());
    prop_assert_eq!(ours.destination_port(), theirs.destination_port());
    prop_assert_eq!(ours.sequence(), theirs.sequence_number());
    prop_assert_eq!(ours.acknowledgment(), theirs.acknowledgment_number());
    prop_assert_eq!(ours.header_bytes(), theirs.header_slice().len());
    prop_assert_eq!(ours.flags().contains(TcpFlags::PSH), theirs.psh());
    prop_assert_eq!(ours.flags().contains(TcpFlags::SYN), theirs.syn());
    prop_assert_eq!(ours.window(), theirs.window_size());
    prop_assert_eq!(ours.checksum(), theirs.checksum());
    prop_assert_eq!(ours.urgent(), theirs.urgent_pointer());
    prop_assert_eq!(ours.options(), theirs.options());
    prop_assert_eq!(ours.payload(), theirs.payload());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn every_field_is_read_alike(plan in plan()) {
        let built = plan.build();
        let headers = parse_ethernet(&built.bytes);
        if !headers.is_ip() {
            return Ok(());
        }
        let packet = headers.network_bytes(&built.bytes);
        let sliced = SlicedPacket::from_ip(packet).unwrap();
        match sliced.net.as_ref().unwrap() {
            NetSlice::Ipv4(theirs) => check_ipv4(packet, theirs)?,
            NetSlice::Ipv6(theirs) => check_ipv6(packet, theirs)?,
            NetSlice::Arp(_) => unreachable!(),
        }
        let bytes = headers.transport_bytes(&built.bytes);
        match &sliced.transport {
            Some(TransportSlice::Tcp(theirs)) => check_tcp(bytes, theirs)?,
            Some(TransportSlice::Udp(theirs)) => {
                let ours = UdpHeader::new_checked(bytes).unwrap();
                prop_assert_eq!(ours.source_port(), theirs.source_port());
                prop_assert_eq!(ours.destination_port(), theirs.destination_port());
                prop_assert_eq!(ours.length_bytes(), theirs.length());
                prop_assert_eq!(ours.checksum(), theirs.checksum());
                prop_assert_eq!(ours.payload(), theirs.payload());
            }
            Some(TransportSlice::Icmpv4(theirs)) => {
                let ours = IcmpHeader::new_checked(bytes).unwrap();
                prop_assert_eq!(ours.message_type(), theirs.type_u8());
                prop_assert_eq!(ours.code(), theirs.code_u8());
                prop_assert_eq!(ours.checksum(), theirs.checksum());
                prop_assert_eq!(ours.rest().to_be_bytes(), theirs.bytes5to8());
                prop_assert_eq!(ours.payload(), theirs.payload());
            }
            _ => {}
        }
    }

    /// Filling checksums anew gives those that etherparse computed.
    #[test]
    fn checksums_are_filled_alike(plan in plan()) {
        let built = plan.build();
        let headers = parse_ethernet(&built.bytes);
        let (Some(l3), Some(l4)) = (headers.network_offset(), headers.transport_offset()) else {
            return Ok(());
        };
        let mut bytes = built.bytes.clone();
        let end = headers.network_end();
        let length = end - l4;
        let (packet, transport) = bytes[l3..end].split_at_mut(l4 - l3);
        let pseudo = match (Ipv4Header::new_checked(&*packet), Ipv6Header::new_checked(&*packet)) {
            (Ok(ip), _) => ip.pseudo_header(length as u16),
            (_, Ok(ip)) => ip.pseudo_header(headers.protocol().unwrap_or(0), length as u32),
            _ => unreachable!(),
        };
        if let Ok(mut ip) = Ipv4Header::new_checked(packet) {
            ip.set_checksum(0x5555);
            ip.fill_checksum();
        }
        match headers.protocol() {
            Some(6) => TcpHeader::new_checked(transport).unwrap().fill_checksum(pseudo),
            Some(17) => UdpHeader::new_checked(transport).unwrap().fill_checksum(pseudo),
            Some(1) => {
                let sum = wire::checksum::Sum::new();
                IcmpHeader::new_checked(transport).unwrap().fill_checksum(sum);
            }
            Some(58) => IcmpHeader::new_checked(transport).unwrap().fill_checksum(pseudo),
            _ => {}
        }
        prop_assert_eq!(bytes, built.bytes);
    }
}
