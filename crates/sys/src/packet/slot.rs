//! Who has a block of a receive ring: the kernel, the reader, or nobody yet.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::status_word::StatusWord;
use super::walk::Descriptor;
use crate::sync::{AtomicBool, Mutex};

/// What the reader keeps about each block of the ring. Together with the block's status word it
/// decides who may touch the block.
#[derive(Debug)]
pub(super) struct Slot {
    /// The block was taken and is not yet given back.
    held: AtomicBool,
    /// Room for its descriptors, kept while nobody holds it. The lock is only ever taken by
    /// whoever owns the block, so nobody waits.
    descriptors: Mutex<Vec<Descriptor>>,
}

impl Slot {
    /// A slot with room for `frames` descriptors.
    pub(super) fn with_room_for(frames: usize) -> Self {
        Self { held: AtomicBool::new(false), descriptors: Mutex::new(Vec::with_capacity(frames)) }
    }

    /// Whether the block was taken and is not yet given back. Once this says no, a status word
    /// read after it is not the one from before the block was taken.
    pub(super) fn is_held(&self) -> bool {
        self.held.load(Ordering::Acquire)
    }

    /// Whether the kernel has filled the block and nobody holds it.
    pub(super) fn is_ready(&self, status: &impl StatusWord) -> bool {
        !self.is_held() && is_filled(status)
    }

    /// Takes the block if it is ready: until [`Slot::give_back`] neither the kernel nor another
    /// call of this gets it. For the ring alone, which is used by one thread at a time. Gives
    /// the room for its descriptors, as it was given back.
    pub(super) fn take(&self, status: &impl StatusWord) -> Option<Vec<Descriptor>> {
        if !self.is_ready(status) {
            return None;
        }
        self.held.store(true, Ordering::Relaxed);
        let mut descriptors = self.descriptors.lock().unwrap_or_else(PoisonError::into_inner);
        Some(std::mem::take(&mut descriptors))
    }

    /// Gives the block back to the kernel; by whoever took it, on any thread.
    pub(super) fn give_back(&self, status: &impl StatusWord, descriptors: Vec<Descriptor>) {
        *self.descriptors.lock().unwrap_or_else(PoisonError::into_inner) = descriptors;
        status.hand_over(libc::TP_STATUS_KERNEL);
        // Only now: while the status still said "filled", a free slot would be taken again.
        self.held.store(false, Ordering::Release);
    }
}

/// Whether the kernel has given the block to the reader.
pub(super) fn is_filled(status: &impl StatusWord) -> bool {
    status.read() & libc::TP_STATUS_USER != 0
}

#[cfg(all(test, loom))]
mod model;
