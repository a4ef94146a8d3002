//! `--filter` of `receive` and `record` on files: counts are exact and tcpdump's, what is refused is
//! refused in one line and before anything is written.
#![allow(clippy::unwrap_used, clippy::panic)]

// What the other test binaries need of it.
#[allow(dead_code)]
mod program;

use std::fs::File;
use std::process::{Command, Stdio};

use program::{Run, capture, number, packets_in_segments};
use serde_json::Value;
use store::{LinkType, PcapPrecision, PcapWriter, Record};

/// What became of the frames that a port gave: delivered, filtered, behind the count.
#[track_caller]
fn places(result: &Value) -> (u64, u64, u64) {
    let account = &result["ledger"]["accounts"][0];
    let left = &account["left"];
    assert_eq!(result["ledger"]["balanced"], true, "{result}");
    let filtered = number(left, "filtered_packets");
    assert_eq!(number(result, "filtered_packets"), filtered, "{result}");
    let beyond = left["beyond_count_packets"].as_u64().unwrap_or(0);
    (number(left, "delivered_packets"), filtered, beyond)
}

/// How many packets tcpdump counts; `None` where it is missing.
fn tcpdump(expression: &str, path: &str) -> Option<u64> {
    let output = Command::new("tcpdump")
        // As standard input, whoever tcpdump becomes may read it.
        .args(["-r", "-", "--count", expression])
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
fn what_matches_is_received_and_recorded() {
    let (directory, path) = capture(10_000, &["--src", "10.0.0.0/24", "--dport", "9-18"]);
    let port = format!("pcap:{path}");
    for (number_of_run, (expression, expected)) in [
        ("udp dst port 10", 1_000),
        ("dst port 10 or 11 or 300", 2_000),
        ("src net 10.0.0.0/24", 10_000),
        ("not udp", 0),
        ("", 10_000),
    ]
    .into_iter()
    .enumerate()
    {
        let receive = ["receive", &port, "--filter", expression, "--json"];
        let received = Run::of(&receive).expect(0).result();
        assert_eq!(number(&received, "received_packets"), expected, "{expression}");
        assert_eq!(places(&received), (expected, 10_000 - expected, 0), "{expression}");
        let store = directory.path().join(number_of_run.to_string()).display().to_string();
        let record = ["record", &port, "--to", &store, "--filter", expression, "--json"];
        let recorded = Run::of(&record).expect(0).result();
        assert_eq!(number(&recorded, "recorded_packets"), expected, "{expression}");
        assert_eq!(places(&recorded), (expected, 10_000 - expected, 0), "{expression}");
        assert_eq!(packets_in_segments(&recorded), expected, "{expression}");
        match tcpdump(expression, &path) {
            Some(count) => assert_eq!(count, expected, "{expression}"),
            None => testing::say_skipped("what_matches_is_received_and_recorded", "no tcpdump"),
        }
    }
    for verb in [&["receive", &port][..], &["record", &port, "--to", "all"]] {
        let run = command_in(directory.path(), &[verb, &["--json"]].concat()).expect(0);
        assert_eq!(places(&run.result()), (10_000, 0, 0));
    }
}

fn command_in(directory: &std::path::Path, arguments: &[&str]) -> Run {
    program::command(arguments).current_dir(directory).output().map(Run::from).unwrap()
}

#[test]
fn a_segment_says_how_it_was_filtered() {
    let (directory, path) = capture(10, &[]);
    let store = directory.path().join("store").display().to_string();
    let port = format!("pcap:{path}");
    let record = ["record", &port, "--to", &store, "--filter", "udp and len > 20", "--json"];
    let recorded = Run::of(&record).expect(0).result();
    let segment = recorded["segments"][0]["path"].as_str().unwrap();
    let mut reader = store::CaptureReader::open(segment).unwrap();
    assert!(reader.next_record().unwrap().is_some());
    assert_eq!(reader.interfaces()[0].filter.as_deref(), Some("udp and len > 20"));
    // An expression of any length can be recorded with.
    let long = vec!["udp"; 10_000].join(" or ");
    let store = directory.path().join("long").display().to_string();
    let record = ["record", &port, "--to", &store, "--filter", &long, "--json"];
    let result = Run::of(&record).expect(0).result();
    assert_eq!(number(&result, "recorded_packets"), 10);
}

#[test]
fn a_count_is_one_of_matches_and_frames_are_cut_behind_the_filter() {
    let (_directory, path) = capture(10_000, &["--dport", "9-18", "--size", "200"]);
    let port = format!("pcap:{path}");
    let filter = ["receive", &port, "--filter", "udp dst port 10", "--json"];
    let result = Run::of(&[&filter[..], &["--count", "70"]].concat()).expect(0).result();
    let (delivered, filtered, beyond) = places(&result);
    assert_eq!(delivered, 70);
    // The 70th is frame 692 of a file that is read in batches.
    assert!(filtered >= 691 - 69 && filtered + beyond < 800, "{result}");
    // Byte 36 and 37, the port, are behind the cut.
    let result = Run::of(&[&filter[..], &["--snap", "20"]].concat()).expect(0).result();
    assert_eq!(places(&result), (1_000, 9_000, 0));
    let account = &result["ledger"]["accounts"][0];
    assert_eq!(number(account, "left.delivered_bytes"), 20_000, "{result}");
    assert_eq!(number(&result, "cut_packets"), 1_000);
}

#[test]
fn what_makes_no_sense_is_refused_in_a_line() {
    let (directory, path) = capture(10, &[]);
    let wifi = directory.path().join("wifi.pcap").display().to_string();
    let sink = File::create(&wifi).unwrap();
    let precision = PcapPrecision::Microseconds;
    let mut writer = PcapWriter::new(sink, LinkType::IEEE802_11, 100, precision).unwrap();
    writer.write_record(&Record::new(1, &[0; 40])).unwrap();
    writer.finish().unwrap();
    let store = directory.path().join("store");
    let to = store.display().to_string();
    for (port, expression, said) in [
        (&path, "udp dst prot 10", "filter, character 14: "),
        (&path, "inbound", "does not say which way its frames went"),
        (&path, "udp or ifindex 3", "does not say by which interface"),
        (&wifi, "udp", "are IEEE802_11: filters know Ethernet"),
    ] {
        let port = format!("pcap:{port}");
        for verb in [&["receive", &port][..], &["record", &port, "--to", &to]] {
            let run = Run::of(&[verb, &["--filter", expression]].concat()).expect(2);
            assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
            assert!(run.stderr.contains(said), "{run:?}");
            let run = Run::of(&[verb, &["--filter", expression, "--json"]].concat()).expect(2);
            assert_eq!(
                (&run.last()["kind"], &run.last()["exit_code"]),
                (&"error".into(), &2.into())
            );
        }
    }
    assert!(!store.exists());
    // Before the port is looked for: this one is not there.
    Run::of(&["receive", "packet:nosuch0", "--filter", "vpi 3"]).expect(2);
    Run::of(&["receive", "packet:nosuch0", "--filter", "udp"]).expect(4);
}
