//! Full disks: recordings onto a small file system in memory.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod recording;

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use recording::{all_packets, config, files};
use store::{Append, Recorder, RecorderConfig, RecorderEvent, RecorderSummary};
use sys::Kind;
use testing::{Outcome, on_small_disk, tests};

const MIB: u64 = 1 << 20;

fn small_config(directory: &Path) -> RecorderConfig {
    let mut config = config(directory);
    config.segment_bytes = 8 << 20;
    config
}

/// Appends numbered packets at full speed until `until` says so; returns how many.
struct Source {
    appended: u64,
}

impl Source {
    fn run(&mut self, recorder: &mut Recorder, mut until: impl FnMut(Append) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut data = [0; 1000];
        loop {
            data[..8].copy_from_slice(&self.appended.to_le_bytes());
            self.appended += 1;
            let appended = recorder.append(self.appended, &data, 1000);
            if until(appended) {
                return;
            }
            if self.appended.is_multiple_of(500) {
                assert!(Instant::now() < deadline, "the expected never came");
                std::thread::sleep(Duration::from_micros(500));
            }
        }
    }
}

/// Everything that was appended is in a segment or counted, and nothing is in two.
fn check_account(directory: &Path, appended: u64, summary: &RecorderSummary) {
    let counters = summary.counters;
    let lost = counters.pool_empty.packets + counters.storage.packets;
    assert_eq!(counters.stored.packets + lost, appended);
    let mut read = all_packets(directory);
    assert_eq!(read.len() as u64, counters.stored.packets);
    read.sort();
    read.dedup_by_key(|packet| packet.0);
    assert_eq!(read.len() as u64, counters.stored.packets);
    // The segments themselves say what is missing, for each reason.
    let find = store::Find::open(&[directory], store::Selection::default()).unwrap();
    let told = &find.report().completeness;
    let told_lost = |reason| {
        let ledger =
            store::ledger::Ledger { lost_packets: told.lost_packets, ..Default::default() };
        ledger.lost(reason)
    };
    assert_eq!(told_lost(port::Reason::PoolEmpty), counters.pool_empty.packets);
    assert_eq!(told_lost(port::Reason::Storage), counters.storage.packets);
    assert_eq!((told.unreadable_packets, told.interruptions), (0, 0));
    assert_eq!(told.is_complete(), lost == 0);
}

fn a_disk_that_is_full_at_the_start_is_an_error() -> Outcome {
    on_small_disk(6 * MIB, |disk| {
        std::fs::write(disk.join("ballast"), vec![1; (3 * MIB) as usize]).unwrap();
        match Recorder::open(small_config(disk)) {
            Err(store::StoreError::System(error)) => {
                assert_eq!(error.kind(), Kind::NoSpace);
                assert!(error.to_string().contains("free some space"), "{error}");
            }
            other => panic!("{other:?}"),
        }
        assert!(files(disk, ".pcapng").is_empty());
        Ok(())
    })
}

fn segments_shrink_to_what_the_disk_has() -> Outcome {
    on_small_disk(14 * MIB, |disk| {
        let mut config = config(disk);
        config.segment_bytes = 64 << 20;
        let (mut recorder, _) = Recorder::open(config).unwrap();
        let events = recorder.events();
        assert_eq!(events, [RecorderEvent::SegmentShortened { segment_bytes: 8 << 20 }]);
        let mut source = Source { appended: 0 };
        source.run(&mut recorder, |appended| appended == Append::Storage);
        let summary = recorder.finish().unwrap();
        let lengths: Vec<u64> =
            summary.segments.iter().map(|segment| segment.bytes / MIB).collect();
        assert!(lengths.len() >= 2 && lengths[0] >= 7 && lengths[1] >= 3, "{lengths:?}");
        check_account(disk, source.appended, &summary);
        Ok(())
    })
}

fn a_recording_stops_on_a_full_disk_and_goes_on_when_there_is_room() -> Outcome {
    on_small_disk(40 * MIB, |disk| {
        let ballast = disk.join("ballast");
        std::fs::write(&ballast, vec![1; (17 * MIB) as usize]).unwrap();
        let (mut recorder, _) = Recorder::open(small_config(disk)).unwrap();
        let mut source = Source { appended: 0 };
        source.run(&mut recorder, |appended| appended == Append::Storage);
        let failed = |event: &RecorderEvent| matches!(event, RecorderEvent::StorageFailed { reason } if reason.contains("No space"));
        let events = recorder.events();
        assert_eq!(events.iter().filter(|event| failed(event)).count(), 1, "{events:?}");
        let before = recorder.counters();
        assert!(before.storage.packets > 0);

        std::fs::remove_file(ballast).unwrap();
        let mut resumed = 0;
        source.run(&mut recorder, |appended| {
            resumed += u64::from(appended == Append::Stored);
            resumed == 2000
        });
        let summary = recorder.finish().unwrap();
        let resumed = |event: &RecorderEvent| *event == RecorderEvent::StorageResumed;
        assert_eq!(summary.events.iter().filter(|event| resumed(event)).count(), 1);
        assert!(!summary.events.iter().any(failed), "{:?}", summary.events);
        assert_eq!(summary.counters.durable, summary.counters.stored);
        check_account(disk, source.appended, &summary);
        Ok(())
    })
}

fn a_recording_that_ends_on_a_full_disk_counts_what_it_could_not_write() -> Outcome {
    on_small_disk(20 * MIB, |disk| {
        let (mut recorder, _) = Recorder::open(small_config(disk)).unwrap();
        let mut source = Source { appended: 0 };
        source.run(&mut recorder, |appended| appended == Append::Storage);
        let before = recorder.counters();
        let summary = recorder.finish().unwrap();
        // What filled the pool is given up.
        assert!(summary.counters.storage.packets > before.storage.packets + 1000);
        assert_eq!(summary.counters.durable, summary.counters.stored);
        check_account(disk, source.appended, &summary);
        assert!(
            !summary.events.iter().any(|event| matches!(event, RecorderEvent::SealFailed { .. }))
        );
        Ok(())
    })
}

/// Others take what room there is, down to the last byte: the account has its own.
fn the_account_has_its_room_on_a_disk_that_others_fill() -> Outcome {
    on_small_disk(20 * MIB, |disk| {
        let (mut recorder, _) = Recorder::open(small_config(disk)).unwrap();
        let mut ballast = std::fs::File::create(disk.join("ballast")).unwrap();
        while std::io::Write::write(&mut ballast, &[1; 4096]).is_ok() {}
        let mut source = Source { appended: 0 };
        source.run(&mut recorder, |appended| appended == Append::Storage);
        while std::io::Write::write(&mut ballast, &[1; 4096]).is_ok() {}
        let mut dropped = port::Losses::default();
        dropped.add(port::Reason::KernelRing, 77);
        let wire_packets = source.appended + 77;
        let input = store::ledger::InputCounters { wire_packets, filtered_packets: 0, dropped };
        recorder.note_input(input);
        let summary = recorder.finish().unwrap();
        check_account(disk, source.appended, &summary);
        let find = store::Find::open(&[disk], store::Selection::default()).unwrap();
        let lost: u64 = find.report().completeness.lost_packets.iter().sum();
        assert_eq!(summary.counters.stored.packets + lost, wire_packets);
        assert_eq!(summary.segments.len(), 1);
        Ok(())
    })
}

fn main() -> ExitCode {
    testing::run(tests![
        a_disk_that_is_full_at_the_start_is_an_error,
        segments_shrink_to_what_the_disk_has,
        a_recording_stops_on_a_full_disk_and_goes_on_when_there_is_room,
        a_recording_that_ends_on_a_full_disk_counts_what_it_could_not_write,
        the_account_has_its_room_on_a_disk_that_others_fill,
    ])
}
