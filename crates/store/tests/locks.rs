//! Who may write to a directory, also after the files that say so were removed.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod recording;

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use recording::{Packet, all_packets, append, config, files};
use store::recover::{Repair, recover_directory};
use store::{Find, FindReport, Recorder, RecorderConfig, Selection, StoreError};

const BASE_NS: u64 = 1_796_094_922_000_000_000;

/// Appends packets of these numbers and has them written.
fn record(recorder: &mut Recorder, numbers: std::ops::Range<u64>) -> Vec<Packet> {
    let packet = |number: u64| (BASE_NS + number, vec![number as u8; 1000], 1000);
    let packets: Vec<Packet> = numbers.clone().map(packet).collect();
    for (time_ns, data, length) in &packets {
        append(recorder, *time_ns, data, *length);
    }
    recorder.flush();
    while recorder.counters().durable.packets < numbers.end {
        std::thread::sleep(Duration::from_millis(5));
    }
    packets
}

fn of_stream(directory: &Path, stream: u16) -> RecorderConfig {
    let mut config = config(directory);
    config.stream = stream;
    config
}

fn find(directory: &Path) -> FindReport {
    let mut find = Find::open(&[directory], Selection::default()).unwrap();
    while find.next_record().unwrap().is_some() {}
    find.report().clone()
}

#[test]
fn a_live_segment_is_left_alone_though_its_lock_file_was_removed() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let (mut first, _) = Recorder::open(config(directory)).unwrap();
    let mut sent = record(&mut first, 0..1000);
    let open = directory.join("s00-000001.open.pcapng");
    std::fs::remove_file(directory.join(".s00.lock")).unwrap();
    // The second attempt finds the lock file of the first.
    for _ in 0..2 {
        match Recorder::open(config(directory)) {
            Err(error @ StoreError::Locked { stream: 0, .. }) => {
                let text = error.to_string();
                assert!(text.contains(open.to_str().unwrap()), "{text}");
                assert!(text.contains("end that process"), "{text}");
            }
            other => panic!("{other:?}"),
        }
        // A reader is not misled by a lock that nobody holds.
        let told = find(directory).completeness;
        assert_eq!((told.interruptions, told.recordings_going_on), (0, 1));
    }
    assert!(matches!(recover_directory(directory, Repair::Seal), Err(StoreError::Locked { .. })));
    // Another stream is another matter: it leaves the segment where it is.
    let (other, report) = Recorder::open(of_stream(directory, 1)).unwrap();
    assert!(report.segments.is_empty(), "{report:?}");
    other.finish().unwrap();
    assert!(open.exists());
    // Over several segments.
    sent.extend(record(&mut first, 1000..12_000));
    let summary = first.finish().unwrap();
    assert_eq!((summary.counters.stored.packets, summary.counters.storage.packets), (12_000, 0));
    assert!(summary.segments.len() >= 3, "{summary:?}");
    assert!(all_packets(directory) == sent);
    let report = find(directory);
    assert_eq!((report.packets_found, report.completeness.is_complete()), (12_000, true));
    let (_, report) = Recorder::open(config(directory)).unwrap();
    assert!(report.segments.is_empty(), "{report:?}");
}

/// As a killed recorder's files stay locked until the kernel lets go of them.
#[test]
fn a_segment_that_is_let_go_late_is_recovered() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path();
    let (mut recorder, _) = Recorder::open(config(directory)).unwrap();
    let sent = record(&mut recorder, 0..1000);
    recorder.finish().unwrap();
    let open = directory.join("s00-000001.open.pcapng");
    std::fs::rename(&files(directory, ".pcapng")[0], &open).unwrap();
    let held = File::open(&open).unwrap();
    held.try_lock().unwrap();
    let holder = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        drop(held);
    });
    let (recorder, report) = Recorder::open(config(directory)).unwrap();
    holder.join().unwrap();
    assert_eq!((report.packets_kept(), report.packets_lost()), (1000, 0));
    recorder.finish().unwrap();
    assert!(all_packets(directory) == sent);
}

/// What ends while somebody waits for it needs no recovery.
#[test]
fn a_recorder_that_ends_makes_way_for_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let (mut first, _) = Recorder::open(config(directory)).unwrap();
    let mut sent = record(&mut first, 0..1000);
    std::fs::remove_file(directory.join(".s00.lock")).unwrap();
    let first = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        first.finish().unwrap()
    });
    let (mut second, report) = Recorder::open(config(directory)).unwrap();
    assert!(report.segments.is_empty(), "{report:?}");
    assert_eq!(first.join().unwrap().counters.stored.packets, 1000);
    let later: Vec<Packet> = record(&mut second, 0..500);
    second.finish().unwrap();
    sent.extend(later);
    let names: Vec<String> = files(directory, ".pcapng")
        .iter()
        .map(|path| path.to_string_lossy().rsplit_once("Z-").unwrap().1.to_string())
        .collect();
    assert_eq!(names, ["s00-000001.pcapng", "s00-000002.pcapng"]);
    assert!(all_packets(directory).len() == sent.len());
}

/// Readers ask for locks for a moment, again and again.
#[test]
fn readers_are_in_nobodys_way() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path();
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_micros(300));
                    for path in files(directory, "") {
                        if let Ok(file) = File::open(path) {
                            let _ = file.try_lock_shared();
                        }
                    }
                }
            });
        }
        for round in 1..=20 {
            let (mut recorder, report) = Recorder::open(config(directory)).unwrap();
            assert_eq!(report.packets_kept(), if round == 1 { 0 } else { 100 });
            record(&mut recorder, 0..100);
            let summary = recorder.finish().unwrap();
            let open = directory.join(format!("s00-{round:06}.open.pcapng"));
            std::fs::rename(&summary.segments[0].path, open).unwrap();
        }
        ended.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_link_that_leads_nowhere_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let link = directory.path().join("s00-000001.open.pcapng");
    std::os::unix::fs::symlink("nowhere", &link).unwrap();
    let error = Recorder::open(config(directory.path())).unwrap_err().to_string();
    assert!(error.contains(link.to_str().unwrap()), "{error}");
}
