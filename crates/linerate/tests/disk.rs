//! The program on disks that are full: what it says, its exit code, and what is left on the disk.
#![allow(clippy::unwrap_used, clippy::panic)]

mod program;

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use program::{Run, command, number};
use testing::{Outcome, on_small_disk, tests};

const MIB: u64 = 1 << 20;

/// Packets of a capture, which is whole.
#[track_caller]
fn held(path: &str) -> u64 {
    number(&Run::of(&["find", path, "--json"]).expect(0).result(), "found_packets")
}

/// What is counted as transmitted to a file is in the file, and the rest has a reason.
fn a_file_holds_what_was_transmitted() -> Outcome {
    on_small_disk(4 * MIB, |disk| {
        let path = disk.join("frames.pcapng").display().to_string();
        for (port, count) in [
            (format!("pcap:{path}"), "100k"),
            (format!("pcap:{path}?duplicate=0.1&delay=0.05&seed=3"), "100k"),
        ] {
            let arguments = ["generate", &port, "--count", count, "--size", "1000", "--json"];
            let run = Run::of(&arguments).expect(5);
            assert!(run.stderr.contains(&path) && run.stderr.contains("it holds"), "{run:?}");
            let result = run.result();
            let (left, held) = (&result["ledger"]["accounts"][0]["left"], held(&path));
            assert_eq!(result["ledger"]["balanced"], true, "{result}");
            assert_eq!(number(&result, "transmitted_packets"), held, "{result}");
            assert_eq!(number(left, "transmitted_packets"), held);
            assert_eq!(number(&result, "intended_packets"), 100_000);
            assert!(number(left, "storage_packets") > 0 && held > 3_000, "{result}");
            assert!(result["transmitted_bytes"].is_null(), "{result}");
        }
        Ok(())
    })
}

/// The same for what `replay` and `find` write.
fn recorded_packets_on_a_full_disk_are_counted() -> Outcome {
    let directory = tempfile::tempdir()?;
    let source = directory.path().join("frames.pcapng").display().to_string();
    let port = format!("pcap:{source}");
    Run::of(&["generate", &port, "--count", "10k", "--size", "1000"]).expect(0);
    on_small_disk(4 * MIB, |disk| {
        let path = disk.join("copy.pcap").display().to_string();
        let onto = format!("pcap:{path}");
        let run = Run::of(&["replay", &source, "--onto", &onto, "--rate", "max", "--json"]);
        let result = run.expect(5).result();
        assert_eq!(result["ledger"]["balanced"], true, "{result}");
        assert_eq!(number(&result, "replayed_packets"), held(&path), "{result}");
        std::fs::remove_file(&path)?;

        let path = disk.join("copy.pcapng").display().to_string();
        let run = Run::of(&["find", &source, "--write", &path, "--json"]).expect(5);
        let (result, held) = (run.result(), held(&path));
        assert_eq!(number(&result, "written_packets"), held);
        let write = &result["ledger"]["accounts"][1];
        let lost = number(&result, "found_packets") - held;
        assert_eq!(number(write, "left.written_packets"), held, "{result}");
        assert_eq!(number(write, "left.storage_packets"), lost, "{result}");
        assert!(held > 3_000 && number(&result, "found_packets") > held, "{result}");
        assert_eq!(result["complete"], false);
        let holds = format!("it holds {}", store::words::counted(held, "packet"));
        assert!(run.stderr.contains(&holds) && run.stderr.contains("free some space"), "{run:?}");
        assert!(run.stderr.contains(&path), "{run:?}");
        a_header_that_does_not_fit(disk, &source);
        Ok(())
    })
}

fn a_header_that_does_not_fit(disk: &Path, source: &str) {
    std::fs::write(disk.join("ballast"), vec![0; 4 << 20]).unwrap_err();
    let path = disk.join("more.pcapng").display().to_string();
    let run = Run::of(&["find", source, "--write", &path]).expect(5);
    assert!(run.stderr.contains("it holds 0 packets"), "{run:?}");
    let run = Run::of(&["generate", &format!("pcap:{path}"), "--count", "1"]).expect(5);
    assert!(run.stderr.contains("it holds 0 packets"), "{run:?}");
}

/// A recording that its disk did not take whole ends with its ledger, and with the disk's code.
fn a_recording_that_lost_packets_says_so() -> Outcome {
    let directory = tempfile::tempdir()?;
    let source = directory.path().join("frames.pcapng").display().to_string();
    let port = format!("pcap:{source}");
    Run::of(&["generate", &port, "--count", "12k", "--size", "1000"]).expect(0);
    for (disk_bytes, code) in [(8 * MIB, 5), (40 * MIB, 0)] {
        on_small_disk(disk_bytes, |disk| {
            let store = disk.join("store").display().to_string();
            let record = ["record", &port, "--to", &store, "--segment", "4MiB", "--json"];
            let result = Run::of(&record).expect(code).result();
            let left = &result["ledger"]["accounts"][1]["left"];
            let (stored, lost) = (held(&store), number(left, "storage_packets"));
            assert_eq!(result["ledger"]["balanced"], true, "{result}");
            assert_eq!(result["error"], serde_json::Value::Null);
            assert_eq!(number(&result, "recorded_packets"), stored);
            assert_eq!((stored + lost, lost > 0), (12_000, code == 5), "{result}");
            Ok(())
        })?;
    }
    Ok(())
}

/// A demo whose second step fails says what became of all that the first one sent.
fn a_demo_that_fails_half_way_accounts_for_what_was() -> Outcome {
    on_small_disk(16 * MIB, |disk| {
        let place = disk.join("demo").display().to_string();
        let arguments = ["demo", "--count", "200k", "--to", &place, "--json"];
        let demo = command(&arguments).spawn()?;
        // In the way only after the demo has looked at its directory.
        let deadline = Instant::now() + Duration::from_secs(20);
        while !disk.join("demo/store").exists() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::fs::create_dir(disk.join("demo/found.pcapng"))?;
        let run = Run::from(demo.wait_with_output()?).expect(5);
        assert!(run.stderr.contains("found.pcapng"), "{run:?}");
        let result = run.result();
        assert_eq!(result["ledger"]["balanced"], true, "{result}");
        assert!(result["error"].as_str().unwrap().contains("found.pcapng"), "{result}");
        assert_eq!(number(&result, "generated_packets"), 200_000);
        let places = result["ledger"]["accounts"].as_array().unwrap();
        let place_of = |name: &str| places.iter().find(|place| place["place"] == name).unwrap();
        let lost = number(place_of("record"), "left.storage_packets");
        assert!(lost > 0, "{result}");
        assert_eq!(number(&result, "recorded_packets") + lost, 200_000, "{result}");
        assert_eq!(number(&result, "replayed_packets"), 0);
        Ok(())
    })
}

/// A file at its size limit is an error of the write: the account is printed, the file is whole.
fn a_file_at_its_size_limit_ends_the_run_in_order() -> Outcome {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("frames.pcapng").display().to_string();
    let program = command(&[]).get_program().to_owned();
    let output = std::process::Command::new("sh")
        .args(["-c", "ulimit -f 2000; exec \"$@\"", "sh"])
        .arg(program)
        .args(["generate", &format!("pcap:{path}"), "--count", "100k", "--json"])
        .output()?;
    let result = Run::from(output).expect(5).result();
    assert_eq!(result["ledger"]["balanced"], true, "{result}");
    assert_eq!(number(&result, "transmitted_packets"), held(&path), "{result}");
    Ok(())
}

/// Nobody panics over words that cannot be written; a result that nobody got is no success.
fn words_that_cannot_be_written() -> Outcome {
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full");
    let missing = command(&["find", "nonexistent"]).stderr(full()?).status()?;
    assert_eq!(missing.code(), Some(6));
    for json in [&[][..], &["--json"]] {
        let arguments = [&["generate", "null:", "--count", "10"], json].concat();
        let untold = Run::from(command(&arguments).stdout(full()?).output()?).expect(5);
        assert!(untold.stderr.contains("writing the result to standard output"), "{untold:?}");
        let heard = Run::from(command(&arguments).stderr(full()?).output()?).expect(0);
        assert!(!heard.stdout.is_empty());
    }
    Ok(())
}

fn main() -> ExitCode {
    testing::run(tests![
        a_demo_that_fails_half_way_accounts_for_what_was,
        a_recording_that_lost_packets_says_so,
        a_file_at_its_size_limit_ends_the_run_in_order,
        words_that_cannot_be_written,
        a_file_holds_what_was_transmitted,
        recorded_packets_on_a_full_disk_are_counted,
    ])
}
