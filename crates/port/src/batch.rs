//! Up to 64 frames of one memory, in order, moved as a whole.

use std::sync::Arc;

use sys::packet::{Block, FrameFlags, TimeSource};
use sys::xsk::Frames;

use crate::error::{PortError, Result};
use crate::frame::{Frame, FrameMeta, FrameRef};
use crate::queue::PortDescription;

/// Frames that a batch holds at most.
///
/// 64 descriptors and 64 small frames stay within the first-level cache; a system call or a ring
/// hand-over shared by 64 frames is no longer what a frame costs.
pub const BATCH_FRAMES: usize = 64;

/// Slots are whole cache lines, and an odd number of them, so that the first lines of a batch's
/// frames spread over all sets of the cache instead of falling into a few.
const LINE_BYTES: usize = 64;

/// Up to [`BATCH_FRAMES`] frames and the memory that they live in.
///
/// The memory is a slab of equal slots which the batch owns; or a share of a received block of a
/// kernel ring, which goes back to the kernel with the last batch that refers to it; or chunks of a
/// UMEM, which go back to it with the batch.
#[derive(Debug, Default)]
pub struct Batch {
    frames: Vec<Frame>,
    /// Captured bytes of `frames`: asked for several times a batch, so kept and not added up.
    bytes: u64,
    slab: Vec<u8>,
    slot_bytes: usize,
    slots_used: usize,
    received: Received,
}

/// Memory of a kernel ring that frames lie in.
#[derive(Debug, Default)]
enum Received {
    /// None: they lie in the slab.
    #[default]
    Nothing,
    /// Frames begin at their offsets in the block.
    Block(Arc<Block>),
    /// Frames are the pieces of these numbers.
    Umem(Frames),
}

impl Received {
    fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }
}

impl Batch {
    /// A batch whose slots hold frames of up to `frame_bytes_max` bytes each.
    pub fn new(frame_bytes_max: usize) -> Self {
        let mut batch = Self::default();
        batch.reserve(frame_bytes_max);
        batch
    }

    /// Frames in the batch.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether there is no frame in it.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Whether no further frame can be pushed.
    pub fn is_full(&self) -> bool {
        self.frames.len() == BATCH_FRAMES
            || !self.received.is_nothing()
            || self.slots_used == BATCH_FRAMES
    }

    /// Captured bytes of all frames.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Makes every slot at least `frame_bytes_max` long. Frames in the batch are dropped if the
    /// slab has to grow: call it on an empty batch. The only place where a batch allocates.
    pub fn reserve(&mut self, frame_bytes_max: usize) {
        self.frames.reserve_exact(BATCH_FRAMES.saturating_sub(self.frames.capacity()));
        if self.slot_bytes >= frame_bytes_max && self.slot_bytes > 0 {
            return;
        }
        self.clear();
        let lines = frame_bytes_max.div_ceil(LINE_BYTES).max(1);
        let lines = if lines > 1 { lines | 1 } else { lines };
        self.slot_bytes = lines * LINE_BYTES;
        self.slab = vec![0; self.slot_bytes * BATCH_FRAMES];
    }

    /// Longest frame that a slot takes, in bytes.
    pub fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    /// Drops all frames and gives a kernel's memory back.
    pub fn clear(&mut self) {
        self.frames.clear();
        self.bytes = 0;
        self.slots_used = 0;
        self.received = Received::Nothing;
    }

    /// The frames in order.
    pub fn frames(&self) -> impl ExactSizeIterator<Item = FrameRef<'_>> + Clone {
        let (received, slab) = (&self.received, self.slab.as_slice());
        self.frames
            .iter()
            .map(move |frame| FrameRef { data: data(received, slab, frame), meta: frame.meta })
    }

    /// Copies a frame to the end. `false` if the batch is full or the frame longer than a slot.
    #[must_use]
    pub fn push(&mut self, data: &[u8], meta: FrameMeta) -> bool {
        if self.is_full() || data.len() > self.slot_bytes {
            return false;
        }
        let offset = self.slots_used * self.slot_bytes;
        self.slab[offset..offset + data.len()].copy_from_slice(data);
        self.frames.push(Frame { offset: offset as u32, length: data.len() as u32, meta });
        self.bytes += data.len() as u64;
        self.slots_used += 1;
        true
    }

    /// Lets `write` make `lengths.len()` frames in place at the front of an empty slab: frame `i`
    /// at byte `i * stride`, its length left in `lengths[i]`.
    ///
    /// This is the generator's way in: no frame is copied.
    pub fn write(&mut self, count: usize, write: impl FnOnce(&mut [u8], usize, &mut [u32])) {
        self.clear();
        let count = count.min(BATCH_FRAMES);
        let mut lengths = [0; BATCH_FRAMES];
        write(&mut self.slab, self.slot_bytes, &mut lengths[..count]);
        let slot_bytes = self.slot_bytes;
        self.frames.extend(lengths[..count].iter().enumerate().map(|(slot, &length)| {
            let length = length.min(slot_bytes as u32);
            Frame {
                offset: (slot * slot_bytes) as u32,
                length,
                meta: FrameMeta::local(length as usize),
            }
        }));
        self.slots_used = count;
        self.sum_bytes();
    }

    /// Changes the bytes of frame `index`. Not those of a kernel block, which may be shared.
    pub fn frame_mut(&mut self, index: usize) -> Option<&mut [u8]> {
        let frame = self.frames.get(index)?;
        let (start, length) = (frame.offset as usize, frame.length as usize);
        match &mut self.received {
            Received::Nothing => self.slab.get_mut(start..start + length),
            Received::Block(_) => None,
            Received::Umem(frames) => frames.piece_mut(start).get_mut(..length),
        }
    }

    /// Gives all frames the same time of arrival.
    pub fn set_time(&mut self, time_ns: u64) {
        for frame in &mut self.frames {
            frame.meta.time_ns = time_ns;
        }
    }

    /// Removes the first `count` frames: they were sent.
    pub fn drop_front(&mut self, count: usize) {
        if count >= self.frames.len() {
            self.clear();
        } else {
            self.frames.drain(..count);
            self.sum_bytes();
        }
    }

    /// Removes the last frame, if there is one.
    pub fn drop_back(&mut self) {
        let last = self.frames.pop();
        self.bytes -= last.map_or(0, |frame| u64::from(frame.length));
    }

    /// Keeps the first `count` frames; returns how many were dropped.
    pub fn truncate(&mut self, count: usize) -> usize {
        let dropped = self.frames.len().saturating_sub(count);
        if count == 0 {
            self.clear();
        } else if dropped > 0 {
            self.frames.truncate(count);
            self.sum_bytes();
        }
        dropped
    }

    /// Keeps at most the first `bytes` bytes of each frame; how long it was stays in its
    /// [`FrameMeta::wire_length`].
    pub fn snap(&mut self, bytes: u32) {
        for frame in &mut self.frames {
            frame.length = frame.length.min(bytes);
        }
        self.sum_bytes();
    }

    /// Keeps the frames for which `keep` says so, in order; returns how many were dropped.
    pub fn retain(&mut self, mut keep: impl FnMut(FrameRef<'_>) -> bool) -> usize {
        let before = self.frames.len();
        let (received, slab) = (&self.received, self.slab.as_slice());
        self.frames
            .retain(|frame| keep(FrameRef { data: data(received, slab, frame), meta: frame.meta }));
        let dropped = before - self.frames.len();
        if self.frames.is_empty() {
            self.clear();
        } else if dropped > 0 {
            self.sum_bytes();
        }
        dropped
    }

    /// Refers to frames `range` of a received block, without copying.
    pub(crate) fn refer(&mut self, block: &Arc<Block>, range: std::ops::Range<usize>) {
        self.clear();
        let descriptors = block.descriptors().get(range).unwrap_or_default();
        self.frames.extend(descriptors.iter().take(BATCH_FRAMES).map(|descriptor| Frame {
            offset: descriptor.offset,
            length: descriptor.length,
            meta: FrameMeta {
                time_ns: descriptor.time_ns,
                time_source: Some(descriptor.time_source),
                checksum_pending: descriptor.flags.contains(FrameFlags::CHECKSUM_NOT_READY),
                wire_length: descriptor.wire_length,
            },
        }));
        self.received = Received::Block(Arc::clone(block));
        self.sum_bytes();
    }

    /// Takes received frames of one piece each, without copying; `arrival` says when each came, by its
    /// number.
    pub(crate) fn hold(
        &mut self,
        frames: Frames,
        mut arrival: impl FnMut(&Frames, usize) -> (u64, TimeSource),
    ) {
        self.clear();
        self.frames.extend((0..frames.pieces().min(BATCH_FRAMES)).map(|number| {
            let length = frames.piece_bytes(number);
            let meta = arrived(length, arrival(&frames, number));
            Frame { offset: number as u32, length, meta }
        }));
        self.received = Received::Umem(frames);
        self.sum_bytes();
    }

    /// Copies a received frame that lies in several pieces to the end. `false` as with [`Batch::push`].
    #[must_use]
    pub(crate) fn gather<'a>(
        &mut self,
        pieces: impl Iterator<Item = &'a [u8]>,
        arrival: (u64, TimeSource),
    ) -> bool {
        if self.is_full() {
            return false;
        }
        let offset = self.slots_used * self.slot_bytes;
        let mut length = 0;
        for piece in pieces {
            let end = length + piece.len();
            match self.slab.get_mut(offset + length..offset + end) {
                Some(slot) if end <= self.slot_bytes => slot.copy_from_slice(piece),
                _ => return false,
            }
            length = end;
        }
        let meta = arrived(length as u32, arrival);
        self.frames.push(Frame { offset: offset as u32, length: length as u32, meta });
        self.bytes += length as u64;
        self.slots_used += 1;
        true
    }

    fn sum_bytes(&mut self) {
        self.bytes = self.frames.iter().map(|frame| u64::from(frame.length)).sum();
    }

    /// That no frame is longer than the port takes that `describe` tells of: all of them may have its
    /// `frame_bytes_max`, and one that begins like the frame given to `longest` that many bytes. Slots
    /// bound their frames, so these are looked at only where one could be too long.
    pub fn check_lengths(
        &self,
        frame_bytes_max: usize,
        longest: impl Fn(&[u8]) -> usize,
        describe: impl FnOnce() -> PortDescription,
    ) -> Result<()> {
        if self.received.is_nothing() && self.slot_bytes <= frame_bytes_max {
            return Ok(());
        }
        let long = self.frames().find(|frame| frame.data.len() > longest(frame.data));
        long.map_or(Ok(()), |frame| {
            let port = describe();
            Err(PortError::FrameTooLong {
                port: port.spec,
                frame_bytes: frame.data.len(),
                frame_bytes_max: longest(frame.data),
                remedy: port.longer_frames.map_or_else(String::new, |it| format!(" or {it}")),
            })
        })
    }
}

/// What is known of a whole frame that came at some time.
fn arrived(length: u32, (time_ns, time_source): (u64, TimeSource)) -> FrameMeta {
    FrameMeta {
        time_ns,
        time_source: Some(time_source),
        checksum_pending: false,
        wire_length: length,
    }
}

fn data<'a>(received: &'a Received, slab: &'a [u8], frame: &Frame) -> &'a [u8] {
    match received {
        Received::Nothing => slice(slab, frame.offset, frame.length),
        Received::Block(block) => slice(block.bytes(), frame.offset, frame.length),
        Received::Umem(frames) => {
            let piece = frames.piece(frame.offset as usize);
            piece.get(..frame.length as usize).unwrap_or_default()
        }
    }
}

fn slice(memory: &[u8], offset: u32, length: u32) -> &[u8] {
    let start = offset as usize;
    memory.get(start..start + length as usize).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(batch: &mut Batch, data: &[u8]) -> bool {
        batch.push(data, FrameMeta::local(data.len()))
    }

    #[test]
    fn keeps_order_and_bytes() {
        let mut batch = Batch::new(128);
        for value in 0..10u8 {
            assert!(push(&mut batch, &[value; 60]));
        }
        assert_eq!(batch.len(), 10);
        assert_eq!(batch.bytes(), 600);
        let first: Vec<u8> = batch.frames().map(|frame| frame.data[0]).collect();
        assert_eq!(first, (0..10).collect::<Vec<u8>>());
    }

    #[test]
    fn is_full_at_64_frames_and_refuses_long_ones() {
        let mut batch = Batch::new(60);
        assert!(!push(&mut batch, &[0; 1000]));
        for _ in 0..BATCH_FRAMES {
            assert!(push(&mut batch, &[0; 60]));
        }
        assert!(batch.is_full());
        assert!(!push(&mut batch, &[0; 60]));
    }

    #[test]
    fn front_frames_leave_and_the_rest_keep_their_bytes() {
        let mut batch = Batch::new(64);
        for value in 0..5u8 {
            assert!(push(&mut batch, &[value; 20]));
        }
        batch.drop_front(2);
        let left: Vec<u8> = batch.frames().map(|frame| frame.data[0]).collect();
        assert_eq!(left, [2, 3, 4]);
        assert_eq!(batch.retain(|frame| frame.data[0] != 3), 1);
        let left: Vec<u8> = batch.frames().map(|frame| frame.data[0]).collect();
        assert_eq!(left, [2, 4]);
        assert_eq!(batch.bytes(), 40);
        assert_eq!(batch.truncate(2), 0);
        batch.drop_back();
        assert_eq!((batch.len(), batch.bytes()), (1, 20));
        assert!(batch.push(&[9; 30], FrameMeta::local(30)));
        assert_eq!(batch.truncate(1), 1);
        assert_eq!((batch.len(), batch.bytes()), (1, 20));
        batch.drop_front(1);
        assert_eq!(batch.bytes(), 0);
        assert!(batch.is_empty());
        assert!(push(&mut batch, &[9; 20]));
    }

    #[test]
    fn a_batch_of_which_nothing_is_kept_takes_as_many_as_an_empty_one() {
        let mut batch = Batch::new(64);
        for _ in 0..BATCH_FRAMES {
            assert!(push(&mut batch, &[1; 60]));
        }
        assert_eq!(batch.retain(|_| true), 0);
        assert_eq!((batch.len(), batch.bytes()), (64, 64 * 60));
        // What is kept stays where it is: its slots are not given again.
        let mut number = 0;
        let mut every_other = || {
            number += 1;
            number % 2 == 0
        };
        assert_eq!(batch.retain(|_| every_other()), 32);
        assert_eq!((batch.len(), batch.bytes(), batch.is_full()), (32, 32 * 60, true));
        assert_eq!(batch.retain(|_| false), 32);
        assert_eq!((batch.len(), batch.bytes(), batch.is_full()), (0, 0, false));
        for _ in 0..BATCH_FRAMES {
            assert!(push(&mut batch, &[2; 60]));
        }
        assert_eq!(batch.bytes(), 64 * 60);
    }

    #[test]
    fn frames_written_in_place_have_the_lengths_that_were_set() {
        let mut batch = Batch::new(100);
        batch.write(3, |slab, stride, lengths| {
            for (slot, length) in lengths.iter_mut().enumerate() {
                slab[slot * stride] = slot as u8 + 1;
                *length = 60 + slot as u32;
            }
        });
        let seen: Vec<(u8, usize)> =
            batch.frames().map(|frame| (frame.data[0], frame.data.len())).collect();
        assert_eq!(seen, [(1, 60), (2, 61), (3, 62)]);
    }

    #[test]
    fn slots_never_alias_in_the_cache() {
        for length in [60, 64, 65, 128, 1514, 9000] {
            let slot_bytes = Batch::new(length).slot_bytes();
            assert!(slot_bytes >= length);
            assert!(slot_bytes == 64 || (slot_bytes / 64) % 2 == 1, "{length}: {slot_bytes}");
        }
    }
}
