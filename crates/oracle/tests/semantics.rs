//! What libpcap makes of expressions where one could expect something else. A filter of ours that
//! disagrees here is wrong, or differs on purpose.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use oracle::Libpcap;
use oracle::frames::{ETHERNET, LINUX_SLL, LINUX_SLL2, corpus};
use testing::say_skipped;

const SNAP_BYTES: u32 = 262_144;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Takes {
    All,
    Some,
    None,
}
use Takes::{All, None as Nothing, Some as Part};

fn libpcap(test: &str) -> Option<Libpcap> {
    Libpcap::load().map_err(|reason| say_skipped(test, reason)).ok()
}

/// How many frames of a kind an expression takes, without the optimiser.
fn takes(libpcap: &Libpcap, link_type: u16, expression: &str, kind: &str) -> Takes {
    let filter = libpcap.compile(expression, link_type, SNAP_BYTES, false).unwrap();
    let frames: Vec<_> = corpus(link_type).into_iter().filter(|frame| frame.kind == kind).collect();
    let taken = frames.iter().filter(|frame| filter.matches(&frame.data, frame.wire_bytes)).count();
    assert!(!frames.is_empty(), "no frame is of kind {kind}");
    match taken {
        0 => Nothing,
        taken if taken == frames.len() => All,
        _ => Part,
    }
}

fn agree(test: &str, link_type: u16, cases: &[(&str, &str, Takes)]) {
    let Some(libpcap) = libpcap(test) else { return };
    let wrong: Vec<_> = cases
        .iter()
        .map(|&(expression, kind, expected)| {
            (expression, kind, expected, takes(&libpcap, link_type, expression, kind))
        })
        .filter(|(_, _, expected, found)| expected != found)
        .collect();
    assert!(wrong.is_empty(), "(expression, kind, expected, found): {wrong:#?}");
}

#[test]
fn a_tag_moves_all_that_is_written_after_it() {
    let cases = [
        ("ip or vlan", "ip-tcp", All),
        ("ip or vlan", "vlan", All),
        // After `vlan`, whether it holds or not, types are looked for 4 bytes further on.
        ("vlan or ip", "ip-tcp", Nothing),
        ("not vlan and ip", "ip-tcp", Nothing),
        ("not vlan", "ip-tcp", All),
        ("(vlan and ip) or ip6", "ip6-tcp", Nothing),
        ("vlan 100 or vlan 200", "vlan", Part),
        ("vlan 0 or vlan 1 or vlan 100 or vlan 200 or vlan 300 or vlan 4095", "vlan", Part),
        ("vlan and (vlan or ip)", "vlan-double", All),
        // Addresses and `ether[…]` stay at the beginning of the frame.
        ("vlan and ether[12:2] > 0x80ff", "vlan", All),
        ("vlan and ether host 00:11:22:33:44:55", "vlan", Part),
        // Behind a label the upper half of a byte alone tells IPv4, which other bytes have too.
        ("mpls or ip", "ip-tcp", Part),
        ("mpls", "mpls-multicast", Nothing),
        ("mpls and ip", "mpls-double", Nothing),
        ("pppoes or ip", "ip-tcp", Nothing),
    ];
    agree("a_tag_moves_all_that_is_written_after_it", ETHERNET, &cases);
}

#[test]
fn both_connectives_bind_alike_and_from_the_left() {
    let cases = [
        ("arp or ip and udp", "arp", Nothing),
        ("arp or ip and udp", "ip-udp", All),
        ("arp or (ip and udp)", "arp", All),
        ("not ip and arp", "arp", All),
        ("not tcp or udp", "ip-tcp", Nothing),
    ];
    agree("both_connectives_bind_alike_and_from_the_left", ETHERNET, &cases);
}

#[test]
fn what_cannot_be_read_takes_nothing_even_when_negated() {
    let cases = [
        ("inbound", "ip-tcp", Nothing),
        ("not inbound", "ip-tcp", Nothing),
        ("outbound or ip", "ip-tcp", Nothing),
        ("ip or outbound", "ip-tcp", All),
        ("ifindex 1 or not ifindex 1", "ip-tcp", Nothing),
        ("ether[65535] = 0 or ip", "ip-tcp", Nothing),
        ("not ether[65535] = 0", "ip-tcp", Nothing),
        ("ip[-1] = 0", "ip-tcp", Nothing),
        ("ip[0] / (ip[1] - ip[1]) = 0 or ip", "ip-tcp", Nothing),
        // Shifts by a computed number of 32 and more are defined: nothing is left.
        ("ip[0] << (16 + 16) = 0", "ip-tcp", All),
    ];
    agree("what_cannot_be_read_takes_nothing_even_when_negated", ETHERNET, &cases);
}

#[test]
fn protocols_are_found_where_libpcap_looks_for_them() {
    let cases = [
        ("tcp or udp or sctp or icmp6 or ip6 proto 60", "ip6-fragment-first", All),
        ("tcp or udp or sctp or icmp6 or ip6 proto 60", "ip6-fragment-later", All),
        ("tcp or udp", "ip6-extension", Nothing),
        ("portrange 0-65535", "ip-fragment-first", Part),
        ("portrange 0-65535", "ip-fragment-middle", Nothing),
        ("portrange 0-65535", "ip6-fragment-first", Nothing),
        ("tcp", "ip-fragment-middle", Part),
        ("tcp[0] >= 0", "ip6-tcp", Nothing),
        ("tcp[0] >= 0", "ip-fragment-middle", Nothing),
        ("ip multicast", "ip-broadcast", All),
        ("carp", "ip-vrrp", All),
        ("ether proto 1501", "ether-type", Part),
        ("atalk", "snap-other", Nothing),
        ("llc", "ipx-novell", Nothing),
        ("geneve", "geneve-version", Nothing),
        ("host 255.255.255.255 or net 0.0.0.0/0", "arp-other", Part),
        // No read comes before the test of a byte by `&`: it sees what the test before it read.
        ("byte 0 & 0xff", "ether-broadcast", Nothing),
        ("arp and byte 0 & 2", "arp", All),
    ];
    agree("protocols_are_found_where_libpcap_looks_for_them", ETHERNET, &cases);
}

#[test]
fn cooked_frames_hide_some_protocols() {
    let first = [
        ("iso", "clnp", All),
        ("clnp", "clnp", Nothing),
        ("isis", "isis-l1-lsp", Nothing),
        ("inbound", "cooked-outbound", Nothing),
    ];
    agree("cooked_frames_hide_some_protocols", LINUX_SLL, &first);
    let second = [
        ("stp", "stp", Nothing),
        ("ipx", "ipx", Nothing),
        ("netbeui", "netbeui", Nothing),
        ("atalk", "snap-atalk", Nothing),
        ("ifindex 1 or ifindex 2 or ifindex 3 or ifindex 70000", "ip-tcp", All),
    ];
    agree("cooked_frames_hide_some_protocols", LINUX_SLL2, &second);
}

#[test]
fn refusals_that_surprise() {
    let Some(libpcap) = libpcap("refusals_that_surprise") else { return };
    let cases = [
        // The first number of a divisor or a count of bits stands for all of it.
        ("1 << (32 - 31) = 2", "shift by more than 31 bits"),
        ("ip[0] / (0 + 1) = 69", "division by zero"),
        ("net 10/8", "syntax error"),
        ("ip broadcast", "netmask not known, so 'ip broadcast' not supported"),
        ("gateway nosuch", "'gateway' not supported in this configuration"),
        ("mpls and vlan", "no VLAN match after MPLS"),
        ("mpls and arp", "unsupported protocol over mpls"),
        ("mpls and port 80 and ether proto 0x0806", "unsupported protocol over mpls"),
        ("geneve and ip6 protochain 6", "'protochain' not supported with variable length headers"),
        ("10.0.0.1", "syntax error"),
        ("ip[0] = 69 or 80", "syntax error"),
        ("portrange domain", "unknown port in range 'domain'"),
        ("IP", "syntax error"),
        ("ip[0:3] = 1", "data size must be 1, 2, or 4"),
    ];
    for (expression, expected) in cases {
        for optimise in [false, true] {
            let refusal = libpcap.compile(expression, ETHERNET, SNAP_BYTES, optimise).unwrap_err();
            assert!(refusal.contains(expected), "{expression}: {refusal}");
        }
    }
    // What can never hold is refused by the optimiser alone.
    for expression in ["1 = 2", "ip and ip6", "tcp and vlan"] {
        assert!(libpcap.compile(expression, ETHERNET, SNAP_BYTES, false).is_ok(), "{expression}");
        let refusal = libpcap.compile(expression, ETHERNET, SNAP_BYTES, true).unwrap_err();
        assert_eq!(refusal, "expression rejects all packets", "{expression}");
    }
}
