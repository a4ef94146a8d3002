//! Readings: pairs of texts that say the same, and texts that say nothing.

use super::parse;
use crate::{Filter, FilterError, Link};

fn tests_of(text: &str) -> String {
    match Filter::new(text, Link::Ethernet) {
        Ok(filter) => filter.graph().to_string(),
        Err(error) => panic!("{}\n{error}", error.pointed(text)),
    }
}

#[track_caller]
fn same(left: &str, right: &str) {
    assert_eq!(tests_of(left), tests_of(right), "{left}, {right}");
}

#[track_caller]
fn differ(left: &str, right: &str) {
    assert_ne!(tests_of(left), tests_of(right), "{left}, {right}");
}

#[test]
fn identifiers_inherit_the_words_before_them() {
    same("tcp port 80 or 443", "tcp port 80 or tcp port 443");
    same("host 10.0.0.1 and not 10.0.0.2", "host 10.0.0.1 and not host 10.0.0.2");
    same("src net 10.0.0.0/8 or 11", "src net 10.0.0.0/8 or src net 11");
    same("not port 80 and 443", "not port 80 and port 443");
    same("port 80 and ip and port 443", "port 80 and (ip and (port 443))");
    same("udp src port 53 or (54 or 55)", "udp src port 53 or udp src port 54 or udp src port 55");
    // What has no words to pass on ends the inheritance.
    for text in ["80", "ip or 80", "port 80 or ip or 443", "(port 80 or ip) or 10.0.0.1"] {
        assert!(Filter::new(text, Link::Ethernet).is_err(), "{text}");
    }
}

#[test]
fn parentheses_hold_identifiers_expressions_and_arithmetic() {
    same("port (80 or 443)", "port 80 or port 443");
    same("port ((80))", "port 80");
    same("host (10.0.0.1 or not 10.0.0.2)", "host 10.0.0.1 or not host 10.0.0.2");
    same("not (ip or arp)", "not ip and not arp");
    same("((ip)) and (((tcp)))", "ip and tcp");
    same("(ip[0] + 1) * 2 = 4", "((ip[0]) + 1) * (2) = (4)");
    same("(len) > (100)", "len > 100");
    differ("(ip[0] + 1) * 2 = 4", "ip[0] + 1 * 2 = 4");
    for text in ["(ip", "ip)", "()", "port (80 or)", "(ip[0] = 1", "(80) = ", "port (80"] {
        assert!(parse(text).is_err(), "{text}");
    }
}

#[test]
fn not_binds_tighter_than_and_and_or_which_bind_alike() {
    same("arp or ip and port 53", "(arp or ip) and port 53");
    same("ip and tcp or arp", "(ip and tcp) or arp");
    same("not ip or arp", "(not ip) or arp");
    differ("not ip or arp", "not (ip or arp)");
    same("not not ip", "ip");
    same("! ip && ! arp || rarp", "not ip and not arp or rarp");
    same("src or dst port 80", "port 80");
    differ("src and dst port 80", "port 80");
}

#[test]
fn operators_have_their_ranks() {
    for (left, right) in [
        ("ip[0] + ip[1] * 2", "ip[0] + (ip[1] * 2)"),
        ("ip[0] * 2 + ip[1]", "(ip[0] * 2) + ip[1]"),
        ("ip[0] - ip[1] - 1", "(ip[0] - ip[1]) - 1"),
        ("ip[0] / 2 / 3", "(ip[0] / 2) / 3"),
        ("ip[0] << 1 + 1", "ip[0] << (1 + 1)"),
        ("ip[0] & 1 | 2", "(ip[0] & 1) | 2"),
        ("1 | ip[0] & 3", "1 | (ip[0] & 3)"),
        ("ip[0] & ip[1] << 2", "ip[0] & (ip[1] << 2)"),
        // These two have no rank: all that follows is their right side.
        ("ip[0] % 2 + 1", "ip[0] % (2 + 1)"),
        ("ip[0] + ip[1] % 2", "ip[0] + (ip[1] % 2)"),
        ("ip[0] ^ 3 & 1", "ip[0] ^ (3 & 1)"),
        ("ip[0] * 2 ^ 3", "ip[0] * (2 ^ 3)"),
        ("ip[0] % 7 % 3", "ip[0] % (7 % 3)"),
    ] {
        same(&format!("{left} = 1"), &format!("{right} = 1"));
    }
    differ("ip[0] % 2 + 1 = 1", "(ip[0] % 2) + 1 = 1");
    differ("ip[0] - (ip[1] - 1) = 1", "ip[0] - ip[1] - 1 = 1");
}

#[test]
fn levels_within_each_other_are_limited() {
    let within = |count: usize| format!("{}ip{}", "(".repeat(count), ")".repeat(count));
    assert!(parse(&within(400)).is_ok());
    assert!(parse(&within(401)).unwrap_err().message.contains("400 levels"));
    for text in ["(".repeat(100_000), "not ".repeat(100_000), "ip[".repeat(100_000)] {
        assert!(parse(&text).is_err());
    }
    // Many side by side are no matter.
    let long = vec!["port 80"; 20_000].join(" or ");
    assert!(parse(&long).is_ok());
}

/// Texts, what is pointed at in them, and a part of what is said.
const REFUSED: [(&str, &str, &str); 24] = [
    ("port 65536", "65536", "65535"),
    ("port 80 443", "443", "expected «and», «or» or the end"),
    ("host", "", "expected an address"),
    ("ip and", "", "expected a test"),
    ("and ip", "and", "expected a test"),
    ("ip or 80", "80", "expected a word such as host, net or port in front"),
    ("(ip", "", "expected «)»"),
    ("ip)", ")", "closes no parenthesis"),
    ("ip[0]", "", "expected a comparison"),
    ("ip[0:3] = 1", "ip[0:3]", "3 bytes at once"),
    ("ip[0] / 0 = 1", "ip[0] / 0", "divides by zero"),
    ("ip[0] << 32 = 1", "ip[0] << 32", "more than 31 bits"),
    ("host 10.0.0.300", "10.0.0.300", "10.0.0.300"),
    ("net 10.0.0.1/8", "10.0.0.1/8", "10.0.0.1"),
    ("net 10.0.0.0/33", "10.0.0.0/33", "33"),
    ("host 00:11:22:", "00:11:22:", "six bytes"),
    ("ip proto 08", "08", "octal"),
    ("port 4294967296", "4294967296", "above 4294967295"),
    ("ip # 5", "#", "has no meaning"),
    ("protochain 6", "6", "protochain"),
    ("wlan addr1 1:2:3:4:5:6", "1:2:3:4:5:6", "802.11"),
    ("vci 5", "vci", "ATM"),
    ("gateway 10.0.0.1", "10.0.0.1", "an address stands behind"),
    ("ip and arp", "ip and arp", "no packet can match"),
];

#[test]
fn errors_point_at_what_is_meant() {
    let mut wrong = Vec::new();
    for (text, pointed, said) in REFUSED {
        match Filter::new(text, Link::Ethernet) {
            Ok(_) => wrong.push(format!("{text}: accepted")),
            Err(FilterError { span, message }) => {
                let meant = text.get(span.clone());
                if meant != Some(pointed) || !message.contains(said) {
                    wrong.push(format!("{text}: {span:?} {meant:?} {message}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
