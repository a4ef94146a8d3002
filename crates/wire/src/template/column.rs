//! Writing one thing into all frames of a batch.
//!
//! Vocabulary: a *column* is one field at one offset over the frames of a
//! batch; a *slot* is the room of one frame in the slab; *covered* is a field
//! whose value goes into a checksum.
//!
//! Each step is a loop over the batch without decisions: the loops over values
//! and sums work on arrays of constant length, so that the compiler vectorises
//! them, and the loops over slots do one store of constant size each.

use super::BATCH_FRAMES;
use super::range::{NarrowRange, WideRange};

/// Slots of the shortest frames: one cache line.
const SLOT_BYTES_SHORT: usize = 64;

/// Sums of covered words that changed, for each frame of a batch.
pub(super) struct Sums {
    /// For the IPv4 header.
    pub network: [u32; BATCH_FRAMES],
    /// For the transport header, its payload and its pseudo header.
    pub transport: [u32; BATCH_FRAMES],
}

/// Which checksums cover a field.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Covered {
    pub network: bool,
    pub transport: bool,
}

/// Size and values of a column.
#[derive(Clone, Debug)]
pub(super) enum Values {
    /// Two bytes: the value together with constant bits.
    Two { range: NarrowRange, constant: u16 },
    /// Four bytes: the value shifted left, together with constant bits.
    Four { range: NarrowRange, shift: u32, constant: u32 },
    /// Six bytes, never covered.
    Six { range: NarrowRange },
    /// Eight bytes.
    Eight { range: NarrowRange },
    /// Sixteen bytes.
    Sixteen { range: WideRange },
}

/// A field that changes from frame to frame.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub offset: usize,
    pub covered: Covered,
    pub values: Values,
}

impl Column {
    /// See [`NarrowRange::seek`].
    pub fn seek(&mut self, index: u64, advance: u64) {
        match &mut self.values {
            Values::Two { range, .. }
            | Values::Four { range, .. }
            | Values::Six { range }
            | Values::Eight { range } => range.seek(index, advance),
            Values::Sixteen { range } => range.seek(index, advance),
        }
    }

    /// Writes the next value into each slot and adds it to the sums that cover it.
    #[inline]
    pub fn write(&mut self, slots: &mut Slots<'_>, sums: &mut Sums) {
        match &mut self.values {
            Values::Two { range, constant } => {
                let mut values = [0u32; BATCH_FRAMES];
                range.next_batch(slots.frames, &mut values);
                let constant = u32::from(*constant);
                for value in &mut values {
                    *value |= constant;
                }
                self.covered.add(sums, &values);
                slots.write(self.offset, &values, |value| (value as u16).to_be_bytes());
            }
            Values::Four { range, shift, constant } => {
                let mut values = [0u32; BATCH_FRAMES];
                range.next_batch(slots.frames, &mut values);
                let (shift, constant) = (*shift, *constant);
                for value in &mut values {
                    *value = value.wrapping_shl(shift) | constant;
                }
                self.covered.add(sums, &values);
                slots.write(self.offset, &values, u32::to_be_bytes);
            }
            Values::Six { range } => {
                let mut values = [0u64; BATCH_FRAMES];
                range.next_batch(slots.frames, &mut values);
                slots.write(self.offset, &values, |value| {
                    let [_, _, a, b, c, d, e, f] = value.to_be_bytes();
                    [a, b, c, d, e, f]
                });
            }
            Values::Eight { range } => {
                let mut values = [0u64; BATCH_FRAMES];
                range.next_batch(slots.frames, &mut values);
                let mut words = [0u32; BATCH_FRAMES];
                for (word, value) in words.iter_mut().zip(&values) {
                    *word = word_sum(*value);
                }
                self.covered.add(sums, &words);
                slots.write(self.offset, &values, u64::to_be_bytes);
            }
            Values::Sixteen { range } => {
                let mut values = [0u128; BATCH_FRAMES];
                range.next_batch(slots.frames, &mut values);
                let mut words = [0u32; BATCH_FRAMES];
                for (word, value) in words.iter_mut().zip(&values) {
                    *word = word_sum((value >> 64) as u64) + word_sum(*value as u64);
                }
                self.covered.add(sums, &words);
                slots.write(self.offset, &values, u128::to_be_bytes);
            }
        }
    }
}

impl Covered {
    /// Adds both words of each value to the sums that cover it.
    #[inline]
    fn add(self, sums: &mut Sums, values: &[u32; BATCH_FRAMES]) {
        if self.network {
            add_words(&mut sums.network, values);
        }
        if self.transport {
            add_words(&mut sums.transport, values);
        }
    }
}

#[inline]
fn add_words(sums: &mut [u32; BATCH_FRAMES], values: &[u32; BATCH_FRAMES]) {
    for (sum, value) in sums.iter_mut().zip(values) {
        *sum += (value >> 16) + (value & 0xffff);
    }
}

/// Sum of the four words of `value`, at most 18 bits long.
#[inline]
pub(super) fn word_sum(value: u64) -> u32 {
    let pairs = (value >> 32) + (value & 0xffff_ffff);
    (pairs >> 32) as u32 + (pairs as u32 >> 16) + (pairs as u32 & 0xffff)
}

/// The rooms of a batch's frames.
pub(super) struct Slots<'a> {
    /// Exactly `frames * stride` bytes.
    slab: &'a mut [u8],
    stride: usize,
    /// Number of frames, at most [`BATCH_FRAMES`].
    pub frames: usize,
}

impl<'a> Slots<'a> {
    /// As many slots of `stride` bytes as there are in `slab`, at most `wanted`
    /// and [`BATCH_FRAMES`]; none if a slot cannot hold `frame_bytes`.
    pub fn new(slab: &'a mut [u8], stride: usize, wanted: usize, frame_bytes: usize) -> Self {
        let frames = match slab.len().checked_div(stride) {
            Some(room) if stride >= frame_bytes => room.min(wanted).min(BATCH_FRAMES),
            _ => 0,
        };
        let slab = slab.get_mut(..frames * stride).unwrap_or_default();
        Self { slab, stride: stride.max(1), frames }
    }

    /// Writes `encode(value)` at `offset` of each slot.
    #[inline(always)]
    pub fn write<T: Copy, const N: usize>(
        &mut self,
        offset: usize,
        values: &[T; BATCH_FRAMES],
        encode: impl Fn(T) -> [u8; N],
    ) {
        // Slots of a constant size spare the check of each.
        if self.stride == SLOT_BYTES_SHORT && offset + N <= SLOT_BYTES_SHORT {
            let (slots, _) = self.slab.as_chunks_mut::<SLOT_BYTES_SHORT>();
            for (slot, value) in slots.iter_mut().zip(values) {
                slot[offset..offset + N].copy_from_slice(&encode(*value));
            }
            return;
        }
        for (slot, value) in self.slab.chunks_exact_mut(self.stride).zip(values) {
            if let Some(field) = slot.get_mut(offset..offset + N) {
                field.copy_from_slice(&encode(*value));
            }
        }
    }

    /// Copies the start of `frame` into each slot: as a block of constant size
    /// where the frames are short and the slots have room, else `lengths` bytes.
    #[inline]
    pub fn copy(&mut self, frame: &[u8], frame_bytes_max: usize, lengths: &[u32]) {
        if frame_bytes_max <= 64 && self.stride >= 64 {
            self.copy_block::<64>(frame);
        } else if frame_bytes_max <= 128 && self.stride >= 128 {
            self.copy_block::<128>(frame);
        } else {
            for (slot, length) in self.slab.chunks_exact_mut(self.stride).zip(lengths) {
                let length = *length as usize;
                if let (Some(to), Some(from)) = (slot.get_mut(..length), frame.get(..length)) {
                    to.copy_from_slice(from);
                }
            }
        }
    }

    #[inline(always)]
    fn copy_block<const N: usize>(&mut self, frame: &[u8]) {
        let Some(block) = frame.first_chunk::<N>() else { return };
        for slot in self.slab.chunks_exact_mut(self.stride) {
            if let Some(room) = slot.first_chunk_mut::<N>() {
                *room = *block;
            }
        }
    }
}

/// The checksums of `sums`, as they stand in a header.
#[inline]
pub(super) fn complement(sums: &[u32; BATCH_FRAMES], zero_means_none: bool) -> [u32; BATCH_FRAMES] {
    let instead_of_zero = if zero_means_none { 0xffff } else { 0 };
    let mut checksums = [0; BATCH_FRAMES];
    for (checksum, sum) in checksums.iter_mut().zip(sums) {
        let folded = (sum & 0xffff) + (sum >> 16);
        let folded = (folded & 0xffff) + (folded >> 16);
        let complement = !folded & 0xffff;
        *checksum = if complement == 0 { instead_of_zero } else { complement };
    }
    checksums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_sums() {
        assert_eq!(word_sum(u64::MAX) % 0xffff, 0);
        assert_eq!(word_sum(0x0001_0002_0003_0004), 10);
    }

    #[test]
    fn complements_fold_all_carries() {
        let mut sums = [0; BATCH_FRAMES];
        sums[1] = 0xffff;
        sums[2] = 0x1_0000;
        sums[3] = u32::MAX;
        let checksums = complement(&sums, false);
        assert_eq!(checksums[..4], [0xffff, 0, 0xfffe, 0]);
        assert_eq!(complement(&sums, true)[..4], [0xffff, 0xffff, 0xfffe, 0xffff]);
    }

    #[test]
    fn slots_never_exceed_the_slab() {
        let mut slab = [0; 200];
        assert_eq!(Slots::new(&mut slab, 64, 64, 60).frames, 3);
        assert_eq!(Slots::new(&mut slab, 64, 2, 60).frames, 2);
        assert_eq!(Slots::new(&mut slab, 59, 2, 60).frames, 0);
        assert_eq!(Slots::new(&mut slab, 0, 2, 0).frames, 0);
        assert_eq!(Slots::new(&mut slab, 1, 100, 1).frames, 64);
    }
}
