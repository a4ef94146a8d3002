//! The stage that measures: rates, loss, reordering, duplicates, corruption, latency, gaps.

use port::{Batch, FrameRef};
use wire::checksum::{ChecksumState, verify};
use wire::parse::{Marks, parse_link};
use wire::stamp;

use crate::error::Result;
use crate::histogram::Histogram;
use crate::sequence::{Sequence, SequenceCounters};
use crate::stages::Stage;

/// Streams that are followed one by one; frames of further ones are counted in
/// [`MeterReport::untracked_packets`]. Each costs 128 KiB.
const STREAMS_MAX: usize = 256;

/// What the meter saw.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MeterReport {
    /// Frames.
    pub packets: u64,
    /// Bytes on the wire without FCS, also of cut frames.
    pub bytes: u64,
    /// Frames that are not whole here: no checksum of theirs is verified, and no stamp behind the cut read.
    pub cut_packets: u64,
    /// Frames with a checksum that does not fit, or with headers that make no sense.
    pub corrupt_packets: u64,
    /// Frames with a readable stamp.
    pub stamped_packets: u64,
    /// Stamped frames of more streams than are followed.
    pub untracked_packets: u64,
    /// Sequence figures of each stream, in the order of stream numbers.
    pub streams: Vec<(u16, SequenceCounters)>,
    /// Arrival less the time in the stamp, in ns; only where both clocks are set.
    pub latency_ns: Histogram,
    /// Stamped frames that arrived before they were sent, by the two clocks: these disagree.
    pub negative_latency_packets: u64,
    /// Time between two arrivals, in ns.
    pub inter_arrival_ns: Histogram,
    /// Frames that arrived before the frame ahead of them, by their times.
    pub backward_packets: u64,
    /// Arrival time of the first frame in ns since the Unix epoch; 0 if none has one.
    pub first_time_ns: u64,
    /// Arrival time of the latest frame.
    pub last_time_ns: u64,
}

impl MeterReport {
    /// Sequence figures of all streams together.
    pub fn totals(&self) -> SequenceCounters {
        self.streams.iter().fold(SequenceCounters::default(), |sum, (_, stream)| SequenceCounters {
            received_packets: sum.received_packets + stream.received_packets,
            lost_packets: sum.lost_packets + stream.lost_packets,
            reordered_packets: sum.reordered_packets + stream.reordered_packets,
            reorder_extent_max: sum.reorder_extent_max.max(stream.reorder_extent_max),
            duplicate_packets: sum.duplicate_packets + stream.duplicate_packets,
            beyond_window_packets: sum.beyond_window_packets + stream.beyond_window_packets,
            restarts: sum.restarts + stream.restarts,
        })
    }
}

/// Measures the frames that pass, and lets them pass.
#[derive(Debug)]
pub struct Meter {
    link_type: u16,
    report: MeterReport,
    streams: Vec<(u16, Sequence)>,
}

impl Meter {
    /// For frames of a link type, by pcap's numbers; of one that is not looked into it measures times
    /// and lengths.
    pub fn new(link_type: u16) -> Self {
        Self { link_type, report: MeterReport::default(), streams: Vec::new() }
    }

    /// What was seen so far.
    pub fn report(&self) -> MeterReport {
        let mut report = self.report.clone();
        report.streams =
            self.streams.iter().map(|(stream, seen)| (*stream, seen.counters())).collect();
        report.streams.sort_unstable_by_key(|(stream, _)| *stream);
        report
    }

    fn see(&mut self, frame: FrameRef<'_>) {
        let report = &mut self.report;
        report.packets += 1;
        let wire_bytes = u64::from(frame.meta.wire_length).max(frame.data.len() as u64);
        let is_whole = wire_bytes == frame.data.len() as u64;
        report.bytes += wire_bytes;
        report.cut_packets += u64::from(!is_whole);
        let time_ns = frame.meta.time_ns;
        if time_ns > 0 {
            match (report.last_time_ns, report.first_time_ns) {
                (_, 0) => report.first_time_ns = time_ns,
                (last_ns, _) if time_ns < last_ns => report.backward_packets += 1,
                (last_ns, _) => report.inter_arrival_ns.record(time_ns - last_ns),
            }
            report.last_time_ns = report.last_time_ns.max(time_ns);
        }
        let Some((packet, headers)) = parse_link(self.link_type, frame.data) else { return };
        if is_whole && !frame.meta.checksum_pending {
            // A stamp of a damaged frame proves nothing: the frame is lost to its stream. Damage to a
            // length or a version shows as headers that make no sense before any checksum does.
            let damaged = headers.marks.intersects(Marks::MALFORMED.union(Marks::TRUNCATED));
            if damaged || verify(packet, &headers) == ChecksumState::Invalid {
                report.corrupt_packets += 1;
                return;
            }
        }
        // Frames without a transport header carry their stamp right behind the network header.
        if let Some(stamp) = stamp::read(headers.payload(packet)) {
            self.see_stamp(stamp, time_ns);
        }
    }

    fn see_stamp(&mut self, stamp: stamp::Stamp, time_ns: u64) {
        self.report.stamped_packets += 1;
        match self.stream(stamp.stream) {
            Some(sequence) => sequence.see(stamp.sequence, stamp.time_ns),
            None => self.report.untracked_packets += 1,
        }
        if time_ns == 0 || stamp.time_ns == 0 {
            return;
        }
        match time_ns.checked_sub(stamp.time_ns) {
            Some(latency_ns) => self.report.latency_ns.record(latency_ns),
            None => self.report.negative_latency_packets += 1,
        }
    }

    fn stream(&mut self, number: u16) -> Option<&mut Sequence> {
        // The stream of the last frame is first: no search where there is one stream.
        let position = match self.streams.iter().position(|(stream, _)| *stream == number) {
            Some(position) => position,
            None if self.streams.len() < STREAMS_MAX => {
                self.streams.push((number, Sequence::default()));
                self.streams.len() - 1
            }
            None => return None,
        };
        self.streams.swap(0, position);
        self.streams.first_mut().map(|(_, sequence)| sequence)
    }
}

impl Stage for Meter {
    fn process(&mut self, batch: &mut Batch) -> Result<()> {
        for frame in batch.frames() {
            self.see(frame);
        }
        Ok(())
    }
}
