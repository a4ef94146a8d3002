//! Segments that somebody cuts while they are being recorded to: what is gone is counted, and what is
//! left is kept.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod recording;

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::time::Duration;

use recording::{Packet, all_packets, append, config, files};
use store::recover::{Repair, recover_directory};
use store::scan::SegmentFile;
use store::time_index::TimeIndex;
use store::trailer::ChunkTrailer;
use store::{Find, Recorder, RecorderCounters, RecorderEvent, RecorderSummary, Selection};
use tempfile::TempDir;

const BASE_NS: u64 = 1_796_094_922_000_000_000;
/// Packets of each chunk.
const PACKETS: u64 = 250;

/// A recording under way, and what was appended to it.
struct Recording {
    directory: TempDir,
    recorder: Recorder,
    sent: Vec<Packet>,
}

impl Recording {
    /// Four chunks are written.
    fn start(sync_interval: Option<Duration>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut config = config(directory.path());
        config.sync_interval = sync_interval;
        let (recorder, _) = Recorder::open(config).unwrap();
        let mut recording = Self { directory, recorder, sent: Vec::new() };
        recording.write_chunks(4);
        recording
    }

    fn write_chunks(&mut self, count: u64) {
        for _ in 0..count {
            for _ in 0..PACKETS {
                let number = self.sent.len() as u64;
                let packet = (BASE_NS + number, vec![number as u8; 700], 700);
                append(&mut self.recorder, packet.0, &packet.1, packet.2);
                self.sent.push(packet);
            }
            self.recorder.flush();
        }
        let is_settled = |counters: RecorderCounters| {
            counters.written.packets + counters.storage.packets >= self.sent.len() as u64
        };
        for _ in 0..10_000 {
            if is_settled(self.recorder.counters()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("{:?} of {}", self.recorder.counters(), self.sent.len());
    }

    fn open_segment(&self) -> PathBuf {
        self.directory.path().join("s00-000001.open.pcapng")
    }

    /// Chunks of the open segment, header first.
    fn chunks(&self) -> Vec<ChunkTrailer> {
        let file = SegmentFile::open(&self.open_segment()).unwrap();
        TimeIndex::rebuild(&file).unwrap().chunks
    }

    fn cut(&self, bytes: u64) {
        let file = OpenOptions::new().write(true).open(self.open_segment()).unwrap();
        file.set_len(bytes).unwrap();
    }

    /// Ends the recording; `kept` says which chunks should be left.
    fn finish(self, kept: impl Fn(usize) -> bool) -> (TempDir, RecorderSummary) {
        let chunks = self.sent.chunks(PACKETS as usize).enumerate();
        let left: Vec<Packet> = chunks
            .filter(|(number, _)| kept(*number))
            .flat_map(|(_, chunk)| chunk.to_vec())
            .collect();
        let lost = (self.sent.len() - left.len()) as u64;
        let path = self.open_segment();
        let summary = self.recorder.finish().unwrap();
        let counters = summary.counters;
        let stored = left.len() as u64;
        assert_eq!((counters.stored.packets, counters.storage.packets), (stored, lost));
        assert_eq!((counters.stored.bytes, counters.storage.bytes), (stored * 700, lost * 700));
        assert_eq!((counters.durable, counters.written), (counters.stored, counters.stored));
        let cut = RecorderEvent::SegmentCut { path, packets: lost };
        assert!(summary.events.contains(&cut), "{:?}", summary.events);
        let sealed: u64 = summary.segments.iter().map(|segment| segment.packets).sum();
        assert_eq!(sealed, stored);
        check(self.directory.path(), &left, lost);
        for index in files(self.directory.path(), ".time-index") {
            std::fs::remove_file(index).unwrap();
        }
        check(self.directory.path(), &left, lost);
        (self.directory, summary)
    }
}

/// Nothing but `left` is found, and `lost` packets are told as lost to the storage, once.
fn check(directory: &Path, left: &[Packet], lost: u64) {
    assert!(all_packets(directory) == left);
    let mut find = Find::open(&[directory], Selection::default()).unwrap();
    while find.next_record().unwrap().is_some() {}
    let report = find.report();
    assert_eq!((report.packets_found, report.packets_unreadable), (left.len() as u64, 0));
    let told = &report.completeness;
    assert_eq!(told.lost_packets, [0, 0, 0, 0, lost, 0, 0, 0]);
    assert_eq!((told.unreadable_packets, told.interruptions), (0, 0));
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    assert!(recover_directory(directory, Repair::Report).unwrap().segments.is_empty());
}

/// Noticed while it goes on: what comes later goes to another segment.
#[test]
fn a_segment_that_is_cut_keeps_its_whole_chunks_and_the_next_is_whole() {
    for case in 0..6 {
        let mut recording = Recording::start(Some(Duration::from_millis(50)));
        let chunks = recording.chunks();
        let (second, last) = (chunks[2], chunks[4]);
        let (bytes, whole) = match case {
            0 => (0, 0),
            1 => (chunks[0].end(), 0),
            2 => (second.offset + 77, 1),
            3 => (second.end(), 2),
            4 => (last.end() - 1, 3),
            // Only the room behind the chunks.
            _ => (last.end(), 4),
        };
        recording.cut(bytes);
        // Several times the interval at which it looks.
        std::thread::sleep(Duration::from_millis(300));
        recording.write_chunks(2);
        let (_, summary) = recording.finish(|chunk| chunk < whole || chunk >= 4);
        assert_eq!(summary.segments.len(), if whole == 0 { 1 } else { 2 }, "case {case}");
    }
}

/// Noticed only when it is sealed: chunks behind the hole are whole.
#[test]
fn chunks_that_were_written_behind_a_cut_are_kept() {
    for (cut_from_start, kept_before) in [(true, 0), (false, 1)] {
        let mut recording = Recording::start(None);
        let second = recording.chunks()[2];
        recording.cut(if cut_from_start { 0 } else { second.offset + 5000 });
        recording.write_chunks(2);
        let (_, summary) = recording.finish(|chunk| chunk < kept_before || chunk >= 4);
        assert_eq!(summary.segments.len(), 1);
    }
}

/// What is left then is the account, which says what was lost.
#[test]
fn a_recording_that_is_cut_to_nothing_says_so() {
    let recording = Recording::start(None);
    recording.cut(0);
    let (_, summary) = recording.finish(|_| false);
    assert_eq!(summary.segments.len(), 1);
}

/// The one behind, which has no packets yet, is as good as gone.
#[test]
fn a_segment_that_is_cut_before_it_is_used_is_not_used() {
    let mut recording = Recording::start(Some(Duration::from_millis(50)));
    let next = recording.directory.path().join("s00-000002.open.pcapng");
    while !next.exists() {
        recording.write_chunks(1);
    }
    // Its header is written, and it is flushed.
    std::thread::sleep(Duration::from_millis(300));
    OpenOptions::new().write(true).open(&next).unwrap().set_len(0).unwrap();
    recording.write_chunks(20);
    let Recording { directory, recorder, sent } = recording;
    let summary = recorder.finish().unwrap();
    assert_eq!(summary.counters.stored.packets, sent.len() as u64);
    assert_eq!(summary.counters.storage.packets, 0);
    let cut = RecorderEvent::SegmentCut { path: next, packets: 0 };
    assert!(summary.events.contains(&cut), "{:?}", summary.events);
    assert!(all_packets(directory.path()) == sent);
}
