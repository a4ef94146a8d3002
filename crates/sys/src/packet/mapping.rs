//! The memory of a receive ring together with the socket that fills it.

use std::mem::offset_of;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use libc::tpacket_hdr_v1;

use super::slot::{Slot, is_filled};
use super::walk::block_field;
use crate::{Error, Result};

/// The mapped ring. Dropping it unmaps the memory, then closes the socket.
#[derive(Debug)]
pub(super) struct Mapping {
    memory: NonNull<u8>,
    block_bytes: usize,
    slots: Box<[Slot]>,
    socket: OwnedFd,
}

// SAFETY: the memory is owned by this value and unmapped only by its drop; what several threads
// touch at a time (status words, held marks) is atomic, all else belongs to whoever owns a block.
unsafe impl Send for Mapping {}
// SAFETY: as above; `&Mapping` gives only atomics and raw addresses.
unsafe impl Sync for Mapping {}

/// What the header of a block that the kernel still owns shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Glimpse {
    /// Number of the filling that the header belongs to.
    pub(super) sequence: u64,
    /// Frames in the block so far.
    pub(super) frames: u32,
}

impl Mapping {
    /// Maps the ring of `socket`, which has `slots.len()` blocks of `block_bytes`. The kernel
    /// has allocated and cleared the pages when the ring was set up, and enters all of them in
    /// the page table here: no page fault comes later.
    pub(super) fn new(socket: OwnedFd, block_bytes: usize, slots: Box<[Slot]>) -> Result<Self> {
        let bytes = block_bytes * slots.len();
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
        let address = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                bytes,
                rustix::mm::ProtFlags::READ | rustix::mm::ProtFlags::WRITE,
                rustix::mm::MapFlags::SHARED,
                &socket,
                0,
            )
        }
        .map_err(|errno| {
            Error::new(format!("mapping a packet ring of {bytes} bytes"), errno).remedy(
                "make the ring smaller (fewer or smaller blocks), or raise the limit of virtual \
                 memory (ulimit -v) or of locked memory (ulimit -l)",
            )
        })?;
        let Some(memory) = NonNull::new(address.cast()) else {
            return Err(Error::new(
                "mapping a packet ring",
                std::io::Error::other("the kernel gave no address"),
            ));
        };
        Ok(Self { memory, block_bytes, slots, socket })
    }

    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub(super) fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    pub(super) fn block_count(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn slot(&self, index: usize) -> Option<&Slot> {
        self.slots.get(index)
    }

    /// Address of a block; `index` below [`Mapping::block_count`].
    pub(super) fn block(&self, index: usize) -> NonNull<u8> {
        debug_assert!(index < self.block_count());
        let index = index.min(self.block_count() - 1);
        // SAFETY: the index is below the number of blocks, so the address lies in the mapping.
        unsafe { self.memory.add(index * self.block_bytes) }
    }

    /// The status word through which kernel and reader hand a block to each other.
    pub(super) fn status(&self, index: usize) -> &AtomicU32 {
        self.word(index, offset_of!(tpacket_hdr_v1, block_status))
    }

    /// The kernel has filled the block and given it to the reader.
    pub(super) fn is_filled(&self, index: usize) -> bool {
        is_filled(self.status(index))
    }

    /// Looks at the header of a block that the kernel may be filling.
    pub(super) fn glimpse(&self, index: usize) -> Glimpse {
        let frames = self.word(index, offset_of!(tpacket_hdr_v1, num_pkts)).load(Ordering::Acquire);
        let at = block_field(offset_of!(tpacket_hdr_v1, seq_num));
        // SAFETY: the field lies inside of the page-aligned block at a multiple of 8, and is
        // only accessed atomically while the kernel owns the block.
        let sequence = unsafe { AtomicU64::from_ptr(self.block(index).as_ptr().add(at).cast()) }
            .load(Ordering::Acquire);
        Glimpse { sequence, frames }
    }

    /// A word of the header of a block, shared with the kernel.
    fn word(&self, index: usize, field: usize) -> &AtomicU32 {
        // SAFETY: the header's fields lie inside of the page-aligned block at multiples of 4, the
        // mapping outlives `&self`, and this crate and the kernel only access them atomically
        // while they are shared.
        unsafe { AtomicU32::from_ptr(self.block(index).as_ptr().add(block_field(field)).cast()) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let bytes = self.block_bytes * self.slots.len();
        // SAFETY: mapped by `new` with this length, and no block refers to it any more: each
        // holds this value by reference count. Failure would leave it mapped: harmless.
        let _ = unsafe { rustix::mm::munmap(self.memory.as_ptr().cast(), bytes) };
    }
}
