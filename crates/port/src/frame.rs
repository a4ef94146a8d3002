//! One frame inside a [`Batch`](crate::Batch): a move-only token plus what is known about it.

use sys::packet::TimeSource;

/// What is known about a frame beside its bytes. Plain values, copied freely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameMeta {
    /// Arrival time in ns since the Unix epoch; 0 where the port has no clock.
    pub time_ns: u64,
    /// Who took the time; `None` where nobody did.
    pub time_source: Option<TimeSource>,
    /// Whether a checksum is still to be filled in by whoever sends it on: a frame of this host.
    pub checksum_pending: bool,
    /// Length on the wire in bytes without FCS; larger than the data of a sliced frame.
    pub wire_length: u32,
}

impl FrameMeta {
    /// Meta data of a frame that was made here and has not been on a wire.
    pub fn local(length: usize) -> Self {
        Self { time_ns: 0, time_source: None, checksum_pending: false, wire_length: length as u32 }
    }
}

/// Exclusive right to one frame's bytes in the memory of its batch.
///
/// Neither `Clone` nor `Copy`: a frame leaves a batch once, by being dropped or sent.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) offset: u32,
    pub(crate) length: u32,
    pub(crate) meta: FrameMeta,
}

/// A frame as read from a batch.
#[derive(Debug, Clone, Copy)]
pub struct FrameRef<'a> {
    /// The captured bytes, beginning with the destination MAC address on Ethernet.
    pub data: &'a [u8],
    /// Time, source of the time, length on the wire.
    pub meta: FrameMeta,
}
