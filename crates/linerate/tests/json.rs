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
