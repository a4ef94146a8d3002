//! The program as scripts call it: exit codes, messages, JSON, all on files, without any rights.
#![allow(clippy::unwrap_used, clippy::panic)]

mod program;

use std::path::Path;

use program::{Run, capture, number};
use serde_json::Value;

#[test]
fn generate_record_find_replay_agree() {
    let (directory, path) = capture(10_000, &["--src", "10.0.0.0/24", "--dport", "9-18"]);
    let port = format!("pcap:{path}");
    let store = directory.path().join("store").display().to_string();
    let recorded = Run::of(&["record", &port, "--to", &store, "--json"]).expect(0).result();
    assert_eq!(number(&recorded, "recorded_packets"), 10_000);
    assert_eq!(recorded["ledger"]["balanced"], true);

    // 254 hosts in turn, 10 ports in turn: host 7 is frame 6, 260, 514, … and port 9 is every tenth.
    let found = Run::of(&["find", &store, "--host", "10.0.0.7", "--json"]).expect(0).result();
    let expected = (0..10_000).filter(|frame| frame % 254 == 6).count() as u64;
    assert_eq!(number(&found, "found_packets"), expected);
    let both = Run::of(&[
        "find", &store, "--host", "10.0.0.7", "--port", "15", "--proto", "udp", "--json",
    ])
    .expect(0)
    .result();
    let expected = (0..10_000).filter(|frame| frame % 254 == 6 && frame % 10 == 6).count() as u64;
    assert_eq!(number(&both, "found_packets"), expected);
    assert_eq!(both["complete"], true);
    let account = &both["ledger"]["accounts"][0];
    assert_eq!(both["ledger"]["balanced"], true, "{both}");
    assert_eq!(number(account, "entered.read_packets"), 10_000);
    assert_eq!(number(account, "left.found_packets"), expected);
    assert_eq!(number(account, "left.unmatched_packets"), 10_000 - expected);
    assert!(number(&both, "elapsed_ns") > 0, "{both}");
    let text = Run::of(&["find", &store]).expect(0);
    assert!(String::from_utf8_lossy(&text.stdout).contains("ledger balanced"), "{text:?}");

    let replayed = Run::of(&["replay", &store, "--onto", "null:", "--rate", "max", "--json"])
        .expect(0)
        .result();
    assert_eq!(number(&replayed, "replayed_packets"), 10_000);
    assert_eq!(replayed["ledger"]["balanced"], true);
}

#[test]
fn a_count_is_exact() {
    let (directory, path) = capture(1_000, &["--size", "64-1514"]);
    let port = format!("pcap:{path}");
    let faulty = format!("{port}?delay=0.1&duplicate=0.1&seed=5");
    // A file is read in batches of 64: so many frames more than wanted leave it.
    for (count, beyond) in [(0, None), (1, Some(63)), (100, Some(28)), (128, None), (1_000, None)] {
        let text = count.to_string();
        let received = Run::of(&["receive", &port, "--count", &text, "--json"]).expect(0).result();
        assert_eq!(number(&received, "received_packets"), count);
        assert_eq!(number(&received, "lost_packets"), 0);
        let store = directory.path().join(&text).display().to_string();
        let record = ["record", &port, "--to", &store, "--count", &text, "--json"];
        let recorded = Run::of(&record).expect(0).result();
        assert_eq!(number(&recorded, "recorded_packets"), count);
        assert_eq!(program::packets_in_segments(&recorded), count);
        for result in [&received, &recorded] {
            let account = &result["ledger"]["accounts"][0];
            assert_eq!(result["ledger"]["balanced"], true, "{result}");
            assert_eq!(account["left"]["beyond_count_packets"].as_u64(), beyond, "{result}");
        }
        let received = Run::of(&["receive", &faulty, "--count", &text, "--json"]).expect(0);
        assert_eq!(number(&received.result(), "received_packets"), count);
        assert_eq!(received.result()["ledger"]["balanced"], true, "{received:?}");
    }
}

#[test]
fn find_streams_a_capture_to_standard_output() {
    let (directory, path) = capture(500, &[]);
    let run = Run::of(&["find", &path, "--write", "-"]).expect(0);
    let copy = directory.path().join("copy.pcapng");
    std::fs::write(&copy, &run.stdout).unwrap();
    let copy = copy.display().to_string();
    let found = Run::of(&["find", &copy, "--count", "--json"]).expect(0).result();
    assert_eq!(number(&found, "found_packets"), 500);
    assert!(run.stderr.contains("500 of 500 packets found"), "{}", run.stderr);
}

/// Runs `find` with its standard output to `output`.
fn find_to(arguments: &[&str], output: impl Into<std::process::Stdio>) -> Run {
    Run::from(program::command(arguments).stdout(output).output().unwrap())
}

#[test]
fn find_claims_completeness_only_where_it_is() {
    let complete = "nothing is known to be missing";
    let (directory, path) = capture(20_000, &[]);
    assert!(Run::of(&["find", &path]).expect(0).stderr.contains(complete));
    let whole = std::fs::read(&path).unwrap();
    let cut = write(directory.path(), "cut.pcapng", &whole[..whole.len() - 30]);
    let mut bytes = whole.clone();
    bytes[1_000_000..1_000_200].fill(0xff);
    let corrupt = write(directory.path(), "corrupt.pcapng", &bytes);
    for path in [&cut, &corrupt] {
        let run = Run::of(&["find", path]).expect(6);
        assert!(run.stderr.contains("incomplete: not everything could be read"), "{run:?}");
        assert!(!run.stderr.contains(complete), "{run:?}");
    }
    let run = Run::of(&["find", &path, "--write", "/dev/full"]).expect(5);
    assert!(run.stderr.contains("incomplete: the search ended"), "{run:?}");
    assert!(!run.stderr.contains(complete), "{run:?}");

    let closed = || std::io::pipe().unwrap().1;
    let run = find_to(&["find", &path, "--write", "-"], closed()).expect(0);
    assert!(run.stderr.contains("the reader of the output closed it"), "{run:?}");
    assert!(!run.stderr.contains(complete), "{run:?}");
    let run = find_to(&["find", &path, "--write", "-", "--json"], closed()).expect(0);
    assert!(run.stderr.contains("\"complete\":false"), "{run:?}");
    assert!(run.stderr.contains("\"output_closed\":true"), "{run:?}");
}

#[test]
fn a_damaged_chunk_is_missing_by_number() {
    let (directory, path) = capture(5_000, &[]);
    let store = directory.path().join("store").display().to_string();
    let recorded = Run::of(&["record", &format!("pcap:{path}"), "--to", &store, "--json"]);
    let recorded = recorded.expect(0).result();
    let segment = recorded["segments"][0]["path"].as_str().unwrap();
    let mut bytes = std::fs::read(segment).unwrap();
    // The header chunk may be 1 MiB long: from the end this is among the packets.
    let at = bytes.len() - 200_000;
    bytes[at..at + 3].iter_mut().for_each(|byte| *byte ^= 0xff);
    std::fs::write(segment, bytes).unwrap();
    let result = Run::of(&["find", &store, "--json"]).expect(6).result();
    let (found, missing) =
        (number(&result, "found_packets"), number(&result, "unreadable_packets"));
    assert_eq!((found + missing, result["complete"].as_bool()), (5_000, Some(false)), "{result}");
    let account = &result["ledger"]["accounts"][0];
    assert_eq!(number(account, "entered.read_packets"), 5_000, "{result}");
    assert_eq!(number(account, "left.unreadable_packets"), missing, "{result}");
    assert_eq!(result["ledger"]["balanced"], true, "{result}");
    let run = Run::of(&["find", &store]).expect(6);
    assert!(!run.stderr.contains("nothing is known"), "{run:?}");
}

/// A named pipe that nobody writes: opening it waits for ever.
fn pipe(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

#[test]
fn a_pipe_with_the_name_of_a_segment_is_passed_over() {
    let (directory, path) = capture(100, &[]);
    let port = format!("pcap:{path}");
    let store = directory.path().join("store");
    let name = store.display().to_string();
    std::fs::create_dir(&store).unwrap();
    pipe(&store.join("s00-000001.open.pcapng"));
    let run = Run::of(&["find", &name]).expect(6);
    assert!(run.stderr.contains("no recording in") && run.stderr.contains("s00-000001"), "{run:?}");
    let recorded = Run::of(&["record", &port, "--to", &name, "--json"]).expect(0).result();
    let segment = recorded["segments"][0]["path"].as_str().unwrap();
    pipe(&store.join("20261201T031522.123456789Z-s00-000009.pcapng"));
    pipe(&store.join("20261201T031522.123456789Z-s00-000002.pcapng"));
    let index = segment.replace(".pcapng", ".time-index");
    std::fs::remove_file(&index).unwrap();
    pipe(Path::new(&index));
    let run = Run::of(&["find", &name, "--count"]).expect(0);
    assert_eq!(run.stdout, b"100\n");
    for name in ["s00-000001.open.pcapng has", "s00-000002.pcapng has", "s00-000009.pcapng has"] {
        assert!(run.stderr.contains(name), "{run:?}");
    }
    let run = Run::of(&["find", &index]).expect(6);
    assert!(run.stderr.contains("> FILE"), "{run:?}");
}

#[test]
fn a_replay_of_a_damaged_capture_says_so() {
    let (directory, path) = capture(100, &[]);
    let bytes = std::fs::read(&path).unwrap();
    let cut = directory.path().join("cut.pcapng").display().to_string();
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    let run = Run::of(&["replay", &cut, "--onto", "null:", "--rate", "max", "--json"]).expect(6);
    let result = run.result();
    assert_eq!(result["problems"].as_array().unwrap().len(), 1);
    assert!(result["problems"][0].as_str().unwrap().contains("is cut short"), "{result}");
    assert_eq!(result["ledger"]["balanced"], true);
    assert!((1..100).contains(&number(&result, "replayed_packets")));
}

#[test]
fn find_counts_on_standard_output() {
    let (_directory, path) = capture(1_234, &[]);
    let run = Run::of(&["find", &path, "--count"]).expect(0);
    assert_eq!(run.stdout, b"1234\n");
    assert!(run.stderr.contains("1,234 of 1,234"), "{run:?}");
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    find_to(&["find", &path, "--count"], full).expect(5);
}

#[test]
fn no_verb_writes_over_what_it_reads() {
    let (directory, path) = capture(50, &[]);
    let at = |name: &str| directory.path().join(name).display().to_string();
    std::os::unix::fs::symlink(&path, at("link.pcapng")).unwrap();
    std::fs::hard_link(&path, at("hard.pcapng")).unwrap();
    let store = at("store");
    let recorded = Run::of(&["record", &format!("pcap:{path}"), "--to", &store, "--json"]);
    let recorded = recorded.expect(0).result();
    let segment = recorded["segments"][0]["path"].as_str().unwrap();
    let before = [&path, segment].map(|file| std::fs::read(file).unwrap());
    for (source, target) in [
        (&path, path.clone()),
        (&path, at("./frames.pcapng")),
        (&path, at("link.pcapng")),
        (&path, at("hard.pcapng")),
        (&store, segment.to_owned()),
    ] {
        let run = Run::of(&["find", source, "--write", &target]).expect(2);
        assert!(run.stderr.contains("is the same file as"), "{}", run.stderr);
    }
    for (source, target) in [(&path, at("hard.pcapng")), (&store, segment.to_owned())] {
        let onto = format!("pcap:{target}");
        let run = Run::of(&["replay", source, "--onto", &onto, "--rate", "max"]).expect(2);
        assert!(run.stderr.contains("is the same file as"), "{}", run.stderr);
    }
    let appended = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    find_to(&["find", &path, "--write", "-"], appended).expect(2);
    assert!(before == [&path, segment].map(|file| std::fs::read(file).unwrap()));
    // An earlier answer is no input.
    for _ in 0..2 {
        Run::of(&["find", &store, "--write", &at("store/answer.pcapng")]).expect(0);
    }
}

/// A capture file is named by its path where recordings are read, and as a port where ports are.
#[test]
fn a_file_is_understood_in_either_spelling() {
    let (_directory, path) = capture(7, &[]);
    let run = Run::of(&["find", &format!("pcap:{path}"), "--count", "--json"]).expect(0).result();
    assert_eq!(number(&run, "found_packets"), 7, "{run}");
    let run = Run::of(&["receive", &path]).expect(2);
    assert!(run.stderr.contains(&format!("pcap:{path}")), "{}", run.stderr);
}

#[test]
fn the_receiver_reports_what_faults_did() {
    let (_directory, path) = capture(20_000, &[]);
    let port = format!("pcap:{path}?drop=0.01&seed=3");
    let result = Run::of(&["receive", &port, "--json"]).expect(0).result();
    let dropped = result["ledger"]["accounts"][0]["left"]["injected_packets"].as_u64().unwrap();
    assert!(dropped > 100);
    assert_eq!(number(&result, "lost_packets"), dropped);
    assert_eq!(number(&result, "received_packets"), 20_000 - dropped);
    let port = format!("pcap:{path}?corrupt=0.05&seed=4");
    let result = Run::of(&["receive", &port, "--json"]).expect(0).result();
    let corrupt = number(&result, "corrupt_packets");
    assert!((800..1_200).contains(&corrupt), "{corrupt}");
    assert_eq!(number(&result, "lost_packets"), corrupt);
}

#[test]
fn bad_ports_are_refused_by_name() {
    for (arguments, code, expected) in [
        (&["generate", "packet:nosuch0", "--count", "1"][..], 4, "nosuch0"),
        (&["receive", "nosuch0", "--duration", "1s"], 4, "nosuch0"),
        (&["generate", "xdq:eth0"], 2, "unknown kind"),
        (&["generate", "null:", "--rate", "10 apples"], 2, "200kpps"),
        (&["generate", "null:", "--size", "20", "--count", "1"], 2, "60"),
        (&["generate", "pcap:x.pcapng", "--count", "9", "--workers", "2"], 2, "one writer"),
        (&["generate", "null:", "--count", "many"], 2, "whole number"),
        (
            &["generate", "null:", "--src", "10.0.0.1", "--dst", "2001:2::1", "--count", "1"],
            2,
            "--src",
        ),
        (&["receive", "null:", "--duration", "5 moons"], 2, "10s"),
        (&["receive", "null:", "--duration", "0s"], 2, "a time is more than 0"),
        (&["receive", "lo", "--ring", "0"], 2, "at least 2MiB"),
        (&["receive", "lo", "--ring", "100TB"], 2, "--ring: 100 TB of memory are asked for"),
        (&["record", "null:", "--to", "/proc/x", "--pool", "1MiB"], 2, "at least 4MiB"),
        (&["record", "null:", "--to", "/proc/x", "--pool", "20TB"], 2, "--pool: 20.0 TB of memory"),
        (&["record", "null:", "--to", "/proc/x", "--segment", "0"], 2, "at least 4MiB"),
        (&["find", "/nosuch/store"], 6, "/nosuch/store"),
        (&["find", "/proc/self/fd"], 6, "no recording in /proc/self/fd"),
        (&["find", "/dev/null"], 6, "cannot be searched"),
        (&["find", ".", "--from", "2026-12-01T10:00:00"], 2, "zone"),
        (&["find", ".", "--from", "now", "--to", "-5m"], 2, "is not before"),
        (&["replay", ".", "--onto", "null:", "--speed", "-1"], 2, "--speed"),
        (&["record", "null:", "--to", "/proc/nosuch"], 5, "/proc/nosuch"),
        (&["find", ".", "--host", "300.1.1.1"], 2, "300.1.1.1"),
    ] {
        let run = Run::of(arguments).expect(code);
        assert!(run.stderr.contains(expected), "{arguments:?}: {}", run.stderr);
    }
}

fn write(directory: &Path, name: &str, bytes: &[u8]) -> String {
    let path = directory.join(name);
    std::fs::write(&path, bytes).unwrap();
    path.display().to_string()
}

#[test]
fn damaged_captures_give_what_is_good_and_say_the_rest() {
    let (directory, path) = capture(100, &[]);
    let whole = std::fs::read(&path).unwrap();
    let cut = write(directory.path(), "cut.pcapng", &whole[..whole.len() - 30]);
    let run = Run::of(&["find", &cut, "--json"]).expect(6);
    let result = run.result();
    assert_eq!(number(&result, "found_packets"), 99);
    assert_eq!(result["complete"], false);
    let port = format!("pcap:{cut}");
    let run = Run::of(&["receive", &port, "--json"]).expect(6);
    assert_eq!(number(&run.result(), "received_packets"), 99);
    assert!(run.stderr.contains("cut short"), "{}", run.stderr);

    for (name, bytes, expected) in [
        ("empty", &b""[..], "empty (0 bytes)"),
        ("text", b"not a capture at all, just words", "not a capture"),
        ("gzip", b"\x1f\x8b\x08\x00aaaaaaaaaaaaaaaaaaaaaa", "compressed"),
    ] {
        let path = write(directory.path(), name, bytes);
        let run = Run::of(&["receive", &format!("pcap:{path}")]).expect(6);
        assert!(run.stderr.contains(expected), "{name}: {}", run.stderr);
    }
}

#[test]
fn a_directory_is_recorded_to_by_one_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().display().to_string();
    let config =
        store::RecorderConfig::new(&store, store::Interface::new(store::LinkType::ETHERNET, 0));
    let (recorder, _) = store::Recorder::open(config).unwrap();
    let run = Run::of(&["record", "null:", "--to", &store]).expect(5);
    assert!(run.stderr.contains("another process"), "{}", run.stderr);
    drop(recorder);
    Run::of(&["record", "null:", "--to", &store]).expect(0);
}

#[test]
fn help_completions_and_manuals_are_there() {
    let help = Run::of(&["--help"]).expect(0);
    let text = String::from_utf8_lossy(&help.stdout);
    for word in
        ["generate", "receive", "record", "find", "replay", "demo", "doctor", "Exit codes", "130"]
    {
        assert!(text.contains(word), "{word}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = Run::of(&["completions", shell]).expect(0);
        assert!(String::from_utf8_lossy(&script.stdout).contains("linerate"));
    }
    let directory = tempfile::tempdir().unwrap();
    Run::of(&["man", &directory.path().display().to_string()]).expect(0);
    assert!(directory.path().join("linerate-record.1").exists());
    let json: Value = Run::of(&["receive", "null:", "--json"]).expect(0).result();
    assert_eq!(json["schema"], 1);
}

#[test]
fn no_message_says_its_cause_twice() {
    for arguments in [
        &["find", "/nosuch/store"][..],
        &["find", "/dev/null"],
        &["find", "Cargo.toml"],
        &["receive", "pcap:/nosuch"],
        &["receive", "pcap:/"],
        &["receive", "pcap:Cargo.toml"],
        &["receive", "nosuch0"],
        &["record", "nosuch0", "--to", "/proc/x"],
        &["record", "null:", "--to", "/proc/x"],
        &["record", "pcap:/nosuch", "--to", "/proc/x"],
        &["generate", "nosuch0"],
        &["generate", "pcap:/nosuch/x.pcapng", "--count", "1"],
        &["generate", "pcap:/dev/full", "--count", "100k"],
        &["generate", "memory:x"],
        &["replay", "/nosuch", "--onto", "null:"],
        &["replay", "/nosuch", "--onto", "nosuch0"],
        &["doctor", "nosuch0"],
        &["man", "/proc/x"],
    ] {
        let run = Run::of(arguments);
        assert_ne!(run.code, Some(0), "{arguments:?}");
        let message = run.stderr.trim();
        assert!(!message.is_empty(), "{arguments:?}");
        let mut parts: Vec<&str> = message.split(": ").flat_map(|it| it.split("; ")).collect();
        parts.retain(|part| part.contains(' '));
        let count = parts.len();
        parts.sort_unstable();
        parts.dedup();
        assert_eq!(parts.len(), count, "{arguments:?}: {message}");
        assert!(message.matches("(os error").count() <= 1, "{arguments:?}: {message}");
    }
}

#[test]
fn one_is_said_in_the_singular() {
    let (directory, path) = capture(1, &[]);
    let port = format!("pcap:{path}");
    let store = directory.path().join("store").display().to_string();
    let bytes = std::fs::read(&path).unwrap();
    let cut = write(directory.path(), "cut.pcapng", &[&bytes[..], &bytes[28..]].concat());
    let mut said = String::new();
    for arguments in [
        &["generate", "null:", "--count", "1"][..],
        &["receive", &port],
        &["record", &port, "--to", &store],
        &["find", &store],
        &["find", &cut],
        &["replay", &path, "--onto", "null:"],
    ] {
        let run = Run::of(arguments);
        said.push_str(&String::from_utf8_lossy(&run.stdout));
        said.push_str(&run.stderr);
    }
    assert!(said.contains("1 packet,") && said.contains("1 segment"), "{said}");
    for noun in ["packets", "segments", "frames", "stalls", "interruptions", "bytes"] {
        for wrong in [format!(" 1 {noun}"), format!("\n1 {noun}")] {
            assert!(!said.contains(&wrong), "«{wrong}» in {said}");
        }
    }
}

#[test]
fn a_port_has_one_name_in_a_run() {
    let (directory, path) = capture(10, &[]);
    let port = format!("pcap:{path}?drop=0.5&seed=3");
    let store = directory.path().join("store").display().to_string();
    let copy = format!("pcap:{}?drop=0.5", directory.path().join("copy.pcap").display());
    for (field, name, arguments) in [
        ("port", &copy, &["generate", &copy, "--count", "9"][..]),
        ("port", &port, &["receive", &port]),
        ("port", &port, &["record", &port, "--to", &store]),
        ("onto", &copy, &["replay", &path, "--onto", &copy]),
    ] {
        let run = Run::of(&[arguments, &["--json"]].concat()).expect(0);
        let text = String::from_utf8_lossy(&run.stdout).into_owned();
        let start: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        assert_eq!(start["kind"], "start");
        assert_eq!(start[field].as_str(), Some(name.as_str()), "{start}");
        assert_eq!(run.result()[field], start[field]);
        let run = Run::of(arguments);
        let text = String::from_utf8_lossy(&run.stdout).into_owned();
        assert!(text.starts_with(&format!("{name}: ")), "{text}");
    }
}

#[test]
fn nothing_received_is_said_in_words() {
    let run = Run::of(&["receive", "null:"]).expect(0);
    let text = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(text.contains("no packet arrived in ") && !text.contains("in 0 ns"), "{text}");
}

#[test]
fn rings_in_memory_are_refused() {
    for arguments in [&["generate", "memory:x", "--count", "3"][..], &["receive", "memory:x"]] {
        let run = Run::of(arguments).expect(2);
        assert!(run.stderr.contains("within one program"), "{}", run.stderr);
    }
}

#[test]
fn every_verb_has_examples_and_a_synopsis_with_values() {
    let verbs =
        ["generate", "receive", "record", "find", "replay", "demo", "doctor", "completions", "man"];
    let directory = tempfile::tempdir().unwrap();
    Run::of(&["man", &directory.path().display().to_string()]).expect(0);
    for verb in verbs {
        let help = Run::of(&[verb, "--help"]).expect(0);
        let text = String::from_utf8_lossy(&help.stdout).into_owned();
        let (_, examples) = text.split_once("Examples:").unwrap();
        assert!(examples.matches("linerate ").count() >= 2, "{verb}: {examples}");
        let page = directory.path().join(format!("linerate-{verb}.1"));
        let page = std::fs::read_to_string(page).unwrap().replace("\\-", "-");
        let (_, synopsis) = page.split_once(".SH SYNOPSIS").unwrap();
        let synopsis = synopsis.split(".SH").next().unwrap();
        for name in ["--count", "--duration", "--to", "--host"] {
            for (at, _) in synopsis.match_indices(&format!("{name} ")) {
                let value = synopsis[at..].split_whitespace().nth(1).unwrap();
                assert!(value.starts_with(char::is_uppercase), "{verb}: {synopsis}");
            }
            assert!(!synopsis.contains(&format!("{name}]")) || verb == "find", "{synopsis}");
        }
    }
    let page = std::fs::read_to_string(directory.path().join("linerate-record.1")).unwrap();
    assert!(page.replace("\\-", "-").contains("[--count COUNT]"), "{page}");
}

/// A reader that goes away ends the script, not with a panic.
#[test]
fn completions_survive_a_closed_pipe() {
    let run = find_to(&["completions", "bash"], std::io::pipe().unwrap().1).expect(0);
    assert_eq!(run.stderr, "");
}
