//! What programs that listen are told: the objects of `--json` that are there whatever happens.
#![allow(clippy::unwrap_used, clippy::panic)]

// What the other test binaries need of it.
#[allow(dead_code)]
mod program;

use program::{Run, number};
use serde_json::Value;

/// Every object of a run says what it is.
fn kinds(text: &str) -> Vec<String> {
    let kind = |line: &str| {
        let value: Value = serde_json::from_str(line).unwrap();
        assert_eq!(value["schema"], 1, "{line}");
        value["kind"].as_str().unwrap().to_owned()
    };
    text.lines().map(kind).collect()
}

#[test]
fn a_run_that_fails_before_its_result_ends_with_an_error() {
    for (code, arguments, expected) in [
        (4, &["generate", "nosuch0", "--count", "1"][..], "nosuch0"),
        (4, &["receive", "packet:nosuch0"], "nosuch0"),
        (4, &["doctor", "nosuch0"], "nosuch0"),
        (5, &["record", "null:", "--to", "/proc/nosuch"], "/proc/nosuch"),
        (6, &["find", "/nosuch/store"], "opening /nosuch/store"),
        (6, &["replay", "/nosuch", "--onto", "null:"], "opening /nosuch"),
        (2, &["find", ".", "--from", "now", "--to", "-5m"], "is not before"),
        (2, &["demo", "--size", "20"], "20"),
        (2, &["doctor", "null:"], "is not an interface"),
        (2, &["generate", "xdq:eth0"], "unknown kind"),
        (2, &["receive", "null:", "--nosuch"], "unexpected argument '--nosuch' found"),
        (2, &["filter", "ip and"], "required arguments were not provided"),
        (2, &["filter", "--explain", "ip and"], "filter, character 7"),
        (2, &["filter", "--explain", "ip and arp"], "no packet can match"),
        (6, &["filter", "ip", "--read", "/nosuch"], "opening /nosuch"),
        (2, &["find"], "required arguments were not provided"),
    ] {
        let run = Run::of(&[arguments, &["--json"]].concat()).expect(code);
        let last = run.last();
        assert_eq!((&last["kind"], &last["exit_code"]), (&"error".into(), &code.into()), "{last}");
        let message = last["message"].as_str().unwrap();
        assert!(message.contains(expected), "{arguments:?}: {message}");
        assert!(run.stderr.contains(message), "{arguments:?}: {run:?}");
        let kinds = kinds(&String::from_utf8(run.stdout).unwrap());
        assert_eq!(kinds.iter().filter(|kind| *kind == "error").count(), 1, "{kinds:?}");
        // Without it, nothing but words.
        let run = Run::of(arguments).expect(code);
        assert!(!String::from_utf8_lossy(&run.stdout).contains("\"error\""), "{run:?}");
    }
}

#[test]
fn beside_packets_the_error_goes_to_standard_error() {
    let run = Run::of(&["find", "/nosuch/store", "--write", "-", "--json"]).expect(6);
    assert_eq!(run.stdout, b"");
    let last: Value = serde_json::from_str(run.stderr.lines().last().unwrap()).unwrap();
    assert_eq!((&last["kind"], &last["exit_code"]), (&"error".into(), &6.into()), "{run:?}");
}

#[test]
fn a_run_that_came_to_its_result_ends_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cut.pcapng");
    let port = format!("pcap:{}", path.display());
    Run::of(&["generate", &port, "--count", "100"]).expect(0);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 30]).unwrap();
    let run = Run::of(&["receive", &port, "--json"]).expect(6);
    assert_eq!(number(&run.result(), "received_packets"), 99);
    assert!(run.result()["error"].as_str().unwrap().contains("cut short"), "{run:?}");
    assert_eq!(kinds(&String::from_utf8(run.stdout).unwrap()), ["start", "stream", "result"]);
    // What asks for help is no failure.
    let run = Run::of(&["find", "--help", "--json"]).expect(0);
    assert!(String::from_utf8_lossy(&run.stdout).contains("Usage"), "{run:?}");
}

/// A capture of `count` frames in a directory of its own.
fn capture(count: u64) -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("frames.pcapng").display().to_string();
    let port = format!("pcap:{path}");
    Run::of(&["generate", &port, "--count", &count.to_string()]).expect(0);
    (directory, path)
}

#[test]
fn packets_that_wait_for_their_turn_are_not_dropped() {
    let (_directory, path) = capture(60);
    let replay = ["replay", &path, "--onto", "null:", "--rate", "40pps", "--json"];
    let run = Run::of(&replay).expect(0);
    let text = String::from_utf8_lossy(&run.stdout).into_owned();
    let objects = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let progress: Vec<Value> = objects.filter(|object| object["kind"] == "progress").collect();
    assert!(!progress.is_empty(), "{text}");
    for object in &progress {
        assert!(number(object, "packets") < 60, "{object}");
        assert_eq!(number(object, "dropped_packets"), 0, "{object}");
    }
    assert_eq!(number(&run.result(), "replayed_packets"), 60);
}

#[test]
fn a_replay_of_a_count_finds_as_many_and_loses_none() {
    let (_directory, path) = capture(1_000);
    for (count, beyond) in [(0, None), (1, Some(63)), (100, Some(28)), (128, None), (1_000, None)] {
        let text = count.to_string();
        let replay = ["replay", &path, "--onto", "null:", "--rate", "max", "--json"];
        let result = Run::of(&[&replay[..], &["--count", &text]].concat()).expect(0).result();
        assert_eq!(number(&result, "replayed_packets"), count, "{result}");
        assert_eq!(number(&result, "found_packets"), count, "{result}");
        let ledger = &result["ledger"];
        assert_eq!((&ledger["balanced"], number(ledger, "lost_packets")), (&true.into(), 0));
        let account = &ledger["accounts"][0];
        assert_eq!(account["left"]["beyond_count_packets"].as_u64(), beyond, "{result}");
        assert_eq!(number(account, "entered.read_packets"), count + beyond.unwrap_or(0));
    }
}

#[test]
fn duplicates_of_a_faulty_port_have_their_place_in_the_ledger() {
    let (directory, path) = capture(10_000);
    let port = format!("pcap:{path}?duplicate=0.1&drop=0.05&seed=7");
    let store = directory.path().join("store").display().to_string();
    let received = Run::of(&["receive", &port, "--json"]).expect(0).result();
    let recorded = Run::of(&["record", &port, "--to", &store, "--json"]).expect(0).result();
    for result in [&received, &recorded] {
        let account = &result["ledger"]["accounts"][0];
        assert_eq!(number(account, "entered.wire_packets"), 10_000, "{result}");
        let added = number(account, "entered.added_packets");
        assert!((800..1_200).contains(&added), "{result}");
        let left = number(account, "left.delivered_packets");
        assert_eq!(10_000 + added, left + number(account, "left.injected_packets"), "{result}");
        assert_eq!(result["ledger"]["balanced"], true, "{result}");
    }
    let added = number(&received["ledger"]["accounts"][0], "entered.added_packets");
    assert_eq!(number(&received, "duplicate_packets"), added);
    assert_eq!(number(&recorded, "received_packets"), 10_000);
    // The recording's own account balances, too.
    let found = Run::of(&["find", &store, "--json"]).expect(0).result();
    assert_eq!(found["found_packets"], recorded["recorded_packets"]);
}
