//! The unit of writing: up to 1 MiB of packets that is checked, kept or lost as a whole.
//!
//! An *open chunk* takes packets, each as one Enhanced Packet Block without options. It knows nothing
//! of segments: its place in a file is decided when it is written, so that a chunk whose write
//! failed can go elsewhere unchanged. The trailer ([`crate::trailer`]) is added then.
//! Limits: captured bytes above 262,144 are cut off, the original length is kept.

use std::ops::DerefMut;

use crate::pcapng::encode_enhanced_packet;
use crate::record::MAXIMUM_CAPTURED_LENGTH;
use crate::trailer::TRAILER_BYTES;

/// Longest chunk in bytes, trailer included.
pub const CHUNK_BYTES: usize = 1 << 20;

/// How much of a chunk packet blocks may fill: a trailer always fits behind them.
const CONTENT_BYTES_MAX: usize = CHUNK_BYTES - TRAILER_BYTES;

/// What a chunk holds, apart from the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkContent {
    /// Bytes of packet blocks at the beginning of the memory.
    pub used: usize,
    /// Packets.
    pub packets: u32,
    /// Captured bytes of the packets.
    pub captured_bytes: u64,
    /// Earliest time in ns; `u64::MAX` without packets.
    pub time_min_ns: u64,
    /// Latest time in ns; 0 without packets.
    pub time_max_ns: u64,
}

impl Default for ChunkContent {
    fn default() -> Self {
        Self { used: 0, packets: 0, captured_bytes: 0, time_min_ns: u64::MAX, time_max_ns: 0 }
    }
}

/// A chunk that takes packets.
#[derive(Debug)]
pub struct OpenChunk<M> {
    memory: M,
    content: ChunkContent,
}

impl<M: DerefMut<Target = [u8]>> OpenChunk<M> {
    /// An empty chunk in `memory`, which should have [`CHUNK_BYTES`]; less makes a shorter chunk.
    pub fn new(memory: M) -> Self {
        Self { memory, content: ChunkContent::default() }
    }

    /// Copies a packet to the end. `false`, with nothing changed, if there is no room for it.
    #[inline]
    #[must_use]
    pub fn push(&mut self, time_ns: u64, data: &[u8], original_length: u32) -> bool {
        let captured = data.get(..MAXIMUM_CAPTURED_LENGTH as usize).unwrap_or(data);
        let memory: &mut [u8] = &mut self.memory;
        let end = memory.len().saturating_sub(TRAILER_BYTES).min(CONTENT_BYTES_MAX);
        let Some(room) = memory.get_mut(self.content.used..end) else {
            return false;
        };
        let Some(length) = encode_enhanced_packet(room, 0, time_ns, original_length, captured)
        else {
            return false;
        };
        let content = &mut self.content;
        content.used += length;
        content.packets += 1;
        content.captured_bytes += captured.len() as u64;
        content.time_min_ns = content.time_min_ns.min(time_ns);
        content.time_max_ns = content.time_max_ns.max(time_ns);
        true
    }

    /// What it holds so far.
    pub fn content(&self) -> &ChunkContent {
        &self.content
    }

    /// Ends it.
    pub fn close(self) -> (M, ChunkContent) {
        (self.memory, self.content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_fills_up_and_leaves_room_for_the_trailer() {
        let mut chunk = OpenChunk::new(vec![0; CHUNK_BYTES]);
        let mut count = 0;
        while chunk.push(100 + count, &[7; 60], 60) {
            count += 1;
        }
        assert_eq!(count as usize, CONTENT_BYTES_MAX / 92);
        let (_, content) = chunk.close();
        assert_eq!(content.used, count as usize * 92);
        assert_eq!((content.time_min_ns, content.time_max_ns), (100, 99 + count));
        assert_eq!(content.captured_bytes, 60 * count);
    }

    #[test]
    fn what_no_reader_accepts_is_cut() {
        let mut chunk = OpenChunk::new(vec![0; CHUNK_BYTES]);
        assert!(chunk.push(1, &vec![1; 300_000], 300_000));
        assert_eq!(chunk.content().captured_bytes, 262_144);
    }

    #[test]
    fn memory_that_is_too_short_takes_nothing() {
        for length in [0, 100, TRAILER_BYTES, TRAILER_BYTES + 20] {
            assert!(!OpenChunk::new(vec![0; length]).push(1, &[1; 60], 60));
        }
    }
}
