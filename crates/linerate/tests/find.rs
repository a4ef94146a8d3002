//! `find` as it is watched, interrupted and stopped, by the output that it waits for.
#![allow(clippy::unwrap_used, clippy::panic)]

// What the other test binaries need of it.
#[allow(dead_code)]
mod program;

use std::io::Read;
use std::process::Child;
use std::time::Duration;

use program::{Run, command, number};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const PACKETS: u64 = 20_000;

/// A capture of 24 MB, and a store of the same.
fn recorded() -> (tempfile::TempDir, [String; 2]) {
    let directory = tempfile::tempdir().unwrap();
    let [path, store] =
        ["frames.pcapng", "store"].map(|name| directory.path().join(name).display().to_string());
    let port = format!("pcap:{path}");
    let count = PACKETS.to_string();
    Run::of(&["generate", &port, "--count", &count, "--size", "1200"]).expect(0);
    Run::of(&["record", &port, "--to", &store]).expect(0);
    (directory, [path, store])
}

/// A search that has begun to answer into a pipe and waits for it to be read: many MiB are to come.
fn waiting(path: &str) -> (Child, Vec<u8>) {
    let mut child = command(&["find", path, "--write", "-", "--json"]).spawn().unwrap();
    // More than the header, which comes at once.
    let mut first = vec![0; 100_000];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    (child, first)
}

/// Reads all that is left of the answer, then the result.
fn read(mut child: Child, mut answer: Vec<u8>) -> (Vec<u8>, Option<i32>, Vec<Value>) {
    child.stdout.take().unwrap().read_to_end(&mut answer).unwrap();
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    let objects = stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (answer, child.wait().unwrap().code(), objects)
}

fn packets_in(answer: Vec<u8>) -> u64 {
    let mut reader = store::CaptureReader::new(std::io::Cursor::new(answer), "answer").unwrap();
    let mut packets = 0;
    while reader.next_record().unwrap().is_some() {
        packets += 1;
    }
    packets
}

#[test]
fn one_signal_ends_a_search_with_a_whole_file_and_a_partial_answer() {
    let (_directory, sources) = recorded();
    for (source, signal) in sources.iter().zip([Signal::INT, Signal::TERM]) {
        let (child, answer) = waiting(source);
        kill_process(Pid::from_child(&child), signal).unwrap();
        let (answer, code, objects) = read(child, answer);
        let result = objects.last().unwrap();
        assert_eq!((code, &result["kind"]), (Some(0), &"result".into()), "{result}");
        assert_eq!((&result["interrupted"], &result["complete"]), (&true.into(), &false.into()));
        let found = number(result, "found_packets");
        assert!(found > 0 && found < PACKETS, "{result}");
        assert_eq!(packets_in(answer), found);
        let account = &result["ledger"]["accounts"][0];
        let waiting = number(account, "left.interrupted_packets");
        assert_eq!(number(account, "entered.read_packets"), found + waiting, "{result}");
        assert_eq!(result["ledger"]["balanced"], true);
    }
}

#[test]
fn two_signals_end_a_search_at_once() {
    let (_directory, [_, store]) = recorded();
    let (mut child, _) = waiting(&store);
    // Two different ones are not taken for one, however soon the second comes.
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn a_search_that_takes_its_time_shows_how_far_it_is() {
    let (_directory, sources) = recorded();
    for source in &sources {
        let (child, answer) = waiting(source);
        std::thread::sleep(Duration::from_millis(1_100));
        let (answer, code, objects) = read(child, answer);
        let kinds: Vec<&str> = objects.iter().filter_map(|it| it["kind"].as_str()).collect();
        assert_eq!((code, &kinds[..]), (Some(0), &["progress", "result"][..]));
        let [progress, result] = [&objects[0], &objects[1]];
        let found = number(progress, "found_packets");
        assert!(found > 0 && found < PACKETS, "{progress}");
        assert!(number(progress, "packets") >= found, "{progress}");
        assert!(number(progress, "bytes") > found * 1_200, "{progress}");
        assert_eq!((result["interrupted"].as_bool(), packets_in(answer)), (Some(false), PACKETS));
    }
}

#[test]
fn packets_cut_before_their_ports_are_undecided() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    // With a tag the ports lie from byte 38 to 42, without from byte 34 to 38.
    for (name, tag, undecided) in [("tagged", &["--vlan", "7"][..], 1_000), ("plain", &[], 0)] {
        let (path, store) = (at(&format!("{name}.pcapng")), at(name));
        let port = format!("pcap:{path}");
        Run::of(&[&["generate", &port, "--count", "1000", "--size", "100"], tag].concat())
            .expect(0);
        let record = ["record", &port, "--to", &store, "--snap", "40", "--json"];
        let recorded = Run::of(&record).expect(0).result();
        assert_eq!(number(&recorded, "recorded_bytes"), 40_000, "{recorded}");
        let find = |more: &[&str]| {
            Run::of(&[&["find", &store, "--json"], more].concat()).expect(0).result()
        };
        let result = find(&["--port", "9"]);
        assert_eq!(number(&result, "found_packets"), 1_000 - undecided, "{result}");
        assert_eq!(number(&result, "undecided_packets"), undecided, "{result}");
        assert_eq!(result["complete"], undecided == 0, "{result}");
        let account = &result["ledger"]["accounts"][0];
        assert_eq!(number(account, "left.undecided_packets"), undecided, "{result}");
        assert_eq!(number(account, "left.unmatched_packets"), 0, "{result}");
        assert_eq!(result["ledger"]["balanced"], true);
        let hosts = find(&["--host", "198.18.0.1"]);
        assert_eq!((number(&hosts, "found_packets"), &hosts["complete"]), (1_000, &true.into()));
        let run = Run::of(&["find", &store, "--port", "9", "--count"]).expect(0);
        let words = "the answer is incomplete: 1,000 packets undecided: cut";
        assert_eq!(run.stderr.contains(words), undecided > 0, "{run:?}");
        let replay =
            ["replay", &store, "--onto", "null:", "--rate", "max", "--port", "9", "--json"];
        let replayed = Run::of(&replay).expect(0).result();
        assert_eq!(number(&replayed, "undecided_packets"), undecided, "{replayed}");
    }
    let port = format!("pcap:{}", at("plain.pcapng"));
    let received = Run::of(&["receive", &port, "--snap", "60", "--json"]).expect(0).result();
    assert_eq!(number(&received, "received_bytes"), 60_000, "{received}");
    assert_eq!(number(&received, "corrupt_packets"), 0, "{received}");
    assert_eq!(received["ledger"]["balanced"], true);
    let run = Run::of(&["receive", &port, "--snap", "0"]).expect(2);
    assert!(run.stderr.contains("--snap"), "{run:?}");
}
