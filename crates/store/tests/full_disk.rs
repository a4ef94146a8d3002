//! Full disks: recordings onto a small file system in memory.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod recording;

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use port::fault::FaultyTx;
use port::{Batch, FrameMeta, Reason, TxQueue};
use recording::{all_packets, config, files};
use store::file_port::FileTx;
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
    assert_eq!(told_lost(Reason::PoolEmpty), counters.pool_empty.packets);
    assert_eq!(told_lost(Reason::Storage), counters.storage.packets);
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
        dropped.add(Reason::KernelRing, 77);
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

/// Of a capture on a full disk as much is counted as transmitted as its reader finds.
fn a_capture_holds_what_is_counted() -> Outcome {
    for (name, faults) in
        [("a.pcap", ""), ("a.pcapng", ""), ("b.pcapng", "duplicate=0.1&delay=0.1&delay_frames=9")]
    {
        on_small_disk(3 * MIB, |disk| {
            let path = disk.join(name);
            let tx = FileTx::create(&path, || true).unwrap();
            let mut tx = FaultyTx::new(tx, faults.parse()?);
            let mut batch = Batch::new(1000);
            let mut given = 0;
            let error = loop {
                while batch.push(&[7; 1000], FrameMeta::local(1000)) {
                    given += 1;
                }
                match tx.transmit(&mut batch) {
                    Ok(taken) => assert_eq!((taken, batch.len()), (64, 0)),
                    Err(error) => break error.to_string(),
                }
            };
            assert!(tx.flush(Duration::ZERO).is_err() || faults.is_empty());
            let held = recording::packets(&path).len() as u64;
            let counters = tx.counters().unwrap();
            let lost = counters.dropped.total() - counters.dropped.get(Reason::Injected);
            assert!(counters.dropped.get(Reason::Storage) > 0 && held > 2000, "{counters:?}");
            assert_eq!(counters.accepted_packets + batch.len() as u64, given);
            assert_eq!(counters.accepted_packets + counters.added_packets - lost, held);
            assert!(error.contains(&path.display().to_string()), "{error}");
            let spaced = store::words::counted(held, "packet");
            assert!(error.contains(&format!("it holds {spaced}; free some space")), "{error}");
            Ok(())
        })?;
    }
    Ok(())
}

/// The same where the disk is full only when the last frames are written out.
fn what_is_gathered_at_the_end_counts_only_when_written() -> Outcome {
    on_small_disk(MIB / 2, |disk| {
        let path = disk.join("a.pcapng");
        let mut tx = FileTx::create(&path, || true).unwrap();
        let mut batch = Batch::new(1000);
        for _ in 0..10 {
            while batch.push(&[7; 1000], FrameMeta::local(1000)) {}
            assert_eq!(tx.transmit(&mut batch).unwrap(), 64);
        }
        assert!(tx.flush(Duration::ZERO).unwrap_err().to_string().contains("it holds"));
        let counters = tx.counters().unwrap();
        let held = recording::packets(&path).len() as u64;
        assert_eq!((counters.accepted_packets, held > 400), (640, true), "{held}");
        assert_eq!(counters.dropped.get(Reason::Storage), 640 - held);
        // Another batch does not go behind a gap.
        while batch.push(&[7; 1000], FrameMeta::local(1000)) {}
        assert!(tx.transmit(&mut batch).is_err());
        assert_eq!(tx.counters().unwrap(), counters);
        // And one without room for its header is none.
        std::fs::write(disk.join("ballast"), vec![0; MIB as usize]).unwrap_err();
        assert!(FileTx::create(disk.join("b.pcapng"), || true).is_err());
        Ok(())
    })
}

fn main() -> ExitCode {
    testing::run(tests![
        a_capture_holds_what_is_counted,
        what_is_gathered_at_the_end_counts_only_when_written,
        a_disk_that_is_full_at_the_start_is_an_error,
        segments_shrink_to_what_the_disk_has,
        a_recording_stops_on_a_full_disk_and_goes_on_when_there_is_room,
        a_recording_that_ends_on_a_full_disk_counts_what_it_could_not_write,
        the_account_has_its_room_on_a_disk_that_others_fill,
    ])
}
