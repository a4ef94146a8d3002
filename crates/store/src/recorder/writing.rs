//! A segment while chunks are written to it.
//!
//! Chunks get their places one after the other, but their writes end in any order. A buffer is
//! *released* only when its own write and all before it in the segment have ended well, so that
//! after a failure everything from the first failed chunk on is still in memory: the segment ends
//! before that chunk, and the chunks are written again elsewhere. No hole is ever left.

use std::collections::VecDeque;

use sys::memory::Buffer;

use super::keeper::{Prepared, Share};
use super::sealer::Ended;
use crate::chunk::ChunkContent;
use crate::ledger::Ledger;
use crate::time_index::TimeIndex;
use crate::trailer::{self, ALIGNMENT_BYTES, ChunkTrailer, TRAILER_BYTES};

/// A chunk on its way to the disk.
#[derive(Debug)]
pub(super) struct FullChunk {
    pub(super) buffer: Buffer,
    pub(super) content: ChunkContent,
    /// The account up to and including this chunk.
    pub(super) ledger: Ledger,
}

impl FullChunk {
    /// Its length with padding and trailer.
    pub(super) fn length(&self) -> usize {
        (self.content.used + TRAILER_BYTES).next_multiple_of(ALIGNMENT_BYTES)
    }
}

#[derive(Debug)]
enum State {
    InFlight,
    Written(Buffer),
    Failed(Buffer),
    /// The engine broke down and kept the buffer.
    Lost,
}

#[derive(Debug)]
struct Slot {
    trailer: ChunkTrailer,
    content: ChunkContent,
    state: State,
}

/// The segment and the chunks that have a place in it.
#[derive(Debug)]
pub(super) struct Writing {
    pub(super) prepared: Prepared,
    /// Chunks that are on disk together with all before them.
    index: TimeIndex,
    /// Chunks with a place, from the first that is not released.
    slots: VecDeque<Slot>,
    /// Where the next chunk goes, what number it gets, how many packets precede it.
    at: u64,
    next_sequence: u64,
    packets_before: u64,
    unflushed: Share,
    /// Why the first failed write failed.
    failure: Option<String>,
}

impl Writing {
    pub(super) fn new(prepared: Prepared) -> Self {
        let header = prepared.header;
        Self {
            at: header.end(),
            next_sequence: header.sequence + 1,
            index: TimeIndex { chunks: vec![header] },
            prepared,
            slots: VecDeque::new(),
            packets_before: 0,
            unflushed: Share::default(),
            failure: None,
        }
    }

    pub(super) fn number(&self) -> u32 {
        self.prepared.facts.number
    }

    /// Whether a chunk of `length` bytes has room.
    pub(super) fn fits(&self, length: usize) -> bool {
        self.at + length as u64 <= self.prepared.capacity
    }

    /// Whether more than half is taken, so that the next segment should be made ready.
    pub(super) fn is_half_full(&self) -> bool {
        self.at > self.prepared.capacity / 2
    }

    /// Gives the chunk its place: completes its bytes, returns its offset, length and sequence
    /// number. `None` if its memory is too short, which no chunk of the recorder is.
    pub(super) fn place(&mut self, chunk: &mut FullChunk) -> Option<(u64, usize, u64)> {
        let content = chunk.content;
        let time_min_ns = if content.packets > 0 { content.time_min_ns } else { 0 };
        let mut trailer = ChunkTrailer {
            sequence: self.next_sequence,
            offset: self.at,
            packets: content.packets,
            captured_bytes: content.captured_bytes,
            time_min_ns,
            time_max_ns: content.time_max_ns,
            packets_before: self.packets_before,
            ledger: chunk.ledger,
            ..self.prepared.facts.trailer()
        };
        let length = trailer::seal(&mut chunk.buffer, content.used, 0, &mut trailer)?;
        self.slots.push_back(Slot { trailer, content, state: State::InFlight });
        self.at += length as u64;
        self.next_sequence += 1;
        self.packets_before += u64::from(content.packets);
        Some((trailer.offset, length, trailer.sequence))
    }

    /// Takes a chunk's buffer back after its write has ended.
    pub(super) fn completed(&mut self, sequence: u64, buffer: Buffer, failure: Option<String>) {
        let first = self.next_sequence - self.slots.len() as u64;
        let slot = sequence.checked_sub(first).and_then(|index| self.slots.get_mut(index as usize));
        if let Some(slot) = slot {
            slot.state = match &failure {
                None => State::Written(buffer),
                Some(_) => State::Failed(buffer),
            };
        }
        self.failure = self.failure.take().or(failure);
    }

    /// Gives up the buffers in flight: the engine that had them is broken.
    pub(super) fn lose_in_flight(&mut self, reason: &str) {
        for slot in self.slots.iter_mut().filter(|slot| matches!(slot.state, State::InFlight)) {
            slot.state = State::Lost;
            self.failure.get_or_insert_with(|| reason.into());
        }
    }

    pub(super) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Whether any chunk was written to it.
    pub(super) fn has_chunks(&self) -> bool {
        self.index.chunks.len() > 1
    }

    /// Whether somebody has removed its file or cut it: chunks never reach up to the end.
    pub(super) fn is_damaged(&self) -> bool {
        let file = &self.prepared.file;
        file.is_removed() || file.is_shorter_than(self.prepared.file_bytes())
    }

    pub(super) fn has_in_flight(&self) -> bool {
        self.slots.iter().any(|slot| matches!(slot.state, State::InFlight))
    }

    /// The next buffer that is free again, with what had been in it.
    pub(super) fn release(&mut self) -> Option<(Buffer, Share)> {
        if !matches!(self.slots.front()?.state, State::Written(_)) {
            return None;
        }
        let slot = self.slots.pop_front()?;
        let State::Written(buffer) = slot.state else { return None };
        let share =
            Share { packets: u64::from(slot.trailer.packets), bytes: slot.trailer.captured_bytes };
        self.index.chunks.push(slot.trailer);
        self.unflushed.packets += share.packets;
        self.unflushed.bytes += share.bytes;
        Some((buffer, share))
    }

    /// What was released and is not covered by a flush; the caller flushes now.
    pub(super) fn take_unflushed(&mut self) -> Share {
        std::mem::take(&mut self.unflushed)
    }

    /// Ends the segment behind the last released chunk. Returns what is to be sealed, the chunks to
    /// be written elsewhere, and the share of chunks whose bytes are gone. Nothing may be in flight.
    pub(super) fn end(self) -> (Ended, Vec<FullChunk>, Share) {
        let mut again = Vec::new();
        let mut lost = Share::default();
        for slot in self.slots {
            match slot.state {
                State::Written(buffer) | State::Failed(buffer) => {
                    let ledger = slot.trailer.ledger;
                    again.push(FullChunk { buffer, content: slot.content, ledger });
                }
                State::InFlight | State::Lost => {
                    lost.packets += u64::from(slot.content.packets);
                    lost.bytes += slot.content.captured_bytes;
                }
            }
        }
        let ended = Ended {
            file_bytes: self.prepared.file_bytes(),
            file: self.prepared.file,
            index: self.index,
            unflushed: self.unflushed,
        };
        (ended, again, lost)
    }
}

#[cfg(test)]
mod tests;
