//! The stamp in the payload of each frame.
//!
//! The time is that of the batch, so it goes into the constant frame; only the sequence
//! differs between frames.

use super::BATCH_FRAMES;
use super::column::{Slots, Sums, word_sum};
use crate::stamp::{self, SEQUENCE_MAX, StampKind};

/// Where a stamp stands and what is constant in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamping {
    pub kind: StampKind,
    /// Of the stamp's first byte in the frame.
    pub offset: usize,
    /// Unused by pktgen's.
    pub stream: u16,
    /// Whether a transport checksum covers it.
    pub covered: bool,
}

impl Stamping {
    /// Writes a stamp of sequence 0 with `time_ns` into `frame`; the sum of what
    /// is constant in it over a batch, at most 24 bits long.
    pub fn write_time(&self, frame: &mut [u8], time_ns: u64) -> u32 {
        let Some(payload) = frame.get_mut(self.offset..) else { return 0 };
        if !stamp::write(self.kind, payload, 0, 0, time_ns) {
            return 0;
        }
        let sum = sum_of(payload.get(..self.kind.bytes()).unwrap_or_default());
        if self.covered { sum } else { 0 }
    }

    /// Writes the sequence of frames `index`, `index + stride`, … and adds it to
    /// the transport sums: the index itself for linerate's stamp, one more for
    /// pktgen's, which counts from 1.
    #[inline]
    pub fn write_sequence(&self, slots: &mut Slots<'_>, sums: &mut Sums, index: u64, stride: u64) {
        let stream = u64::from(self.stream) << 48;
        let (first, mask, constant) = match self.kind {
            StampKind::Linerate => (index, SEQUENCE_MAX, stream),
            StampKind::Pktgen => (index.wrapping_add(1), u64::from(u32::MAX), 0),
        };
        let mut numbers = [0u64; BATCH_FRAMES];
        for (lane, number) in (0u64..).zip(&mut numbers) {
            *number = first.wrapping_add(stride.wrapping_mul(lane)) & mask | constant;
        }
        if self.covered {
            for (sum, number) in sums.transport.iter_mut().zip(&numbers) {
                *sum += word_sum(*number);
            }
        }
        match self.kind {
            StampKind::Linerate => slots.write(self.offset + 2, &numbers, u64::to_be_bytes),
            StampKind::Pktgen => {
                slots.write(self.offset + 4, &numbers, |number| (number as u32).to_be_bytes());
            }
        }
    }
}

/// Sum of the words of an even number of bytes.
fn sum_of(bytes: &[u8]) -> u32 {
    let (words, _) = bytes.as_chunks::<2>();
    words.iter().map(|word| u32::from(u16::from_be_bytes(*word))).sum()
}
