//! What goes and what stays.

use crate::{Filter, Link, Packet};

fn filter(text: &str) -> Filter {
    Filter::new(text, Link::Ethernet).unwrap()
}

fn instructions(text: &str) -> usize {
    filter(text).program().unwrap().0.len()
}

#[track_caller]
fn same(left: &str, right: &str) {
    assert_eq!(filter(left).graph().to_string(), filter(right).graph().to_string());
}

#[test]
fn common_expressions_are_short() {
    // As many as libpcap's, but for the last: libpcap asks one port for 80 and 443 before it reads the
    // other one, which accepts frames that are cut between them, and has 23.
    for (text, count) in [
        ("ip", 4),
        ("tcp", 12),
        ("host 10.0.0.1", 14),
        ("udp port 53", 20),
        ("port 80", 24),
        ("tcp port 80 or 443", 28),
    ] {
        assert_eq!(instructions(text), count, "{text}");
    }
}

#[test]
fn what_was_asked_is_not_asked_again() {
    same("ip and ip", "ip");
    same("port 80 or port 80", "port 80");
    same("ip and tcp or ip and tcp", "ip and tcp");
    same("not (not ip)", "ip");
    same("ip and not arp", "ip");
    same("ip[0] > 5 and ip[0] > 3", "ip[0] > 5");
    same("len > 5 or len <= 5", "");
    same("ip[0] & 0xf0 = 0x40 and not ip[0] & 0xf0 = 0x50", "ip[0] & 0xf0 = 0x40");
}

#[test]
fn a_load_that_may_end_the_filter_stays() {
    let either = filter("ip[100] = 1 or ip[100] != 1");
    let mut frame = [0; 115];
    frame[12] = 8;
    assert!(either.matches(&Packet::whole(&frame)));
    assert!(!either.matches(&Packet::whole(&frame[..114])));
    let program = either.program().unwrap().to_string();
    assert!(program.contains("[114]"), "{program}");
}

#[test]
fn an_empty_filter_is_refused_where_libpcap_sees_it() {
    for text in ["ip and arp", "ip and tcp and udp", "ip and not ip", "tcp port 80 and arp"] {
        let error = Filter::new(text, Link::Ethernet).unwrap_err();
        assert!(error.message.contains("no packet can match"), "{text}: {error}");
    }
    for text in ["ip[0] > 5 and ip[0] < 3", "len > 5 and ether[0] = 1 and len < 3"] {
        let filter = filter(text);
        assert_eq!(filter.graph().to_string(), "reject\n", "{text}");
        assert_eq!(filter.program().unwrap().to_string(), "(000) ret      #0\n");
        assert!(!filter.matches(&Packet::whole(&[8; 200])));
    }
}
