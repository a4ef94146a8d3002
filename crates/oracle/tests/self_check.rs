//! Frames and expressions are worth their while: libpcap takes most expressions, gives both
//! answers to them, and finds in each frame what its kind says.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};

use oracle::frames::{ETHERNET, Frame, LINUX_SLL, LINUX_SLL2, RAW, corpus};
use oracle::instruction::reads_unset_scratch;
use oracle::{Compiled, Libpcap, expressions};
use testing::say_skipped;

const SNAP_BYTES: u32 = 262_144;
const LINK_TYPES: [(&str, u16); 4] =
    [("Ethernet", ETHERNET), ("raw IP", RAW), ("SLL", LINUX_SLL), ("SLL2", LINUX_SLL2)];
const SEED: u64 = 1;
const COUNT: usize = 10_000;

fn libpcap(test: &str) -> Option<Libpcap> {
    Libpcap::load().map_err(|reason| say_skipped(test, reason)).ok()
}

/// What libpcap makes of expressions, and how often it complains of what.
fn compile(
    libpcap: &Libpcap,
    expressions: &[String],
    link_type: u16,
) -> (Vec<(String, Compiled)>, BTreeMap<String, usize>) {
    let (mut compiled, mut refusals) = (Vec::new(), BTreeMap::new());
    for expression in expressions {
        match libpcap.compile(expression, link_type, SNAP_BYTES, true) {
            Ok(filter) => compiled.push((expression.clone(), filter)),
            Err(message) => *refusals.entry(kind_of_refusal(&message)).or_insert(0) += 1,
        }
    }
    (compiled, refusals)
}

/// The message without what it quotes and without numbers.
fn kind_of_refusal(message: &str) -> String {
    let first_line = message.lines().next().unwrap_or_default();
    let mut kind = String::new();
    for (index, part) in first_line.split('"').enumerate() {
        kind.push_str(if index % 2 == 0 { part } else { "\"…\"" });
    }
    let mut shortened = String::new();
    for character in kind.chars() {
        let character = if character.is_ascii_digit() { '#' } else { character };
        if !(character == '#' && shortened.ends_with('#')) {
            shortened.push(character);
        }
    }
    shortened.chars().take(100).collect()
}

fn say_refusals(title: &str, refusals: &BTreeMap<String, usize>) {
    let mut by_count: Vec<_> = refusals.iter().collect();
    by_count.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    println!("{title}: {} refused", refusals.values().sum::<usize>());
    for (message, count) in by_count {
        println!("{count:6} {message}");
    }
}

#[test]
fn most_generated_expressions_compile() {
    let Some(libpcap) = libpcap("most_generated_expressions_compile") else { return };
    let generated = expressions::generated(SEED, COUNT);
    for (name, link_type, percent_min) in [
        ("Ethernet", ETHERNET, 75),
        ("raw IP", RAW, 45),
        ("SLL", LINUX_SLL, 50),
        ("SLL2", LINUX_SLL2, 50),
    ] {
        let (compiled, refusals) = compile(&libpcap, &generated, link_type);
        say_refusals(&format!("{name}, generated"), &refusals);
        println!("{name}: {} of {COUNT} compile", compiled.len());
        assert!(compiled.len() * 100 >= COUNT * percent_min, "{name}: {}", compiled.len());
    }
}

#[test]
fn picked_expressions_are_taken_and_refused() {
    let Some(libpcap) = libpcap("picked_expressions_are_taken_and_refused") else { return };
    let picked = expressions::hand_picked();
    let (compiled, refusals) = compile(&libpcap, &picked, ETHERNET);
    say_refusals("Ethernet, picked", &refusals);
    println!("Ethernet: {} of {} compile", compiled.len(), picked.len());
    assert!(compiled.len() >= 400, "{}", compiled.len());
    assert!(picked.len() - compiled.len() >= 300, "{}", picked.len() - compiled.len());
    assert!(refusals.len() >= 60, "{}", refusals.len());
}

#[test]
fn both_answers_are_given() {
    let Some(libpcap) = libpcap("both_answers_are_given") else { return };
    let generated = expressions::generated(SEED, COUNT);
    for (name, link_type) in LINK_TYPES {
        let frames = corpus(link_type);
        let (compiled, _) = compile(&libpcap, &generated, link_type);
        let (mut never, mut always, mut chance) = (0, 0, 0);
        for (_, filter) in &compiled {
            chance += usize::from(reads_unset_scratch(&filter.instructions()));
            match frames
                .iter()
                .filter(|frame| filter.matches(&frame.data, frame.wire_bytes))
                .count()
            {
                0 => never += 1,
                count if count == frames.len() => always += 1,
                _ => {}
            }
        }
        println!(
            "{name}: of {} filters over {} frames, {never} take none, {always} all; {chance} are left to chance",
            compiled.len(),
            frames.len(),
        );
        assert!((never + always) * 100 <= compiled.len() * 25, "{name}: {never} + {always}");
    }
}

/// How many bytes are read at most beyond the end of what was captured.
const PADDING_BYTES: usize = 4096;

/// libpcap's optimiser leaves out reads whose values do not matter, and with them that they fail
/// where a frame ends early. Where no read fails, it changes no answer.
#[test]
fn the_optimiser_changes_answers_only_where_reads_fail() {
    let Some(libpcap) = libpcap("the_optimiser_changes_answers_only_where_reads_fail") else {
        return;
    };
    let frames = corpus(ETHERNET);
    let padded: Vec<Frame> = frames.iter().map(padded).collect();
    let (mut compared, mut refused, mut cut, mut whole) = (0, 0, 0, Vec::new());
    for expression in expressions::generated(SEED, COUNT / 4) {
        // Without the optimiser `byte 0 & 1` looks at what was read last, with it at anything.
        let reads_nothing = expression.contains("byte");
        let compile = |optimise| libpcap.compile(&expression, ETHERNET, SNAP_BYTES, optimise);
        let Ok(plain) = compile(false) else { continue };
        let Ok(optimised) = compile(true) else {
            refused += 1;
            continue;
        };
        if reads_nothing || reads_unset_scratch(&plain.instructions()) {
            continue;
        }
        compared += 1;
        let differ = |frame: &Frame| {
            let answer = |filter: &Compiled| filter.matches(&frame.data, frame.wire_bytes);
            answer(&plain) != answer(&optimised)
        };
        cut += usize::from(frames.iter().any(differ));
        if padded.iter().any(differ) {
            whole.push(expression);
        }
    }
    println!(
        "{compared} expressions optimised: {cut} give other answers, {} even where bytes follow; \
         {refused} are refused for it",
        whole.len()
    );
    // Those that are left read from where a wild number leads, beyond the padding.
    assert!(whole.len() * 200 <= compared, "{whole:#?}");
    assert!(cut * 100 >= compared, "frames are not cut where it matters: {cut}");
}

/// The frame with bytes behind it, which have no meaning.
fn padded(frame: &Frame) -> Frame {
    let mut data = frame.data.clone();
    data.resize(data.len() + PADDING_BYTES, 0);
    Frame { data, ..frame.clone() }
}

#[test]
fn kinds_are_what_they_say() {
    let Some(libpcap) = libpcap("kinds_are_what_they_say") else { return };
    let mut named = BTreeSet::new();
    let mut wrong = Vec::new();
    for (name, link_type) in LINK_TYPES {
        let frames = corpus(link_type);
        for &(kind, expression) in table(link_type) {
            let filter = libpcap.compile(expression, link_type, SNAP_BYTES, true).unwrap();
            let of_kind: Vec<&Frame> = frames.iter().filter(|frame| frame.kind == kind).collect();
            assert!(!of_kind.is_empty(), "{name}: no {kind}");
            named.insert(kind);
            let taken =
                of_kind.iter().filter(|frame| filter.matches(&frame.data, frame.wire_bytes));
            if taken.count() < of_kind.len() {
                wrong.push(format!("{name}: {expression:?} takes not all of {kind}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let all: BTreeSet<_> = corpus(ETHERNET).iter().map(|frame| frame.kind).collect();
    println!("no expression names {:?}", all.difference(&named).collect::<Vec<_>>());
}

/// Kinds, and an expression that takes all of their frames.
fn table(link_type: u16) -> &'static [(&'static str, &'static str)] {
    match link_type {
        ETHERNET => &ON_ETHERNET,
        RAW => &OF_IP,
        LINUX_SLL => &COOKED,
        _ => &COOKED2,
    }
}

const OF_IP: [(&str, &str); 36] = [
    ("ip-tcp", "ip and tcp"),
    ("ip-udp", "ip and udp"),
    ("ip-sctp", "ip and sctp"),
    ("ip-icmp", "icmp"),
    ("ip-igmp", "igmp"),
    ("ip-igrp", "igrp"),
    ("ip-pim", "ip and pim"),
    ("ip-vrrp", "vrrp"),
    ("ip-vrrp", "carp"),
    ("ip-ah", "ip and ah"),
    ("ip-esp", "ip and esp"),
    ("ip-options", "ip[0] & 0xf > 5"),
    ("ip-fragment-first", "ip[6:2] & 0x3fff = 0x2000"),
    ("ip-fragment-middle", "ip[6:2] & 0x2000 != 0 and ip[6:2] & 0x1fff != 0"),
    ("ip-fragment-middle", "not port 0 and not portrange 1-65535 and ip"),
    ("ip-fragment-last", "ip[6:2] & 0x2000 = 0 and ip[6:2] & 0x1fff != 0"),
    ("ip-multicast", "ip multicast"),
    ("ip-broadcast", "dst host 255.255.255.255"),
    ("ip6-tcp", "ip6 and tcp"),
    ("ip6-udp", "ip6 and udp"),
    ("ip6-sctp", "ip6 and sctp"),
    ("ip6-icmp6", "icmp6"),
    ("ip6-pim", "ip6 and pim"),
    ("ip6-ah", "ip6 and ah"),
    ("ip6-esp", "ip6 and esp"),
    ("ip6-fragment-first", "ip6 proto 44 and ip6[42:2] = 1"),
    ("ip6-fragment-later", "ip6 protochain 44"),
    ("ip6-multicast", "ip6 multicast"),
    ("geneve-ether", "geneve"),
    ("geneve-ip", "geneve and ip"),
    ("geneve-ip6", "geneve and ip6"),
    ("geneve-version", "udp dst port 6081 and not geneve"),
    ("vxlan", "udp dst port 4789"),
    ("gre", "ip proto gre"),
    ("ip-in-ip", "ip proto 4"),
    ("ip6-in-ip", "ip proto 41"),
];

const COOKED: [(&str, &str); 19] = [
    ("ip-tcp", "ip and tcp"),
    ("ip6-udp", "ip6 and udp"),
    ("arp", "arp"),
    ("rarp", "rarp"),
    ("cooked-inbound", "inbound"),
    ("cooked-outbound", "outbound"),
    ("geneve-ip", "geneve and ip"),
    ("decnet", "decnet"),
    ("lat", "lat"),
    ("ipx", "ipx"),
    ("ipx-llc", "ipx"),
    ("ipx-snap", "ipx"),
    ("ipx-novell", "ipx"),
    ("stp", "stp"),
    ("netbeui", "netbeui"),
    ("clnp", "iso"),
    ("snap-atalk", "atalk"),
    ("snap-aarp", "aarp"),
    ("pppoed", "pppoed"),
];

const COOKED2: [(&str, &str); 11] = [
    ("ip-tcp", "ip and tcp"),
    ("ip6-udp", "ip6 and udp"),
    ("arp", "arp"),
    ("rarp", "rarp"),
    ("cooked-inbound", "inbound"),
    ("cooked-outbound", "outbound"),
    ("geneve-ip", "geneve and ip"),
    ("decnet", "decnet"),
    ("lat", "lat"),
    ("atalk", "atalk"),
    ("pppoed", "pppoed"),
];

const ON_ETHERNET: [(&str, &str); 96] = [
    ("ip-tcp", "ip and tcp"),
    ("ip-udp", "ip and udp"),
    ("ip-sctp", "ip and sctp"),
    ("ip-icmp", "icmp"),
    ("ip-igmp", "igmp"),
    ("ip-igrp", "igrp"),
    ("ip-pim", "ip and pim"),
    ("ip-vrrp", "vrrp"),
    ("ip-vrrp", "carp"),
    ("ip-ah", "ip and ah"),
    ("ip-esp", "ip and esp"),
    ("ip-other", "ip and not tcp and not udp and not icmp"),
    ("ip-options", "ip[0] & 0xf > 5"),
    ("ip-fragment-first", "ip[6:2] & 0x3fff = 0x2000"),
    ("ip-fragment-middle", "ip[6:2] & 0x2000 != 0 and ip[6:2] & 0x1fff != 0"),
    ("ip-fragment-last", "ip[6:2] & 0x2000 = 0 and ip[6:2] & 0x1fff != 0"),
    ("ip-multicast", "ip multicast"),
    ("ip-broadcast", "dst host 255.255.255.255"),
    ("ip6-tcp", "ip6 and tcp"),
    ("ip6-udp", "ip6 and udp"),
    ("ip6-sctp", "ip6 and sctp"),
    ("ip6-icmp6", "icmp6"),
    ("ip6-pim", "ip6 and pim"),
    ("ip6-ah", "ip6 and ah"),
    ("ip6-esp", "ip6 and esp"),
    ("ip6-extension", "ip6 and not tcp and not udp and not icmp6"),
    ("ip6-fragment-first", "ip6 proto 44 and ip6[42:2] = 1"),
    ("ip6-fragment-later", "ip6 protochain 44"),
    ("ip6-multicast", "ip6 multicast"),
    ("arp", "arp and arp[2:2] = 0x0800"),
    ("rarp", "rarp and rarp[7] > 2"),
    ("arp-other", "arp or rarp"),
    ("ether-broadcast", "ether broadcast"),
    ("ether-multicast", "ether multicast and not ether broadcast"),
    ("decnet", "decnet"),
    ("decnet", "decnet host 1.1 or 1.1023 or 63.7"),
    ("lat", "lat"),
    ("moprc", "moprc"),
    ("mopdl", "mopdl"),
    ("sca", "sca"),
    ("atalk", "atalk"),
    ("snap-atalk", "atalk"),
    ("aarp", "aarp"),
    ("snap-aarp", "aarp"),
    ("loopback", "ether proto loopback"),
    ("ipx", "ipx"),
    ("ipx-llc", "ipx"),
    ("ipx-snap", "ipx"),
    ("ipx-novell", "ipx"),
    ("stp", "stp"),
    ("netbeui", "netbeui"),
    ("clnp", "clnp"),
    ("esis", "esis"),
    ("iso-other", "iso and not clnp and not esis and not isis"),
    ("isis-l1-iih", "isis and l1 and iih"),
    ("isis-l2-iih", "isis and l2 and iih"),
    ("isis-ptp-iih", "l1 and l2 and iih"),
    ("isis-l1-lsp", "l1 and lsp"),
    ("isis-l2-lsp", "l2 and lsp"),
    ("isis-l1-csnp", "l1 and snp and csnp"),
    ("isis-l2-csnp", "l2 and snp and csnp"),
    ("isis-l1-psnp", "l1 and snp and psnp"),
    ("isis-l2-psnp", "l2 and snp and psnp"),
    ("isis-other", "isis and not l1 and not l2"),
    ("llc-ip", "llc and ether proto 6"),
    ("snap-ip", "llc and not ip"),
    ("llc-i", "llc i"),
    ("llc-rr", "llc s and llc rr"),
    ("llc-rnr", "llc s and llc rnr"),
    ("llc-rej", "llc s and llc rej"),
    ("llc-ui", "llc u and llc ui"),
    ("llc-ua", "llc u and llc ua"),
    ("llc-disc", "llc u and llc disc"),
    ("llc-dm", "llc u and llc dm"),
    ("llc-sabme", "llc u and llc sabme"),
    ("llc-test", "llc u and llc test"),
    ("llc-xid", "llc u and llc xid"),
    ("llc-frmr", "llc u and llc frmr"),
    ("vlan", "vlan and (ip or ip6)"),
    ("vlan-double", "vlan and vlan and (ip or ip6)"),
    ("vlan-triple", "vlan and vlan and vlan and (ip or ip6)"),
    ("vlan-mpls", "vlan and mpls and (ip or ip6)"),
    ("vlan-pppoes", "vlan and pppoes and tcp"),
    ("mpls", "mpls and (ip or ip6)"),
    ("mpls-double", "mpls and mpls and (ip or ip6)"),
    ("mpls-triple", "mpls and mpls and mpls and (ip or ip6)"),
    ("pppoed", "pppoed"),
    ("pppoes-ip", "pppoes and ip"),
    ("pppoes-ip6", "pppoes and ip6"),
    ("geneve-ether", "geneve and (ip or ip6)"),
    ("geneve-ip", "geneve and ip"),
    ("geneve-ip6", "geneve and ip6"),
    ("geneve-arp", "geneve and (arp or rarp)"),
    ("geneve-vlan", "geneve and vlan and (ip or ip6)"),
    ("geneve-nested", "geneve and geneve and (ip or ip6)"),
    ("geneve-version", "udp dst port 6081 and not geneve"),
];
