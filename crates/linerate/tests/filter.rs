//! `filter`: its counts are exact and tcpdump's, what it refuses is pointed at, what it explains runs.
#![allow(clippy::unwrap_used, clippy::panic)]

// What the other test binaries need of it.
#[allow(dead_code)]
mod program;

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use oracle::frames::{self, corpus};
use program::{Run, capture, number};
use store::{Interface, LinkType, PcapPrecision, PcapWriter, PcapngWriter, Record, Section};

fn matched(expression: &str, path: &str) -> u64 {
    let result = Run::of(&["filter", expression, "--read", path, "--json"]).expect(0).result();
    let account = &result["ledger"]["accounts"][0];
    let matched = number(&result, "matched_packets");
    assert_eq!(number(account, "left.matched_packets"), matched, "{result}");
    let unmatched = number(account, "left.unmatched_packets");
    assert_eq!(number(&result, "read_packets"), matched + unmatched, "{result}");
    assert_eq!((&result["ledger"]["balanced"], &result["error"]), (&true.into(), &().into()));
    matched
}

#[test]
fn counts_are_exact() {
    let (_directory, path) = capture(1_000, &["--src", "10.0.0.0/24", "--dport", "9-18"]);
    // 254 hosts in turn, 10 ports in turn.
    let hosts = (0..1_000).filter(|frame| frame % 254 == 6).count() as u64;
    for (expression, expected) in [
        ("", 1_000),
        ("udp", 1_000),
        ("not udp", 0),
        ("udp dst port 10", 100),
        ("dst port 10 or 11 or 300", 200),
        ("dst portrange 10-12", 300),
        ("src host 10.0.0.7", hosts),
        ("src net 10.0.0.0/24 and not 10.0.0.7", 1_000 - hosts),
        ("ip[2:2] > 2000 or vlan", 0),
        ("ip[0] > 5 and ip[0] < 3", 0),
    ] {
        assert_eq!(matched(expression, &path), expected, "{expression}");
    }
    let words = Run::of(&["filter", "udp", "dst", "port", "10", "--read", &path]).expect(0);
    let text = String::from_utf8(words.stdout).unwrap();
    assert!(text.starts_with("100 of 1,000 packets match"), "{text}");
    assert!(text.contains("ledger balanced"), "{text}");
}

/// A pcap file of all frames of a link type.
fn file(directory: &Path, link_type: u16) -> String {
    let path = directory.join(format!("{link_type}.pcap")).display().to_string();
    let precision = PcapPrecision::Microseconds;
    let sink = File::create(&path).unwrap();
    let mut writer = PcapWriter::new(sink, LinkType(link_type), 262_144, precision).unwrap();
    for frame in corpus(link_type) {
        let record = Record { original_length: frame.wire_bytes, ..Record::new(1, &frame.data) };
        writer.write_record(&record).unwrap();
    }
    writer.finish().unwrap();
    path
}

/// How many packets tcpdump counts, without its optimiser; `None` where it is missing.
fn tcpdump(expression: &str, path: &str) -> Option<u64> {
    let output = Command::new("tcpdump")
        // As standard input, whoever tcpdump becomes may read it.
        .args(["-r", "-", "-O", "--count", expression])
        .stdin(Stdio::from(File::open(path).unwrap()))
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let words = text.split_whitespace().next().map(str::parse);
    let Some(Ok(count)) = words else {
        panic!("{expression}: {}", String::from_utf8_lossy(&output.stderr));
    };
    Some(count)
}

#[test]
fn counts_are_those_of_tcpdump() {
    let directory = tempfile::tempdir().unwrap();
    for link_type in [frames::ETHERNET, frames::RAW, frames::LINUX_SLL, frames::LINUX_SLL2] {
        let path = file(directory.path(), link_type);
        for expression in [
            "ip",
            "not ip6",
            "tcp port 80 or 443",
            "udp and not port 53",
            "host 10.0.0.1 and (icmp or udp)",
            "net 192.168.0.0/16 or ip6 net 2001:db8::/32",
            "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0",
            "len > 200 and ip[6:2] & 0x1fff = 0",
        ] {
            let Some(expected) = tcpdump(expression, &path) else {
                return testing::say_skipped("counts_are_those_of_tcpdump", "no tcpdump");
            };
            assert!(expected > 0, "{expression} on {link_type}");
            assert_eq!(matched(expression, &path), expected, "{expression} on {link_type}");
        }
    }
}

#[test]
fn links_of_one_file_have_a_filter_each() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("both.pcapng").display().to_string();
    let mut writer = PcapngWriter::new(File::create(&path).unwrap(), &Section::default()).unwrap();
    let mut expected = 0;
    for link_type in [frames::ETHERNET, frames::RAW] {
        let interface = Interface::new(LinkType(link_type), 262_144);
        let interface = writer.add_interface(&interface).unwrap();
        for frame in corpus(link_type) {
            let record = Record {
                interface,
                original_length: frame.wire_bytes,
                ..Record::new(1, &frame.data)
            };
            writer.write_record(&record).unwrap();
        }
        expected += matched("tcp port 80", &file(directory.path(), link_type));
    }
    writer.finish().unwrap();
    assert_eq!(matched("tcp port 80", &path), expected);
    let run = ["filter", "tcp port 80", "--read", &path, "--explain", "--json"];
    let result = Run::of(&run).expect(0).result();
    let links: Vec<&str> =
        result["filters"].as_array().unwrap().iter().filter_map(|it| it["link"].as_str()).collect();
    assert_eq!(links, ["Ethernet", "raw IP"]);
}

#[test]
fn what_is_refused_is_pointed_at() {
    let (_directory, path) = capture(10, &[]);
    let run = Run::of(&["filter", "host 10.0.0.1 and port 65536", "--read", &path]).expect(2);
    let lines: Vec<&str> = run.stderr.lines().collect();
    assert_eq!(lines.len(), 1, "{run:?}");
    assert!(lines[0].starts_with("linerate: filter, character 24: "), "{run:?}");
    assert_eq!(run.stdout, b"");
    let run =
        Run::of(&["filter", "ether host 1:2:3:4:5:6", "--explain", "--link", "raw", "--json"]);
    let last = run.expect(2).last();
    assert_eq!((&last["kind"], &last["exit_code"]), (&"error".into(), &2.into()), "{last}");
    assert!(last["message"].as_str().unwrap().contains("raw IP"), "{last}");
    Run::of(&["filter", "ip", "--read", &path, "--link", "raw"]).expect(2);
}

#[test]
fn packets_of_an_unknown_link_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("wifi.pcap").display().to_string();
    let precision = PcapPrecision::Microseconds;
    let sink = File::create(&path).unwrap();
    let mut writer = PcapWriter::new(sink, LinkType::IEEE802_11, 100, precision).unwrap();
    writer.flush().unwrap();
    assert_eq!(matched("ip", &path), 0);
    writer.write_record(&Record::new(1, &[0; 40])).unwrap();
    writer.finish().unwrap();
    let run = Run::of(&["filter", "ip", "--read", &path]).expect(2);
    assert!(run.stderr.contains("packets of IEEE802_11: filters know Ethernet"), "{run:?}");
}

#[test]
fn a_damaged_capture_is_counted_as_far_as_it_goes() {
    let (directory, path) = capture(100, &[]);
    let whole = std::fs::read(&path).unwrap();
    let cut = directory.path().join("cut.pcapng").display().to_string();
    std::fs::write(&cut, &whole[..whole.len() - 30]).unwrap();
    let result = Run::of(&["filter", "udp", "--read", &cut, "--json"]).expect(6).result();
    assert_eq!((number(&result, "matched_packets"), number(&result, "read_packets")), (99, 99));
    assert!(result["error"].as_str().unwrap().contains("cut short"), "{result}");
    // Nobody writes to this pipe: it is refused, not waited for.
    let pipe = directory.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let run = Run::of(&["filter", "udp", "--read", &pipe.display().to_string()]).expect(6);
    assert!(run.stderr.contains("is a pipe or a device"), "{run:?}");
}

#[test]
fn an_explanation_is_tests_and_a_program() {
    let explain =
        |more: &[&str]| Run::of(&[&["filter", "--explain", "ip"], more].concat()).expect(0);
    let text = String::from_utf8(explain(&[]).stdout).unwrap();
    let (classic, extended) = text.split_once("eBPF for XDP, ").unwrap();
    assert_eq!(
        classic,
        "on Ethernet:\n1: half[12] = 0x800; yes: accept, no: reject\n\
         classic BPF, 4 instructions:\n(000) ldh      [12]\n\
         (001) jeq      #0x800           jt 2\tjf 3\n(002) ret      #262144\n(003) ret      #0\n"
    );
    let result = explain(&["--json"]).result();
    let listing: Vec<&str> = result["filters"][0]["ebpf"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|it| it.as_str())
        .collect();
    assert_eq!(listing, extended.lines().skip(1).collect::<Vec<_>>());
    assert!(listing.contains(&"   6: (69) r0 = *(u16 *)(r7 +12)"), "{extended}");
    let result = explain(&["--link", "cooked2", "--json"]).result();
    let filter = &result["filters"][0];
    assert_eq!(filter["ebpf"], serde_json::Value::Null);
    assert_eq!(filter["tests"][0], "1: half[0] = 0x800; yes: accept, no: reject");
    assert_eq!(filter["program"][1], serde_json::json!([0x15, 0, 1, 0x800]));
    for link in ["ethernet", "raw", "cooked", "cooked2"] {
        explain(&["--link", link]);
    }
}

#[test]
fn the_kernel_is_asked_whether_it_takes_a_program() {
    let place = |expression: &str, port: &str| {
        let run = Run::of(&["filter", "--explain", expression, "--port", port, "--json"]);
        run.expect(0).result()["place"].clone()
    };
    let taken = place("tcp port 80", "packet:lo");
    assert_eq!((&taken["where"], &taken["reason"]), (&"kernel".into(), &().into()), "{taken}");
    let hosts: Vec<String> =
        (0..3_000).map(|n| format!("host 10.0.{}.{}", n / 250, n % 250)).collect();
    let long = place(&hosts.join(" or "), "lo");
    assert_eq!(long["where"], "user", "{long}");
    assert!(long["reason"].as_str().unwrap().contains("instructions"), "{long}");
    assert_eq!(place("ip", "null:")["where"], "user");
    Run::of(&["filter", "--explain", "ip", "--port", "nosuch0"]).expect(4);
    Run::of(&["filter", "--explain", "ip", "--port", "pcap:x.pcap"]).expect(2);
    Run::of(&["filter", "ip", "--port", "lo"]).expect(2);
}
