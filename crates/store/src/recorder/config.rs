//! What a recorder is told before it begins.

use std::path::PathBuf;
use std::time::Duration;

use sys::direct_io::Engine;

use crate::chunk::CHUNK_BYTES;
use crate::record::{Interface, MAXIMUM_CAPTURED_LENGTH, Section, TimeResolution};
use crate::segment::APPLICATION;

/// Shortest segment in bytes; a disk without room for one is full.
pub const SEGMENT_BYTES_MIN: u64 = 4 << 20;
/// Segments from this length on have a header chunk of 1 MiB, which keeps full chunks aligned to
/// their own length.
pub const SEGMENT_BYTES_ALIGNED: u64 = 256 << 20;
/// The pool unless told otherwise, in bytes.
pub const POOL_BYTES: u64 = 256 << 20;
/// The smallest pool in bytes, four chunks: one open, one being written, two between.
pub const POOL_BYTES_MIN: u64 = 4 * CHUNK_BYTES as u64;

/// Where and how to record.
#[derive(Debug, Clone)]
pub struct RecorderConfig {
    /// Directory of the segments; made if it does not exist.
    pub directory: PathBuf,
    /// Where the packets come from. Times are always nanoseconds without offset.
    pub interface: Interface,
    /// Hardware, operating system, comment for the section header of each segment.
    pub section: Section,
    /// Number of this recorder among those that share the directory.
    pub stream: u16,
    /// Length of a segment in bytes, at least [`SEGMENT_BYTES_MIN`]; less is used where the disk
    /// has no room for it.
    pub segment_bytes: u64,
    /// Memory between packets and disk in bytes, at least [`POOL_BYTES_MIN`]: rate × longest stall of
    /// the disk.
    pub pool_bytes: u64,
    /// A chunk with packets is written at most this long after [`tick`](crate::Recorder::tick)
    /// first saw it, full or not; a short one takes a multiple of 4096 bytes.
    pub flush_interval: Duration,
    /// How often what was written is flushed to the disk; `None` only when a segment is sealed.
    pub sync_interval: Option<Duration>,
    /// How to write.
    pub engine: Engine,
}

impl RecorderConfig {
    /// Stream 0, segments of 1 GiB, a pool of 256 MiB, flush and sync once a second.
    pub fn new(directory: impl Into<PathBuf>, interface: Interface) -> Self {
        Self {
            directory: directory.into(),
            interface,
            section: Section::default(),
            stream: 0,
            segment_bytes: 1 << 30,
            pool_bytes: POOL_BYTES,
            flush_interval: Duration::from_secs(1),
            sync_interval: Some(Duration::from_secs(1)),
            engine: Engine::Auto,
        }
    }

    /// The same with everything in its limits, as segments will say it.
    pub(super) fn normalised(mut self) -> Self {
        self.segment_bytes = self.segment_bytes.max(SEGMENT_BYTES_MIN).next_multiple_of(4096);
        self.interface.time_resolution = TimeResolution::NANOSECONDS;
        self.interface.time_offset_s = 0;
        let limit = MAXIMUM_CAPTURED_LENGTH;
        let snap_length = self.interface.snap_length;
        self.interface.snap_length = if snap_length == 0 { limit } else { snap_length.min(limit) };
        self.section.application.get_or_insert_with(|| APPLICATION.into());
        self
    }

    /// Chunks in the pool.
    pub(super) fn pool_chunks(&self) -> u32 {
        let chunks = self.pool_bytes.max(POOL_BYTES_MIN) / CHUNK_BYTES as u64;
        u32::try_from(chunks).unwrap_or(u32::MAX)
    }
}
