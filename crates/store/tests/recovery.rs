//! Recovery of segments that were cut, torn, overwritten, and of recordings that were killed.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod recording;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use proptest::prelude::*;
use recording::{Numbers, Packet, all_packets, append, config, files, has_program, packets, run};
use store::recover::{Repair, SegmentRecovery, recover_directory, recover_segment};
use store::scan::SegmentFile;
use store::time_index::TimeIndex;
use store::trailer::ChunkTrailer;
use store::{Append, Find, Recorder, Selection};

const BASE_NS: u64 = 1_796_094_922_000_000_000;
/// Directory for a child that records until it is killed.
const CHILD: &str = "STORE_RECORD_UNTIL_KILLED";

/// A segment as a crash leaves it: all chunks written, a tail of zeros, not sealed.
fn unsealed(directory: &Path, seed: u64) -> (PathBuf, TimeIndex, Vec<Packet>) {
    let mut numbers = Numbers(seed | 1);
    let (mut recorder, _) = Recorder::open(config(directory)).unwrap();
    let mut sent = Vec::new();
    // Each flush ends a chunk and pads it: more of them would not fit in one segment.
    let flush_every = 40 + numbers.below(3000);
    for index in 0..2500u64 {
        let data = vec![index as u8; 14 + numbers.below(1400) as usize];
        append(&mut recorder, BASE_NS + index, &data, data.len() as u32);
        if index % flush_every == flush_every - 1 {
            recorder.flush();
        }
        sent.push((BASE_NS + index, data.clone(), data.len() as u32));
    }
    let summary = recorder.finish().unwrap();
    assert_eq!(summary.segments.len(), 1);
    let sealed = &summary.segments[0].path;
    let file = SegmentFile::open(sealed).unwrap();
    let index = TimeIndex::load(sealed, &file).unwrap();
    for index in files(directory, ".time-index") {
        std::fs::remove_file(index).unwrap();
    }
    let open = directory.join("s00-000001.open.pcapng");
    std::fs::rename(sealed, &open).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&open).unwrap();
    file.set_len(4 << 20).unwrap();
    (open, index, sent)
}

/// Packets of the chunks that `damaged` does not touch.
fn survivors(
    index: &TimeIndex,
    sent: &[Packet],
    damaged: impl Fn(&ChunkTrailer) -> bool,
) -> Vec<Packet> {
    let whole = index.chunks.iter().filter(|chunk| !damaged(chunk));
    whole
        .flat_map(|chunk| {
            let from = chunk.packets_before as usize;
            sent[from..from + chunk.packets as usize].to_vec()
        })
        .collect()
}

/// Recovers and checks that exactly `expected` is left, in a file that other programs accept, and
/// that doing it again changes nothing.
fn check(test: &str, open: &Path, expected: &[Packet]) -> SegmentRecovery {
    let foretold = recover_segment(open, Repair::Report).unwrap();
    let report = recover_segment(open, Repair::Seal).unwrap();
    assert_eq!(SegmentRecovery { path: report.path.clone(), ..foretold }, report);
    assert_eq!(report.packets_kept, expected.len() as u64);
    let directory = open.parent().unwrap();
    if expected.is_empty() {
        assert!(report.empty);
        assert!(files(directory, ".pcapng").is_empty());
        return report;
    }
    assert!(packets(&report.path) == expected);
    let mut find = Find::open(&[directory], Selection::default()).unwrap();
    let mut count = 0;
    while find.next_record().unwrap().is_some() {
        count += 1;
    }
    assert_eq!((count, find.report().chunks_damaged), (expected.len(), 0));
    assert!(!find.report().completeness.is_complete());
    if has_program(test, "capinfos") && has_program(test, "tcpdump") {
        let name = report.path.to_str().unwrap();
        let shown = run("capinfos", &["-M", "-c", name], true);
        assert!(shown.contains(&format!("Number of packets:   {}\n", expected.len())), "{shown}");
        run("tcpdump", &["-nn", "-r", name, "-w", "/dev/null"], false);
    }
    let again = recover_directory(directory, Repair::Seal).unwrap();
    assert!(again.segments.is_empty());
    // As if the crash had come between repair and renaming.
    std::fs::rename(&report.path, open).unwrap();
    let again = recover_segment(open, Repair::Seal).unwrap();
    assert_eq!(
        (again.packets_kept, again.packets_lost, again.chunks_lost),
        (report.packets_kept, report.packets_lost, report.chunks_lost)
    );
    assert!(packets(&again.path) == expected);
    report
}

#[test]
fn an_undamaged_segment_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (open, _, sent) = unsealed(directory.path(), 1);
    let report = check("an_undamaged_segment_loses_nothing", &open, &sent);
    assert_eq!((report.packets_lost, report.bytes_lost, report.chunks_lost), (0, 0, 0));
}

#[test]
fn a_lost_header_is_made_anew() {
    let directory = tempfile::tempdir().unwrap();
    let (open, _, sent) = unsealed(directory.path(), 2);
    let mut bytes = std::fs::read(&open).unwrap();
    bytes[..4096].fill(0xa5);
    std::fs::write(&open, bytes).unwrap();
    let report = check("a_lost_header_is_made_anew", &open, &sent);
    assert_eq!((report.packets_lost, report.bytes_lost), (0, 4096));
    let mut reader =
        store::CaptureReader::open(files(directory.path(), ".pcapng")[0].clone()).unwrap();
    reader.next_record().unwrap();
    assert_eq!(reader.interfaces()[0].name.as_deref(), Some("test0"));
}

#[test]
fn a_segment_without_packets_is_removed() {
    let directory = tempfile::tempdir().unwrap();
    let (open, _, _) = unsealed(directory.path(), 3);
    let file = std::fs::OpenOptions::new().write(true).open(&open).unwrap();
    file.set_len(4096 + 100).unwrap();
    drop(file);
    check("a_segment_without_packets_is_removed", &open, &[]);
    std::fs::write(directory.path().join("s00-000009.open.pcapng"), "").unwrap();
    let report = recover_directory(directory.path(), Repair::Seal).unwrap();
    assert_eq!((report.segments.len(), report.packets_kept()), (1, 0));
    assert!(files(directory.path(), ".pcapng").is_empty());
}

#[test]
fn a_file_that_is_no_segment_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s00-000009.open.pcapng");
    // Something short, and something that was longer than a chunk and is mostly zeros.
    for (length, text) in [(8, "not ours"), (3 << 20, "nor this")] {
        let mut bytes = vec![0; length];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        std::fs::write(&path, &bytes).unwrap();
        for repair in [Repair::Report, Repair::Seal] {
            let report = recover_directory(directory.path(), repair).unwrap();
            assert_eq!((report.segments.len(), &report.passed_over), (0, &vec![path.clone()]));
        }
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    }
    assert!(recover_segment(&path, Repair::Seal).unwrap().foreign);
    // A recording goes on beside it.
    let (_, _, sent) = unsealed(directory.path(), 5);
    assert!(path.exists());
    let report = recover_directory(directory.path(), Repair::Seal).unwrap();
    assert_eq!(report.packets_kept(), sent.len() as u64);
}

#[test]
fn find_reads_what_recovery_would_keep_without_changing_it() {
    let directory = tempfile::tempdir().unwrap();
    let (open, index, sent) = unsealed(directory.path(), 4);
    let mut bytes = std::fs::read(&open).unwrap();
    let hurt = index.chunks[1];
    bytes[hurt.offset as usize + 50] ^= 1;
    std::fs::write(&open, &bytes).unwrap();
    let expected = survivors(&index, &sent, |chunk| chunk.sequence == 1);
    let mut find = Find::open(&[directory.path()], Selection::default()).unwrap();
    let mut found = Vec::new();
    while let Some(record) = find.next_record().unwrap() {
        found.push((record.time_ns, record.data.to_vec(), record.original_length));
    }
    assert!(found == expected);
    assert!(std::fs::read(&open).unwrap() == bytes);
}

#[derive(Debug, Clone)]
enum Damage {
    Cut(u64),
    Zeros(u64, u64),
    Garbage(u64, u64),
    Bit(u64),
}

fn any_damage() -> impl Strategy<Value = Damage> {
    let at = 0u64..4 << 20;
    let length = prop_oneof![1u64..100, 1u64..300_000, Just(1 << 20)];
    prop_oneof![
        at.clone().prop_map(Damage::Cut),
        (at.clone(), length.clone()).prop_map(|(at, length)| Damage::Zeros(at, length)),
        (at.clone(), length).prop_map(|(at, length)| Damage::Garbage(at, length)),
        at.prop_map(Damage::Bit),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 40,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_whole_chunk_survives_any_damage(
        seed: u64,
        damages in proptest::collection::vec(any_damage(), 1..5),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let (open, index, sent) = unsealed(directory.path(), seed);
        let original = std::fs::read(&open).unwrap();
        let mut bytes = original.clone();
        let mut numbers = Numbers(seed | 1);
        for damage in &damages {
            let length = bytes.len() as u64;
            let range = |at: u64, count: u64| {
                at.min(length) as usize..(at + count).min(length) as usize
            };
            match *damage {
                Damage::Cut(at) => bytes.truncate(at as usize),
                Damage::Zeros(at, count) => bytes[range(at, count)].fill(0),
                Damage::Garbage(at, count) => {
                    bytes[range(at, count)].fill_with(|| numbers.next() as u8);
                }
                Damage::Bit(at) => bytes[range(at, 1)].iter_mut().for_each(|byte| *byte ^= 4),
            }
        }
        let whole = |chunk: &ChunkTrailer| {
            let range = chunk.offset as usize..chunk.end() as usize;
            bytes.get(range.clone()) == original.get(range)
        };
        let expected = survivors(&index, &sent, |chunk| !whole(chunk));
        let last = index.chunks.iter().rfind(|chunk| whole(chunk) && chunk.packets > 0);
        std::fs::write(&open, &bytes).unwrap();
        let report = check("every_whole_chunk_survives_any_damage", &open, &expected);
        let until_last = last.map_or(0, |chunk| chunk.packets_before + u64::from(chunk.packets));
        prop_assert_eq!(report.packets_lost, until_last - expected.len() as u64);
    }
}

/// Not a test of its own: the child of the next one.
#[test]
fn record_until_killed() {
    let Some(directory) = std::env::var_os(CHILD) else { return };
    let (mut recorder, _) = Recorder::open(config(Path::new(&directory))).unwrap();
    let mut number = 0u64;
    let mut data = [0u8; 700];
    println!();
    loop {
        data[..8].copy_from_slice(&number.to_le_bytes());
        let length = 60 + (number * 37 % 640) as usize;
        while recorder.free_chunks() == 0 {
            std::thread::sleep(Duration::from_micros(100));
        }
        assert_eq!(recorder.append(BASE_NS + number, &data[..length], 700), Append::Stored);
        number += 1;
        if number.is_multiple_of(997) {
            if number.is_multiple_of(3) {
                recorder.flush();
            }
            println!("written {}", recorder.counters().written.packets);
        }
    }
}

/// Packets in segments that the child had sealed.
fn all_sealed(directory: &Path) -> u64 {
    let open = files(directory, ".open.pcapng");
    let sealed = files(directory, ".pcapng");
    let sealed = sealed.iter().filter(|path| !open.contains(path));
    sealed.map(|path| packets(path).len() as u64).sum()
}

#[test]
fn a_killed_recording_keeps_every_chunk_that_was_written() {
    let rounds = std::env::var("STORE_KILL_ROUNDS").ok().and_then(|text| text.parse().ok());
    let mut numbers = Numbers(u64::from(std::process::id()) << 20 | 77);
    let mut survived = 0;
    for round in 0..rounds.unwrap_or(20u64) {
        let directory = tempfile::tempdir().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["record_until_killed", "--exact", "--nocapture", "--test-threads=1"])
            .env(CHILD, directory.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // The first line comes from the test harness; wait for the first word of the child.
        let mut written = 0;
        let count = |line: &str| line.trim().strip_prefix("written ").map(|n| n.parse().unwrap());
        for line in lines.by_ref() {
            if let Some(number) = count(&line.unwrap()) {
                written = number;
                break;
            }
        }
        let pause = numbers.below(80_000);
        let reader = std::thread::spawn(move || {
            lines.map_while(Result::ok).filter_map(|line| count(&line)).last()
        });
        std::thread::sleep(Duration::from_micros(pause));
        child.kill().unwrap();
        child.wait().unwrap();
        let written: u64 = reader.join().unwrap().unwrap_or(written);

        let sealed = all_sealed(directory.path());
        let (recorder, report) = Recorder::open(config(directory.path())).unwrap();
        drop(recorder);
        let read = all_packets(directory.path());
        let ids: Vec<u64> = read
            .iter()
            .map(|packet| u64::from_le_bytes(packet.1[..8].try_into().unwrap()))
            .collect();
        assert!(ids.is_sorted_by(|a, b| a < b), "round {round}");
        let known: Vec<u64> = ids.iter().copied().take_while(|id| *id < written).collect();
        assert_eq!(known.len() as u64, written, "round {round}: what was written must be there");
        for (time_ns, data, original) in &read {
            let id = time_ns - BASE_NS;
            assert_eq!((data.len() as u64, *original), (60 + id * 37 % 640, 700));
        }
        assert!(files(directory.path(), ".open.pcapng").is_empty());
        assert_eq!(report.packets_kept() + sealed, read.len() as u64, "round {round}");
        survived += read.len();
    }
    assert!(survived > 0);
}
