//! Recordings as other programs see them, and the recorder's account.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod recording;

use std::path::Path;
use std::time::Duration;

use port::{Losses, Reason};
use proptest::prelude::*;
use recording::{Numbers, all_packets, append, config, files, has_program, packets, run};
use store::ledger::InputCounters;
use store::scan::SegmentFile;
use store::time_index::TimeIndex;
use store::{
    Append, CaptureReader, Recorder, RecorderEvent, RecorderSummary, Selection, StoreError,
};

const BASE_NS: u64 = 1_796_094_922_000_000_000;

fn record(directory: &Path, packets: &[recording::Packet]) -> RecorderSummary {
    let (mut recorder, report) = Recorder::open(config(directory)).unwrap();
    assert!(report.segments.is_empty());
    for (time_ns, data, original) in packets {
        append(&mut recorder, *time_ns, data, *original);
    }
    let summary = recorder.finish().unwrap();
    assert_eq!(summary.counters.stored.packets, packets.len() as u64);
    assert_eq!(summary.counters.pool_empty.packets, 0);
    summary
}

fn random_packets(seed: u64, count: usize, length_max: u64) -> Vec<recording::Packet> {
    let mut numbers = Numbers(seed | 1);
    let mut time_ns = BASE_NS;
    (0..count)
        .map(|_| {
            time_ns += numbers.below(1_000_000);
            let length = 14 + numbers.below(length_max) as usize;
            let data: Vec<u8> = (0..length).map(|_| numbers.next() as u8).collect();
            (time_ns, data, length as u32 + numbers.below(3) as u32)
        })
        .collect()
}

#[test]
fn every_packet_comes_back_over_many_segments() {
    let directory = tempfile::tempdir().unwrap();
    let sent = random_packets(7, 20_000, 1500);
    let summary = record(directory.path(), &sent);
    let segments = files(directory.path(), ".pcapng");
    assert!(segments.len() >= 4, "{segments:?}");
    assert_eq!(summary.segments.len(), segments.len());
    assert_eq!(files(directory.path(), ".time-index").len(), segments.len());
    let total: u64 = summary.segments.iter().map(|segment| segment.packets).sum();
    assert_eq!(total, sent.len() as u64);
    assert!(all_packets(directory.path()) == sent);
    for (path, sealed) in segments.iter().zip(&summary.segments) {
        assert_eq!(path, &sealed.path);
        assert_eq!(std::fs::metadata(path).unwrap().len(), sealed.bytes);
        let file = SegmentFile::open(path).unwrap();
        let index = TimeIndex::load(path, &file).unwrap();
        assert_eq!(index, TimeIndex::rebuild(&file).unwrap());
        assert_eq!(index.segment_length(), sealed.bytes);
    }
}

#[test]
fn other_programs_read_segments_without_a_complaint() {
    let test = "other_programs_read_segments_without_a_complaint";
    if !["tshark", "capinfos", "tcpdump"].iter().all(|program| has_program(test, program)) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let sent = random_packets(11, 12_000, 1500);
    record(directory.path(), &sent);
    let mut rest = sent.as_slice();
    for path in files(directory.path(), ".pcapng") {
        let name = path.to_str().unwrap();
        let fields = ["-e", "frame.time_epoch", "-e", "frame.cap_len", "-e", "frame.len"];
        let shown =
            run("tshark", &[&["-n", "-r", name, "-T", "fields"], &fields[..]].concat(), true);
        let count = shown.lines().count();
        let (mine, after) = rest.split_at(count);
        for (line, (time_ns, data, original)) in shown.lines().zip(mine) {
            let time = format!("{}.{:09}", time_ns / 1_000_000_000, time_ns % 1_000_000_000);
            assert_eq!(line, format!("{time}\t{}\t{original}", data.len()));
        }
        let shown = run("capinfos", &["-M", "-c", "-d", name], true);
        let bytes: u64 = mine.iter().map(|packet| u64::from(packet.2)).sum();
        assert!(shown.contains(&format!("Number of packets:   {count}\n")), "{shown}");
        assert!(shown.contains(&format!("{bytes} bytes")), "{shown}");
        let shown = run("tcpdump", &["-nn", "-t", "-r", name], false);
        assert_eq!(shown.lines().filter(|line| !line.starts_with('\t')).count(), count);
        rest = after;
    }
    assert!(rest.is_empty());
}

#[test]
fn long_packets_are_cut_where_readers_stop() {
    let directory = tempfile::tempdir().unwrap();
    let lengths = [0, 1, 1514, 262_144, 262_145, 300_000, 65_535];
    let sent: Vec<_> =
        lengths.iter().map(|length| (BASE_NS, vec![7; *length], *length as u32)).collect();
    record(directory.path(), &sent);
    let read = all_packets(directory.path());
    for ((_, data, original), sent) in read.iter().zip(&sent) {
        assert_eq!(*original, sent.2);
        assert_eq!(data.len(), sent.1.len().min(262_144));
    }
    let path = &files(directory.path(), ".pcapng")[0];
    if has_program("long_packets_are_cut_where_readers_stop", "tshark") {
        let shown = run(
            "tshark",
            &["-n", "-r", path.to_str().unwrap(), "-T", "fields", "-e", "frame.len"],
            true,
        );
        assert_eq!(shown.lines().count(), lengths.len());
    }
}

#[test]
fn the_header_and_the_account_are_in_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = config(directory.path());
    config.section.comment = Some("a remark".into());
    config.interface.hardware = Some("a card".into());
    let (mut recorder, _) = Recorder::open(config).unwrap();
    for index in 0..10 {
        assert_eq!(recorder.append(BASE_NS + index, &[1; 60], 60), Append::Stored);
    }
    let mut dropped = Losses::default();
    dropped.add(Reason::KernelRing, 5);
    dropped.add(Reason::Interface, 3);
    recorder.note_input(InputCounters { wire_packets: 30, filtered_packets: 12, dropped });
    recorder.flush();
    dropped.add(Reason::KernelRing, 2);
    recorder.note_input(InputCounters { wire_packets: 32, filtered_packets: 12, dropped });
    recorder.finish().unwrap();
    let path = files(directory.path(), ".pcapng").pop().unwrap();
    let mut reader = CaptureReader::open(&path).unwrap();
    while reader.next_record().unwrap().is_some() {}
    assert_eq!(reader.sections()[0].comment.as_deref(), Some("a remark"));
    let interface = &reader.interfaces()[0];
    assert_eq!(interface.name.as_deref(), Some("test0"));
    assert_eq!(interface.filter.as_deref(), Some("ip or arp"));
    assert_eq!(interface.hardware.as_deref(), Some("a card"));
    let statistics = reader.statistics()[0];
    assert_eq!(statistics.received_packets, Some(32));
    assert_eq!(statistics.interface_dropped_packets, Some(3));
    assert_eq!(statistics.system_dropped_packets, Some(7));
    assert_eq!(statistics.filter_accepted_packets, Some(20));
    assert_eq!(statistics.delivered_packets, Some(10));
    let index = TimeIndex::rebuild(&SegmentFile::open(&path).unwrap()).unwrap();
    let packets: Vec<u32> = index.chunks.iter().map(|chunk| chunk.packets).collect();
    assert_eq!(packets, [0, 10, 0]);
    assert_eq!(index.chunks[1].ledger.lost(Reason::KernelRing), 5);
    assert_eq!(index.chunks[2].ledger.lost(Reason::KernelRing), 7);
}

#[test]
fn a_slow_link_is_flushed_in_short_chunks() {
    let directory = tempfile::tempdir().unwrap();
    let (mut recorder, _) = Recorder::open(config(directory.path())).unwrap();
    for round in 0..20u64 {
        recorder.append(BASE_NS + round, &[1; 60], 60);
        recorder.tick(round * 500_000_000);
    }
    let summary = recorder.finish().unwrap();
    // Header, and a chunk of 4096 bytes for every one to three packets.
    assert!(summary.segments[0].bytes <= 4096 * 21, "{summary:?}");
    assert!(summary.segments[0].bytes >= 4096 * 6, "{summary:?}");
    assert_eq!(all_packets(directory.path()).len(), 20);
}

#[test]
fn a_recording_without_packets_leaves_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let (mut recorder, _) = Recorder::open(config(directory.path())).unwrap();
    recorder.tick(0);
    recorder.tick(u64::MAX);
    let summary = recorder.finish().unwrap();
    assert!(summary.segments.is_empty());
    assert!(files(directory.path(), "").iter().all(|path| path.ends_with(".s00.lock")));
}

#[test]
fn numbers_go_on_after_a_restart_and_a_dropped_recorder_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    for round in 0..3 {
        let (mut recorder, report) = Recorder::open(config(directory.path())).unwrap();
        assert!(report.segments.is_empty());
        recorder.append(BASE_NS + round, &[1; 60], 60);
        drop(recorder);
    }
    let names = files(directory.path(), ".pcapng");
    let ends: Vec<String> = names
        .iter()
        .map(|path| path.to_string_lossy().rsplit_once("Z-").unwrap().1.to_string())
        .collect();
    assert_eq!(ends, ["s00-000001.pcapng", "s00-000002.pcapng", "s00-000003.pcapng"]);
    assert_eq!(all_packets(directory.path()).len(), 3);
}

#[test]
fn two_recorders_share_a_directory_only_as_different_streams() {
    let directory = tempfile::tempdir().unwrap();
    let (mut first, _) = Recorder::open(config(directory.path())).unwrap();
    match Recorder::open(config(directory.path())) {
        Err(StoreError::Locked { stream: 0, .. }) => {}
        other => panic!("{other:?}"),
    }
    let mut other = config(directory.path());
    other.stream = 7;
    let (mut second, report) = Recorder::open(other).unwrap();
    assert!(report.segments.is_empty(), "a live segment of another stream is left alone");
    first.append(BASE_NS, &[1; 60], 60);
    second.append(BASE_NS, &[2; 60], 60);
    first.finish().unwrap();
    second.finish().unwrap();
    assert_eq!(all_packets(directory.path()).len(), 2);
    assert!(Recorder::open(config(directory.path())).is_ok());
}

#[test]
fn a_directory_that_cannot_be_used_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let error = Recorder::open(config(&file)).unwrap_err();
    assert!(error.to_string().contains(file.to_str().unwrap()), "{error}");
    assert!(Recorder::open(config(&directory.path().join("a/b/c"))).is_ok());
}

/// Neither a recorder nor a reader waits for the other end of a pipe.
#[test]
fn a_lock_that_is_no_file_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let (mut recorder, _) = Recorder::open(config(directory.path())).unwrap();
    recorder.append(BASE_NS, &[1; 60], 60);
    recorder.finish().unwrap();
    let lock = directory.path().join(".s00.lock");
    std::fs::remove_file(&lock).unwrap();
    let pipe = |path: &Path| {
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    };
    pipe(&directory.path().join(".s01.lock"));
    let remove: [(fn(&Path), _); 2] = [
        (|path| std::fs::remove_file(path).unwrap(), true),
        (|path| std::fs::remove_dir(path).unwrap(), false),
    ];
    for (remove, is_pipe) in remove {
        if is_pipe {
            pipe(&lock)
        } else {
            std::fs::create_dir(&lock).unwrap()
        }
        let error = Recorder::open(config(directory.path())).unwrap_err().to_string();
        assert!(error.contains(".s00.lock") && error.contains("remove or rename it"), "{error}");
        // An open segment is what makes a reader ask for the lock.
        let open = directory.path().join("s00-000009.open.pcapng");
        std::fs::copy(files(directory.path(), ".pcapng")[0].as_path(), &open).unwrap();
        let mut find = store::Find::open(&[directory.path()], Selection::default()).unwrap();
        while find.next_record().unwrap().is_some() {}
        std::fs::remove_file(open).unwrap();
        remove(&lock);
    }
    // A pipe for another stream's lock: that stream's open segments are left alone.
    std::fs::write(directory.path().join("s01-000001.open.pcapng"), [0; 5000]).unwrap();
    let (_recorder, report) = Recorder::open(config(directory.path())).unwrap();
    assert!(report.segments.is_empty(), "{report:?}");
}

/// What was in a segment that somebody removes, moves or replaces before it is sealed is lost, and what
/// comes later is not, as long as there is a place for it.
#[test]
fn a_segment_that_is_removed_is_lost_and_the_next_is_not() {
    let aside = |open: &Path| open.with_file_name("aside");
    let remove: &dyn Fn(&Path) = &|open| std::fs::remove_file(open).unwrap();
    let rename: &dyn Fn(&Path) = &|open| std::fs::rename(open, aside(open)).unwrap();
    let keep_a_link: &dyn Fn(&Path) = &|open| {
        std::fs::hard_link(open, aside(open)).unwrap();
        std::fs::remove_file(open).unwrap();
    };
    let replace: &dyn Fn(&Path) = &|open| {
        std::fs::rename(open, aside(open)).unwrap();
        std::fs::write(open, "not ours").unwrap();
    };
    let remove_all: &dyn Fn(&Path) =
        &|open| std::fs::remove_dir_all(open.parent().unwrap()).unwrap();
    let ways = [
        (remove, false),
        (rename, false),
        (keep_a_link, false),
        (replace, false),
        (remove_all, true),
    ];
    for (way, whole_directory) in ways {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("store");
        let (mut recorder, _) = Recorder::open(config(&directory)).unwrap();
        for number in 0..1000 {
            append(&mut recorder, BASE_NS + number, &[1; 100], 100);
        }
        recorder.flush();
        while recorder.counters().durable.packets < 1000 {
            std::thread::sleep(Duration::from_millis(5));
        }
        let open = directory.join("s00-000001.open.pcapng");
        way(&open);
        // Several times the interval at which it looks.
        std::thread::sleep(Duration::from_millis(300));
        for number in 0..500 {
            append(&mut recorder, BASE_NS + 2000 + number, &[2; 100], 100);
        }
        let summary = recorder.finish().unwrap();
        let counters = summary.counters;
        let expected = if whole_directory { (0, 1500) } else { (500, 1000) };
        assert_eq!((counters.stored.packets, counters.storage.packets), expected);
        assert_eq!(counters.durable, counters.stored);
        assert_eq!(counters.written, counters.stored);
        let removed = RecorderEvent::SegmentRemoved { path: open.clone(), packets: 1000 };
        assert!(summary.events.contains(&removed), "{:?}", summary.events);
        if open.exists() {
            // What is not the recorder's stays as it is, now and when the next one starts.
            drop(Recorder::open(config(&directory)).unwrap());
            assert_eq!(std::fs::read_to_string(&open).unwrap(), "not ours");
            std::fs::remove_file(&open).unwrap();
        }
        if !whole_directory {
            assert_eq!(all_packets(&directory).len(), 500);
            let find = store::Find::open(&[&directory], Selection::default()).unwrap();
            let report = find.report();
            // Lost to the storage, and not missing for a second time.
            assert_eq!(report.completeness.lost_packets, [0, 0, 0, 0, 1000, 0, 0, 0]);
            assert_eq!((report.completeness.unreadable_packets, report.packets_unreadable), (0, 0));
        }
    }
}

#[test]
fn a_removed_segment_is_unreadable_until_the_recorder_accounts_for_it() {
    let directory = tempfile::tempdir().unwrap();
    let (mut recorder, _) = Recorder::open(config(directory.path())).unwrap();
    let durable = |recorder: &mut Recorder, packets| {
        recorder.flush();
        while recorder.counters().durable.packets < packets {
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    for number in 0..1000 {
        append(&mut recorder, BASE_NS + number, &[1; 100], 100);
    }
    durable(&mut recorder, 1000);
    std::fs::remove_file(directory.path().join("s00-000001.open.pcapng")).unwrap();
    // Several times the interval at which it looks.
    std::thread::sleep(Duration::from_millis(300));
    for number in 0..500 {
        append(&mut recorder, BASE_NS + 2000 + number, &[2; 100], 100);
    }
    recorder.flush();
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    let report = loop {
        let mut find = store::Find::open(&[directory.path()], Selection::default()).unwrap();
        while find.next_record().unwrap().is_some() {}
        if find.report().packets_found == 500 || std::time::Instant::now() > deadline {
            break find.report().clone();
        }
    };
    assert_eq!(report.completeness.lost_packets, [0; 8]);
    assert_eq!((report.completeness.unreadable_packets, report.packets_unreadable), (1000, 1000));
    assert_eq!((report.packets_found, report.packets_read), (500, 1500));
    recorder.finish().unwrap();
}

#[test]
fn both_engines_write_the_same() {
    let sent = random_packets(5, 8000, 1500);
    for engine in [sys::direct_io::Engine::Auto, sys::direct_io::Engine::PwritePool { threads: 3 }]
    {
        let directory = tempfile::tempdir().unwrap();
        let mut config = config(directory.path());
        config.engine = engine;
        let (mut recorder, _) = Recorder::open(config).unwrap();
        for (time_ns, data, original) in &sent {
            append(&mut recorder, *time_ns, data, *original);
        }
        recorder.finish().unwrap();
        assert!(all_packets(directory.path()) == sent);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_was_appended_is_read_whatever_sizes_and_times(
        seed: u64,
        count in 1usize..3000,
        length_max in prop_oneof![Just(60u64), Just(1500), Just(9000), Just(200_000)],
        flush_every in prop_oneof![Just(usize::MAX), 1usize..500],
    ) {
        let count = count.min(6_000_000 / length_max as usize + 1);
        let mut sent = random_packets(seed, count, length_max);
        let mut numbers = Numbers(seed | 1);
        for packet in &mut sent {
            if numbers.below(50) == 0 {
                packet.0 = numbers.next();
            }
        }
        let directory = tempfile::tempdir().unwrap();
        let (mut recorder, _) = Recorder::open(config(directory.path())).unwrap();
        for (index, (time_ns, data, original)) in sent.iter().enumerate() {
            append(&mut recorder, *time_ns, data, *original);
            if index % flush_every == flush_every - 1 {
                recorder.flush();
            }
        }
        let summary = recorder.finish().unwrap();
        prop_assert_eq!(summary.counters.stored.packets, count as u64);
        prop_assert_eq!(summary.counters.durable, summary.counters.stored);
        let read: Vec<_> = summary.segments.iter().flat_map(|s| packets(&s.path)).collect();
        prop_assert!(read == sent);
    }
}
