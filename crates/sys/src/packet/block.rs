//! One filled block of a receive ring, owned until it is dropped.

use std::sync::Arc;

use super::mapping::Mapping;
use super::walk::{Descriptor, Limits, Walk, walk};

/// A filled block of a [`PacketRing`](super::PacketRing).
///
/// It may move to another thread, be kept while the ring goes on, and outlive the ring; dropping
/// it gives the block back to the kernel. The kernel fills blocks strictly in order: one that is
/// kept for long stops the ring as soon as all the others are full.
#[derive(Debug)]
pub struct Block {
    mapping: Arc<Mapping>,
    index: usize,
    sequence: u64,
    descriptors: Vec<Descriptor>,
}

impl Block {
    /// Takes the block at `index` if the kernel has filled it and nobody holds it. Gives also
    /// the number of frames that were malformed.
    pub(super) fn take(
        mapping: &Arc<Mapping>,
        index: usize,
        limits: Limits,
    ) -> Option<(Self, Walk)> {
        let mut descriptors = mapping.slot(index)?.take(mapping.status(index))?;
        descriptors.clear();
        // SAFETY: the slot gave the block out: the kernel has handed it over and writes no more
        // to it, and no `Block` refers to it; only the ring takes blocks, by `&mut self`. So this
        // is the only reference into the block, and it ends before the `Block` is made.
        let memory = unsafe {
            std::slice::from_raw_parts_mut(mapping.block(index).as_ptr(), mapping.block_bytes())
        };
        let found = walk(memory, limits, &mut descriptors);
        let block =
            Self { mapping: Arc::clone(mapping), index, sequence: found.sequence, descriptors };
        Some((block, found))
    }

    /// The whole block; [`Descriptor::offset`] counts from its first byte.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the block belongs to `self` until its drop, the kernel does not write to it
        // before that, and nobody makes a mutable reference to it (see `take`). The mapping
        // lives as long as `self.mapping`.
        unsafe {
            std::slice::from_raw_parts(
                self.mapping.block(self.index).as_ptr(),
                self.mapping.block_bytes(),
            )
        }
    }

    /// The frames in the order in which they were received.
    pub fn descriptors(&self) -> &[Descriptor] {
        &self.descriptors
    }

    /// The frames and what is known about them.
    pub fn frames(&self) -> impl ExactSizeIterator<Item = (&Descriptor, &[u8])> {
        let bytes = self.bytes();
        self.descriptors.iter().map(move |descriptor| {
            let start = descriptor.offset as usize;
            // `walk` has checked each descriptor against the block; an empty frame rather than
            // a panic if that were ever wrong.
            (descriptor, bytes.get(start..start + descriptor.length as usize).unwrap_or_default())
        })
    }

    /// The block's number in the order of filling, from 1.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let Some(slot) = self.mapping.slot(self.index) else { return };
        let descriptors = std::mem::take(&mut self.descriptors);
        slot.give_back(self.mapping.status(self.index), descriptors);
    }
}
