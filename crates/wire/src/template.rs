//! Frames made from a description, complete with lengths and checksums.
//!
//! A [`TemplateSpec`] says what the frames are and how their fields change; compiled,
//! it is a [`Template`] that writes batches of frames. All fields move together: frame
//! `index`, counted from 0, holds value `index` of each field and, but for the time in its
//! stamp, is a pure function of description, seed and index. So several workers can share
//! one sequence ([`Template::seek`]) and the traffic is the same whatever their number.
//!
//! A batch is written column by column: the constant frame into every slot, then each
//! changing field over all frames. Checksums are the sum over the constant parts, computed
//! once, plus that of what changed (RFC 1624 by addition).
//!
//! Vocabulary: a *slot* is the room of one frame, a *slab* is slots one after the other,
//! the *stride* is the distance in frames from one frame of a worker to its next.
//!
//! Limits: frames of at most 65535 bytes, no IPv4 options, IPv6 extension headers, TCP
//! options or fragments.

mod column;
mod constants;
mod error;
mod field;
mod layout;
mod place;
mod range;
mod sizes;
mod spec;
mod stamping;

pub use error::TemplateError;
pub use field::{Field, FieldError, FieldValue};
pub use place::Place;
pub use spec::{
    IcmpEchoSpec, Ipv4Spec, Ipv6Spec, MplsSpec, NetworkSpec, PayloadFill, TcpSpec, TemplateSpec,
    TransportSpec, UdpSpec, VlanSpec,
};

use column::{Column, Slots, Sums, complement};
use sizes::Sizes;
use stamping::Stamping;

/// Frames that are written at once.
pub const BATCH_FRAMES: usize = 64;

/// A checksum field.
#[derive(Clone, Copy, Debug)]
struct Checksum {
    offset: usize,
    /// Sum of the constant words that it covers.
    sum: u32,
    /// Whether 0xffff is written for 0 (UDP, RFC 768).
    zero_means_none: bool,
}

/// Writes the frames of a compiled description, each once and in order.
#[derive(Clone, Debug)]
pub struct Template {
    /// The constant parts of the longest frame, in whole blocks of 128 bytes.
    frame: Vec<u8>,
    columns: Vec<Column>,
    sizes: Sizes,
    network_checksum: Option<Checksum>,
    transport_checksum: Option<Checksum>,
    stamping: Option<Stamping>,
    index: u64,
    stride: u64,
}

impl Template {
    /// Length of the longest frame in bytes, without FCS: what a slot must hold.
    pub fn frame_bytes_max(&self) -> usize {
        self.sizes.frame_bytes_max()
    }

    /// Length of the shortest frame in bytes, without FCS.
    pub fn frame_bytes_min(&self) -> usize {
        self.sizes.frame_bytes_min()
    }

    /// Index of the next frame to be written.
    pub fn next_index(&self) -> u64 {
        self.index
    }

    /// The next frames are `index`, `index + stride`, `index + 2 * stride`, … of the whole
    /// sequence. Worker `w` of `n` takes its share by `seek(w, n)`.
    pub fn seek(&mut self, index: u64, stride: u64) {
        (self.index, self.stride) = (index, stride);
        for column in &mut self.columns {
            column.seek(index, stride);
        }
        self.sizes.seek(index, stride);
    }

    /// Writes `lengths.len()` frames, frame `i` at the start of slot `i` of `slot_bytes`
    /// bytes, and its length without FCS to `lengths[i]`. Stamps hold `time_ns`,
    /// nanoseconds since the Unix epoch. Bytes of a slot beyond its frame are unspecified.
    ///
    /// If a slot is shorter than [`Self::frame_bytes_max`], or the slab has fewer slots
    /// than there are lengths, the frames without room are not made: their length is 0, and
    /// the next call begins with them.
    pub fn fill(&mut self, slab: &mut [u8], slot_bytes: usize, lengths: &mut [u32], time_ns: u64) {
        let time_sum = match &self.stamping {
            Some(stamping) => stamping.write_time(&mut self.frame, time_ns),
            None => 0,
        };
        let mut rest = slab;
        for lengths in lengths.chunks_mut(BATCH_FRAMES) {
            let middle = rest.len().min(slot_bytes.saturating_mul(BATCH_FRAMES));
            let (head, tail) = rest.split_at_mut(middle);
            rest = tail;
            self.fill_batch(head, slot_bytes, lengths, time_sum);
        }
    }

    fn fill_batch(
        &mut self,
        slab: &mut [u8],
        slot_bytes: usize,
        lengths: &mut [u32],
        time_sum: u32,
    ) {
        let frame_bytes_max = self.frame_bytes_max();
        let mut slots = Slots::new(slab, slot_bytes, lengths.len(), frame_bytes_max);
        let (lengths, without_room) = lengths.split_at_mut(slots.frames);
        without_room.fill(0);
        if lengths.is_empty() {
            return;
        }
        let sum_of = |checksum: &Option<Checksum>| checksum.map_or(0, |checksum| checksum.sum);
        let mut sums = Sums {
            network: [sum_of(&self.network_checksum); BATCH_FRAMES],
            transport: [sum_of(&self.transport_checksum) + time_sum; BATCH_FRAMES],
        };
        self.sizes.lengths(lengths);
        slots.copy(&self.frame, frame_bytes_max, lengths);
        self.sizes.write(&mut slots, lengths, &mut sums);
        for column in &mut self.columns {
            column.write(&mut slots, &mut sums);
        }
        if let Some(stamping) = &self.stamping {
            stamping.write_sequence(&mut slots, &mut sums, self.index, self.stride);
        }
        if let Some(checksum) = self.network_checksum {
            let values = complement(&sums.network, checksum.zero_means_none);
            slots.write(checksum.offset, &values, |value| (value as u16).to_be_bytes());
        }
        if let Some(checksum) = self.transport_checksum {
            let values = complement(&sums.transport, checksum.zero_means_none);
            slots.write(checksum.offset, &values, |value| (value as u16).to_be_bytes());
        }
        self.index = self.index.wrapping_add(self.stride.wrapping_mul(slots.frames as u64));
    }
}
