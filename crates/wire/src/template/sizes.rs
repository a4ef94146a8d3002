//! Lengths of frames, and what depends on them: length fields and the payload's checksum.

use super::BATCH_FRAMES;
use super::column::{Slots, Sums};
use super::range::NarrowRange;

/// A header field that holds the length of the frame less what precedes its part.
#[derive(Clone, Copy, Debug)]
pub(super) struct LengthField {
    pub offset: usize,
    /// Bytes of the frame that are not counted.
    pub less_bytes: u32,
}

/// Sizes that differ between frames.
#[derive(Clone, Debug)]
pub(super) struct VariedSizes {
    pub range: NarrowRange,
    pub frame_bytes_min: u32,
    pub frame_bytes_max: u32,
    /// Total length of IPv4 or payload length of IPv6.
    pub network: Option<LengthField>,
    /// Whether the IPv4 header's checksum covers `network`.
    pub network_covered: bool,
    /// Length of UDP.
    pub transport: Option<LengthField>,
    /// By length from the smallest: folded sum of payload and lengths that the transport
    /// checksum covers. Empty without such a checksum.
    pub transport_sums: Vec<u16>,
}

/// The lengths of a template's frames, without FCS.
#[derive(Clone, Debug)]
pub(super) enum Sizes {
    Fixed(u32),
    Varied(Box<VariedSizes>),
}

impl Sizes {
    pub fn frame_bytes_min(&self) -> usize {
        match self {
            Self::Fixed(bytes) => *bytes as usize,
            Self::Varied(varied) => varied.frame_bytes_min as usize,
        }
    }

    pub fn frame_bytes_max(&self) -> usize {
        match self {
            Self::Fixed(bytes) => *bytes as usize,
            Self::Varied(varied) => varied.frame_bytes_max as usize,
        }
    }

    /// See [`NarrowRange::seek`].
    pub fn seek(&mut self, index: u64, advance: u64) {
        if let Self::Varied(varied) = self {
            varied.range.seek(index, advance);
        }
    }

    /// The next lengths, at most [`BATCH_FRAMES`].
    pub fn lengths(&mut self, lengths: &mut [u32]) {
        match self {
            Self::Fixed(bytes) => lengths.fill(*bytes),
            Self::Varied(varied) => {
                let mut values = [0; BATCH_FRAMES];
                varied.range.next_batch(lengths.len(), &mut values);
                for (length, value) in lengths.iter_mut().zip(values) {
                    *length = value;
                }
            }
        }
    }

    /// Writes the length fields of frames that have `lengths`, and adds what
    /// depends on lengths to the sums.
    pub fn write(&self, slots: &mut Slots<'_>, lengths: &[u32], sums: &mut Sums) {
        let Self::Varied(varied) = self else { return };
        let mut values = [0; BATCH_FRAMES];
        if let Some(field) = varied.network {
            subtract(lengths, field.less_bytes, &mut values);
            if varied.network_covered {
                for (sum, value) in sums.network.iter_mut().zip(&values) {
                    *sum += value;
                }
            }
            slots.write(field.offset, &values, |value| (value as u16).to_be_bytes());
        }
        if let Some(field) = varied.transport {
            subtract(lengths, field.less_bytes, &mut values);
            slots.write(field.offset, &values, |value| (value as u16).to_be_bytes());
        }
        if varied.transport_sums.is_empty() {
            return;
        }
        for (sum, length) in sums.transport.iter_mut().zip(lengths) {
            let at = length.wrapping_sub(varied.frame_bytes_min) as usize;
            *sum += varied.transport_sums.get(at).copied().map_or(0, u32::from);
        }
    }
}

fn subtract(lengths: &[u32], less_bytes: u32, values: &mut [u32; BATCH_FRAMES]) {
    for (value, length) in values.iter_mut().zip(lengths) {
        *value = length.wrapping_sub(less_bytes);
    }
}
