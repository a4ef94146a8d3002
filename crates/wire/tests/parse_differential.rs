//! `parse` and `checksum` against etherparse, over frames of all kinds that
//! etherparse's writers made.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod frame;

use std::net::IpAddr;

use etherparse::{LinkExtSlice, NetSlice, SlicedPacket, TransportSlice};
use frame::{Built, NetworkPlan, Plan, TransportPlan, plan};
use proptest::prelude::*;
use wire::checksum::{ChecksumState, Sum, checksum, verify};
use wire::flow_key::FlowKey;
use wire::parse::{Fragment, Headers, Network, parse_ethernet, parse_ip};

/// What is known by construction.
fn check_construction(plan: &Plan, built: &Built, headers: &Headers) -> Result<(), TestCaseError> {
    let network = match plan.network {
        NetworkPlan::Arp => Network::Arp,
        NetworkPlan::Ipv4 { .. } => Network::Ipv4,
        NetworkPlan::Ipv6 { .. } => Network::Ipv6,
    };
    prop_assert!(headers.marks.is_empty(), "{}", headers.marks);
    prop_assert_eq!(headers.network(), network);
    prop_assert_eq!(headers.mpls_labels(), plan.mpls_labels);
    prop_assert_eq!(headers.network_offset(), Some(built.network_offset));
    prop_assert_eq!(headers.network_end(), built.network_end);
    prop_assert_eq!(headers.protocol(), built.protocol);
    prop_assert_eq!(headers.fragment(), built.fragment);
    prop_assert_eq!(headers.transport_offset(), built.transport_offset);
    prop_assert_eq!(headers.payload_offset(), built.payload_offset);
    let tags: Vec<(u16, u16)> = headers.vlans().iter().map(|tag| (tag.tpid, tag.tci)).collect();
    prop_assert_eq!(&tags, &plan.vlans);
    let has_ports = !matches!(plan.transport, TransportPlan::Icmp | TransportPlan::Other);
    let ports = (has_ports && built.transport_offset.is_some()).then_some(plan.ports);
    prop_assert_eq!(headers.ports(&built.bytes), ports);
    Ok(())
}

/// What etherparse finds in the packet behind Ethernet, tags and labels.
fn check_packet(built: &Built, headers: &Headers) -> Result<(), TestCaseError> {
    let whole = &built.bytes[built.network_offset..];
    // etherparse takes an IPv6 payload length of 0 for «up to the end», and padding for payload.
    let is_empty_ipv6 = whole[0] >> 4 == 6 && whole[4..6] == [0, 0];
    let end = if is_empty_ipv6 { built.network_end } else { built.bytes.len() };
    let packet = &built.bytes[built.network_offset..end];
    let sliced = SlicedPacket::from_ip(packet).unwrap();
    let offset_of = |part: &[u8]| part.as_ptr() as usize - built.bytes.as_ptr() as usize;
    let addresses: (IpAddr, IpAddr) = match sliced.net.as_ref().unwrap() {
        NetSlice::Ipv4(ip) => {
            (ip.header().source_addr().into(), ip.header().destination_addr().into())
        }
        NetSlice::Ipv6(ip) => {
            (ip.header().source_addr().into(), ip.header().destination_addr().into())
        }
        NetSlice::Arp(_) => unreachable!(),
    };
    prop_assert_eq!(headers.source(&built.bytes), Some(addresses.0));
    prop_assert_eq!(headers.destination(&built.bytes), Some(addresses.1));
    let payload = sliced.ip_payload().unwrap();
    prop_assert_eq!(headers.protocol(), Some(payload.ip_number.0));
    prop_assert_eq!(headers.fragment() != Fragment::None, payload.fragmented);
    prop_assert_eq!(headers.network_end(), offset_of(payload.payload) + payload.payload.len());
    prop_assert_eq!(headers.transport_bytes(&built.bytes), payload.payload);
    let transport_payload = match &sliced.transport {
        Some(TransportSlice::Udp(udp)) => udp.payload(),
        Some(TransportSlice::Tcp(tcp)) => tcp.payload(),
        Some(TransportSlice::Icmpv4(icmp)) => icmp.payload(),
        Some(TransportSlice::Icmpv6(icmp)) => icmp.payload(),
        // etherparse stops at SCTP and at every fragment.
        _ => return Ok(()),
    };
    prop_assert_eq!(headers.payload_offset(), Some(offset_of(transport_payload)));
    prop_assert_eq!(headers.payload(&built.bytes), transport_payload);
    // The same packet without its Ethernet header.
    let alone = parse_ip(packet);
    prop_assert_eq!(alone.network_offset(), Some(0));
    prop_assert_eq!(alone.payload(packet), transport_payload);
    Ok(())
}

/// What etherparse finds in Ethernet and VLAN tags; it follows three tags.
fn check_link(plan: &Plan, built: &Built, headers: &Headers) -> Result<(), TestCaseError> {
    if plan.vlans.len() > 3 {
        return Ok(());
    }
    let sliced = SlicedPacket::from_ethernet(&built.bytes).unwrap();
    prop_assert_eq!(sliced.link_exts.len(), headers.vlans().len());
    for (theirs, ours) in sliced.link_exts.iter().zip(headers.vlans()) {
        let LinkExtSlice::Vlan(theirs) = theirs else { unreachable!() };
        prop_assert_eq!(theirs.vlan_identifier().value(), ours.id());
        prop_assert_eq!(theirs.priority_code_point().value(), ours.priority());
        prop_assert_eq!(theirs.drop_eligible_indicator(), ours.drop_eligible());
    }
    prop_assert_eq!(sliced.payload_ether_type().map(|kind| kind.0), {
        // etherparse names none behind a network header that it has parsed.
        sliced.net.is_none().then_some(headers.ethertype())
    });
    if let Some(NetSlice::Arp(arp)) = &sliced.net {
        let arp = arp.to_packet().try_eth_ipv4().unwrap();
        prop_assert_eq!(headers.source(&built.bytes), Some(arp.sender_ipv4_addr().into()));
        prop_assert_eq!(headers.destination(&built.bytes), Some(arp.target_ipv4_addr().into()));
    }
    Ok(())
}

/// The checksums that etherparse computed are valid, and no longer so after any
/// single bit of what they cover has changed.
fn check_checksums(plan: &Plan, built: &Built, flip: usize) -> Result<(), TestCaseError> {
    let headers = parse_ethernet(&built.bytes);
    let covered = built.transport_offset.is_some()
        && plan.transport != TransportPlan::Sctp
        && built.fragment == Fragment::None;
    let expected = if covered { ChecksumState::Valid } else { ChecksumState::Absent };
    prop_assert_eq!(verify(&built.bytes, &headers), expected);
    let Some(l4) = built.transport_offset.filter(|_| covered) else { return Ok(()) };
    let mut bytes = built.bytes.clone();
    let bit = flip % ((built.network_end - l4) * 8);
    bytes[l4 + bit / 8] ^= 1 << (bit % 8);
    let headers = parse_ethernet(&bytes);
    // Unless the bit was in a length, whose contradiction hides the checksum.
    if headers.marks.is_empty() && headers.payload_end as usize == built.network_end {
        let zero = plan.transport == TransportPlan::Udp && bytes[l4 + 6..l4 + 8] == [0, 0];
        let expected = match plan.network {
            NetworkPlan::Ipv4 { .. } if zero => ChecksumState::Absent,
            _ => ChecksumState::Invalid,
        };
        prop_assert_eq!(verify(&bytes, &headers), expected);
    }
    Ok(())
}

/// A cut frame claims nothing beyond its end, and says that it is cut.
fn check_cut(built: &Built, cut: usize) -> Result<(), TestCaseError> {
    let cut = cut % built.network_end;
    let data = &built.bytes[..cut];
    let headers = parse_ethernet(data);
    prop_assert!(headers.is_truncated() && !headers.is_malformed(), "{}", headers.marks);
    prop_assert!(headers.network_end() <= cut);
    for offset in [headers.network_offset(), headers.transport_offset(), headers.payload_offset()] {
        prop_assert!(offset.is_none_or(|offset| offset <= headers.network_end()));
    }
    prop_assert_ne!(verify(data, &headers), ChecksumState::Valid);
    let full = parse_ethernet(&built.bytes);
    for (part, whole) in [
        (headers.network_offset(), full.network_offset()),
        (headers.transport_offset(), full.transport_offset()),
        (headers.payload_offset(), full.payload_offset()),
    ] {
        prop_assert!(part.is_none() || part == whole);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn frames_of_all_kinds(plan in plan(), flip: usize, cut: usize) {
        let built = plan.build();
        let headers = parse_ethernet(&built.bytes);
        check_construction(&plan, &built, &headers)?;
        check_link(&plan, &built, &headers)?;
        if headers.is_ip() {
            check_packet(&built, &headers)?;
        }
        check_checksums(&plan, &built, flip)?;
        check_cut(&built, cut)?;
    }

    /// Whatever is written over the frame, nothing panics and no offset lies
    /// beyond the end.
    #[test]
    fn damaged_frames(plan in plan(), damage in proptest::collection::vec(any::<(usize, u8)>(), 1..9)) {
        let mut bytes = plan.build().bytes;
        for (at, value) in damage {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        survives(&bytes)?;
    }

    #[test]
    fn random_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        survives(&bytes)?;
    }

    #[test]
    fn checksum_equals_etherparse(data in proptest::collection::vec(any::<u8>(), 0..3000)) {
        let theirs = etherparse::checksum::Sum16BitWords::new().add_slice(&data).ones_complement();
        prop_assert_eq!(checksum(&data), u16::from_be(theirs));
        prop_assert_eq!(Sum::new().add_bytes(&data).folded(), !u16::from_be(theirs));
    }
}

fn survives(bytes: &[u8]) -> Result<(), TestCaseError> {
    for headers in [parse_ethernet(bytes), parse_ip(bytes)] {
        prop_assert!(headers.network_end() <= bytes.len());
        for offset in
            [headers.network_offset(), headers.transport_offset(), headers.payload_offset()]
        {
            prop_assert!(offset.is_none_or(|offset| offset <= headers.network_end()));
        }
        let key = FlowKey::from_headers(bytes, &headers);
        prop_assert_eq!(key.is_some(), headers.is_ip());
        if let Some(key) = key {
            prop_assert_eq!(key.symmetric_hash(), key.reversed().symmetric_hash());
        }
        prop_assert_eq!(headers.source(bytes).is_some(), headers.destination(bytes).is_some());
        let _ = (headers.ports(bytes), verify(bytes, &headers), headers.payload(bytes));
        // Data other than what was parsed: any answer, but no panic.
        let half = &bytes[..bytes.len() / 2];
        let _ = (headers.source(half), headers.ports(half), headers.payload(half));
        let _ = (verify(half, &headers), FlowKey::from_headers(half, &headers));
    }
    Ok(())
}
