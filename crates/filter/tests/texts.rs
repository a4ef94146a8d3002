//! Any text is an expression or refused; none panics.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::net::IpAddr;

use filter::{Filter, Link, Names, Options, Packet, PortName};
use proptest::prelude::*;

/// Knows no name, so that none is asked for outside of the machine.
struct NoNames;

impl Names for NoNames {
    fn host(&self, _: &str) -> Vec<IpAddr> {
        Vec::new()
    }
    fn ether_host(&self, _: &str) -> Option<[u8; 6]> {
        None
    }
    fn network(&self, _: &str) -> Option<u32> {
        None
    }
    fn port(&self, _: &str) -> Option<PortName> {
        None
    }
    fn protocol(&self, _: &str) -> Option<u32> {
        None
    }
}

const LINKS: [Link; 4] = [Link::Ethernet, Link::Raw, Link::LinuxCooked, Link::LinuxCooked2];

fn try_it(text: &str, data: &[u8]) -> usize {
    let options = Options { names: &NoNames, netmask: Some(0xffff_ff00) };
    let mut accepted = 0;
    for link in LINKS {
        match Filter::with(text, link, &options) {
            Ok(filter) => {
                accepted += 1;
                filter.matches(&Packet::whole(data));
                let words = filter.graph().to_string();
                assert!(words.ends_with('\n'));
                if let Some(program) = filter.program() {
                    assert_eq!(program.to_string().lines().count(), program.0.len());
                }
            }
            Err(error) => {
                assert!(text.get(error.span.clone()).is_some(), "{text:?}: {error:?}");
                assert!(!error.message.is_empty());
                error.pointed(text);
            }
        }
    }
    accepted
}

const WORDS: [&str; 48] = [
    "ip",
    "ip6",
    "tcp",
    "udp",
    "arp",
    "ether",
    "link",
    "icmp6",
    "src",
    "dst",
    "host",
    "net",
    "port",
    "portrange",
    "proto",
    "and",
    "or",
    "not",
    "(",
    ")",
    "[",
    "]",
    "=",
    ">",
    "<",
    "!=",
    "+",
    "-",
    "*",
    "/",
    "%",
    "^",
    "&",
    "|",
    "<<",
    ":",
    "0",
    "1",
    "80",
    "10.0.0.1",
    "fe80::1",
    "1:2:3:4:5:6",
    "len",
    "vlan",
    "mpls",
    "geneve",
    "llc",
    "byte",
];

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_text(text in "\\PC{0,60}", data in proptest::collection::vec(any::<u8>(), 0..100)) {
        try_it(&text, &data);
    }

    #[test]
    fn any_words(
        places in proptest::collection::vec(0..WORDS.len(), 0..12),
        data in proptest::collection::vec(any::<u8>(), 0..100),
    ) {
        let words: Vec<&str> = places.iter().map(|place| WORDS[*place]).collect();
        try_it(&words.join(" "), &data);
    }
}

#[test]
fn some_are_accepted() {
    assert_eq!(try_it("tcp port 80 and ip[0] & 0xf > 5", &[0; 60]), 4);
    assert_eq!(try_it("ip broadcast", &[0; 60]), 4);
    assert_eq!(try_it("ether host 1:2:3:4:5:6", &[0; 60]), 1);
}
