//! Sealed segments that were cut, overwritten or changed: the search says so, and its account holds
//! every packet that should be there.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod recording;

use std::path::{Path, PathBuf};

use port::{Losses, Reason};
use recording::{append, config, files};
use store::ledger::InputCounters;
use store::trailer::{ChunkTrailer, FIELDS_FROM_END, field};
use store::{Find, FindReport, Recorder, Selection};
use tempfile::TempDir;

/// Chunks of 1000 packets in each segment of [`store`].
const CHUNKS: usize = 5;
/// Packets start here: far behind the session's beginning, so that windows of tests are simple.
const START_NS: u64 = 4_000_000_000_000_000_000;

/// A store of `segments` sealed segments of 5000 packets, one per microsecond.
fn store(segments: u64, loss: u64) -> (TempDir, Vec<PathBuf>) {
    let directory = tempfile::tempdir().unwrap();
    let mut config = config(directory.path());
    // Five chunks of 1000 packets of 600 bytes and the header.
    config.segment_bytes = 4 << 20;
    let (mut recorder, _) = Recorder::open(config).unwrap();
    for number in 0..segments * 5000 {
        append(&mut recorder, START_NS + number * 1000, &[7; 600], 600);
        if number == 1500 && loss > 0 {
            let mut dropped = Losses::default();
            dropped.add(Reason::KernelRing, loss);
            recorder.note_input(InputCounters { wire_packets: 0, filtered_packets: 0, dropped });
        }
        if number % 1000 == 999 {
            recorder.flush();
        }
    }
    recorder.finish().unwrap();
    let paths = files(directory.path(), ".pcapng");
    (directory, paths)
}

fn find(path: &Path, selection: Selection) -> FindReport {
    let mut find = Find::open(&[path], selection).unwrap();
    while find.next_record().unwrap().is_some() {}
    let report = find.report().clone();
    assert_eq!(
        report.packets_read,
        report.packets_found + report.packets_unreadable + report.packets_outside_window,
        "{report:?}"
    );
    report
}

fn all(path: &Path) -> FindReport {
    find(path, Selection::default())
}

fn remove_indexes(directory: &Path) {
    for index in files(directory, ".time-index") {
        std::fs::remove_file(index).unwrap();
    }
}

fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).unwrap();
    change(&mut bytes);
    std::fs::write(path, bytes).unwrap();
}

/// Trailers of all chunks, header first.
fn trailers(bytes: &[u8]) -> Vec<ChunkTrailer> {
    (4096..=bytes.len())
        .step_by(4096)
        .filter_map(|end| {
            ChunkTrailer::at_end_of(&bytes[..end]).filter(|chunk| chunk.end() == end as u64)
        })
        .collect()
}

/// Where a field of the chunk of this number lies.
fn field_at(bytes: &[u8], sequence: u64, field: usize) -> usize {
    let chunk = trailers(bytes).into_iter().find(|chunk| chunk.sequence == sequence).unwrap();
    chunk.end() as usize - FIELDS_FROM_END + field
}

/// Read, found, unreadable in the account; unreadable in the result.
fn figures(report: &FindReport) -> [u64; 4] {
    [
        report.packets_read,
        report.packets_found,
        report.packets_unreadable,
        report.completeness.unreadable_packets,
    ]
}

fn says(report: &FindReport, path: &Path, text: &str) {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let said = report.problems.iter().any(|line| line.contains(&name) && line.contains(text));
    assert!(said, "{text}: {:?}", report.problems);
}

#[test]
fn the_store_of_these_tests_is_whole() {
    let (directory, paths) = store(3, 0);
    for with_index in [true, false] {
        let report = all(directory.path());
        assert_eq!(figures(&report), [15_000, 15_000, 0, 0], "index: {with_index}");
        assert!(report.problems.is_empty() && report.completeness.is_complete(), "{report:?}");
        remove_indexes(directory.path());
    }
    let chunks = trailers(&std::fs::read(&paths[0]).unwrap());
    assert_eq!(chunks[1..=CHUNKS].iter().map(|chunk| chunk.packets).sum::<u32>(), 5000);
}

/// Damage to the last segment's end: a problem in every case; with the index its exact count.
#[test]
fn a_sealed_segment_that_does_not_end_with_its_last_chunk_is_a_problem() {
    type Change = fn(&mut Vec<u8>);
    let cases: [(&str, Change, u64); 8] = [
        ("cut by a byte", |bytes| bytes.truncate(bytes.len() - 1), 0),
        ("cut by a lot", |bytes| bytes.truncate(4096 + 100), 5000),
        ("empty", Vec::clear, 5000),
        ("zeros", |bytes| bytes.fill(0), 5000),
        ("noise", |bytes| bytes.iter_mut().enumerate().for_each(|(n, b)| *b = n as u8 ^ 7), 5000),
        ("longer", |bytes| bytes.extend([1; 100]), 0),
        ("magic", |bytes| flip_last(bytes, field::MAGIC), 0),
        ("segment id", |bytes| flip_last(bytes, field::SEGMENT_ID), 0),
    ];
    for (what, damage, unreadable) in cases {
        let (directory, paths) = store(1, 0);
        change(&paths[0], damage);
        let report = all(directory.path());
        let last = last_packets(directory.path());
        let cut_off = if matches!(what, "longer") { 0 } else { unreadable.max(last) };
        assert_eq!(figures(&report), [5000, 5000 - cut_off, cut_off, cut_off], "{what}");
        let name = paths[0].file_name().unwrap().to_str().unwrap();
        assert!(report.problems[0].contains(name), "{what}: {:?}", report.problems);
        assert!(report.problems[0].contains("its end"), "{what}: {:?}", report.problems);
        // What comes before the damage is complete.
        if unreadable == 0 {
            let before = find(directory.path(), Selection::between(START_NS, START_NS + 1000));
            assert_eq!((before.packets_found, before.problems.len()), (1, 0), "{what}");
        }
        remove_indexes(directory.path());
        if !matches!(what, "empty" | "zeros" | "noise") {
            let report = all(&paths[0]);
            assert_eq!(report.problems.len(), 1, "{what}");
        }
        let report = all(directory.path());
        assert_eq!((report.problems.len(), report.chunks_damaged), (1, 1), "{what}");
        says(&report, &paths[0], if unreadable < 5000 { "its end" } else { "whole chunk" });
    }
}

fn flip_last(bytes: &mut [u8], field: usize) {
    let at = bytes.len() - FIELDS_FROM_END + field;
    bytes[at] ^= 1;
}

/// Packets of the last chunk, by the time index.
fn last_packets(directory: &Path) -> u64 {
    let bytes = std::fs::read(&files(directory, ".time-index")[0]).unwrap();
    u64::from(ChunkTrailer::decode(&bytes[bytes.len() - 256..]).unwrap().packets)
}

#[test]
fn the_segment_behind_says_how_many_packets_a_cut_one_held() {
    let (directory, paths) = store(3, 0);
    remove_indexes(directory.path());
    let chunks = trailers(&std::fs::read(&paths[0]).unwrap());
    let packets: u64 = chunks.iter().map(|chunk| u64::from(chunk.packets)).sum();
    let cut_off = packets - u64::from(chunks[1].packets);
    change(&paths[0], |bytes| bytes.truncate(chunks[1].end() as usize + 77));
    let report = all(directory.path());
    assert_eq!(figures(&report), [15_000, 15_000 - cut_off, cut_off, cut_off]);
    assert_eq!((report.problems.len(), report.chunks_damaged), (1, 1));
    says(&report, &paths[0], "its end is missing or damaged");
    // The segment behind bounds it.
    let late = find(directory.path(), Selection::between(START_NS + 14_000_000, u64::MAX));
    assert_eq!((late.problems.len(), late.completeness.is_complete()), (0, true), "{late:?}");
}

#[test]
fn the_account_of_a_damaged_chunk_is_not_believed() {
    let damages: [(&str, usize, usize, u8); 5] = [
        ("a lost counter", field::LEDGER + 44, 1, 0x55),
        ("the account", field::LEDGER, 96, 0xff),
        ("the session", field::SESSION + 1, 1, 0x55),
        ("packets", field::PACKETS, 4, 0xff),
        ("the trailer", field::MAGIC, 1, 0),
    ];
    for (what, field, length, value) in damages {
        for with_index in [true, false] {
            let (directory, paths) = store(1, 9);
            if !with_index {
                remove_indexes(directory.path());
            }
            change(&paths[0], |bytes| {
                let at = field_at(bytes, 3, field);
                bytes[at..at + length].fill(value);
            });
            let report = all(directory.path());
            assert_eq!(figures(&report), [5000, 4000, 1000, 1000], "{what}, {with_index}");
            assert_eq!(report.completeness.lost_packets, [0, 9, 0, 0, 0, 0, 0, 0], "{what}");
            assert_eq!((report.problems.len(), report.chunks_damaged), (1, 1), "{what}");
            assert_eq!(report.completeness.interruptions, 0, "{what}");
        }
    }
}

/// As kill -9 leaves it: under its open name, nobody recording.
#[test]
fn the_account_of_a_damaged_chunk_of_an_open_segment_is_not_believed() {
    for (field, length) in [(field::LEDGER + 44, 1), (field::LEDGER, 96)] {
        let (directory, paths) = store(1, 9);
        remove_indexes(directory.path());
        change(&paths[0], |bytes| {
            let at = field_at(bytes, 3, field);
            bytes[at..at + length].fill(0xff);
        });
        std::fs::rename(&paths[0], directory.path().join("s00-000001.open.pcapng")).unwrap();
        let report = all(directory.path());
        assert_eq!(figures(&report), [5000, 4000, 1000, 1000]);
        assert_eq!(report.completeness.lost_packets, [0, 9, 0, 0, 0, 0, 0, 0]);
        assert_eq!(report.chunks_damaged, 1);
    }
}
