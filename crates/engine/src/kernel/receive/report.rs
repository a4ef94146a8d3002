//! What the program in the kernel counted, in the words of the user plane.

use ebpf::program::receive::{Figures, StreamFigures};

use crate::histogram::Histogram;
use crate::sequence::SequenceCounters;
use crate::stages::meter::MeterReport;

impl From<&Figures> for MeterReport {
    /// Corrupt frames are not known: no checksum is verified. Cut ones there are none.
    fn from(figures: &Figures) -> Self {
        let merged = |values: &[ebpf::part::histogram::Values]| {
            values.iter().map(Histogram::from).fold(Histogram::default(), |mut sum, histogram| {
                sum.merge(&histogram);
                sum
            })
        };
        Self {
            packets: figures.packets,
            bytes: figures.bytes,
            cut_packets: 0,
            corrupt_packets: 0,
            stamped_packets: figures.stamped_packets,
            untracked_packets: figures.untracked_packets,
            streams: figures.streams.iter().map(|seen| (seen.stream, seen.into())).collect(),
            latency_ns: merged(&figures.latency_ns),
            negative_latency_packets: figures.negative_latency_packets,
            inter_arrival_ns: merged(&figures.inter_arrival_ns),
            backward_packets: figures.backward_packets,
            first_time_ns: figures.first_time_ns,
            last_time_ns: figures.last_time_ns,
        }
    }
}

impl From<&StreamFigures> for SequenceCounters {
    fn from(seen: &StreamFigures) -> Self {
        Self {
            received_packets: seen.received_packets,
            lost_packets: seen.lost_packets,
            reordered_packets: seen.reordered_packets,
            reorder_extent_max: seen.reorder_extent_max,
            duplicate_packets: seen.duplicate_packets,
            beyond_window_packets: seen.beyond_window_packets,
            restarts: seen.restarts,
        }
    }
}
