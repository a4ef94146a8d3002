//! One ring of a socket, mapped: entries, the two indices, and the word of flags.

use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use libc::{XDP_RING_NEED_WAKEUP, xdp_desc, xdp_ring_offset};

use super::cursor::{Consuming, IndexWord as _, Producing};
use crate::{Error, Result};

/// Whose entries a ring may have: plain data of the kernel's ABI, valid for any bytes.
pub(super) trait Entry: Copy {}
impl Entry for u64 {}
impl Entry for xdp_desc {}

/// The memory that this process and the kernel share.
#[derive(Debug)]
struct Shared<T> {
    base: NonNull<u8>,
    mapped_bytes: usize,
    offsets: Offsets,
    size: u32,
    entries: PhantomData<T>,
}

#[derive(Debug, Clone, Copy)]
struct Offsets {
    producer: usize,
    consumer: usize,
    flags: usize,
    entries: usize,
}

// SAFETY: the mapping belongs to this value and is unmapped only by its drop. The indices and flags are
// only accessed atomically; entries only by the side whose turn it is, through `&mut` of a ring.
unsafe impl<T: Send> Send for Shared<T> {}

impl<T: Entry> Shared<T> {
    /// Maps the ring at `page_offset` (`XDP_PGOFF_*`) that was set up with `size` entries.
    fn map(
        socket: BorrowedFd<'_>,
        size: u32,
        page_offset: u64,
        offsets: &xdp_ring_offset,
    ) -> Result<Self> {
        let [producer, consumer, flags, entries] =
            [offsets.producer, offsets.consumer, offsets.flags, offsets.desc].map(|at| at as usize);
        let offsets = Offsets { producer, consumer, flags, entries };
        let mapped_bytes = entries + size as usize * size_of::<T>();
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
        let address = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                mapped_bytes,
                rustix::mm::ProtFlags::READ | rustix::mm::ProtFlags::WRITE,
                rustix::mm::MapFlags::SHARED | rustix::mm::MapFlags::POPULATE,
                socket,
                page_offset,
            )
        };
        let action = || format!("mapping a ring of {size} entries of an AF_XDP socket");
        let address = address.map_err(|errno| Error::new(action(), errno))?;
        let base = NonNull::new(address.cast())
            .ok_or_else(|| Error::new(action(), std::io::Error::other("no address")))?;
        Ok(Self { base, mapped_bytes, offsets, size, entries: PhantomData })
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: the kernel gave the offset as one of its 32-bit words in this mapping, which is
        // aligned (net/xdp/xsk_queue.h, `struct xdp_ring`), outlives `&self`, and is accessed atomically
        // only.
        unsafe { AtomicU32::from_ptr(self.base.as_ptr().add(offset).cast()) }
    }

    fn producer(&self) -> &AtomicU32 {
        self.word(self.offsets.producer)
    }

    fn consumer(&self) -> &AtomicU32 {
        self.word(self.offsets.consumer)
    }

    fn needs_wakeup(&self) -> bool {
        self.word(self.offsets.flags).load(Ordering::Relaxed) & XDP_RING_NEED_WAKEUP != 0
    }

    fn entry(&self, slot: usize) -> NonNull<T> {
        debug_assert!(slot < self.size as usize);
        let slot = slot.min(self.size as usize - 1);
        // SAFETY: the slot is below the ring's size, so that the entry lies in the mapping.
        unsafe { self.base.add(self.offsets.entries).cast::<T>().add(slot) }
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this length; nothing refers to it any more. Failure would leave
        // it mapped: harmless.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.mapped_bytes) };
    }
}

/// A ring that this process puts entries in: fill, transmit.
#[derive(Debug)]
pub(super) struct ProducingRing<T> {
    shared: Shared<T>,
    side: Producing,
}

impl<T: Entry> ProducingRing<T> {
    pub(super) fn map(
        socket: BorrowedFd<'_>,
        size: u32,
        page_offset: u64,
        offsets: &xdp_ring_offset,
    ) -> Result<Self> {
        let shared = Shared::map(socket, size, page_offset, offsets)?;
        let side = Producing::new(size, shared.producer().look());
        Ok(Self { shared, side })
    }

    /// Entries for which there is room; looks at what the kernel took only if `wanted` are more.
    #[inline]
    pub(super) fn room(&mut self, wanted: u32) -> u32 {
        self.side.room(wanted, self.shared.consumer())
    }

    /// Writes the next entry; false if there is no room. The kernel sees it after
    /// [`ProducingRing::publish`].
    #[inline]
    #[must_use]
    pub(super) fn push(&mut self, entry: T) -> bool {
        if self.room(1) == 0 {
            return false;
        }
        let slot = self.side.claim();
        // SAFETY: the slot lies in the ring and is free: the kernel reads none beyond the index that
        // was published, and has done with the entry that was there before.
        unsafe { self.shared.entry(slot).write(entry) };
        true
    }

    #[inline]
    pub(super) fn publish(&self) {
        self.side.publish(self.shared.producer());
    }

    /// Entries that the kernel has not taken yet.
    pub(super) fn waiting(&mut self) -> u32 {
        self.side.waiting(self.shared.consumer())
    }

    /// Whether the kernel looks at the ring only after a system call.
    #[inline]
    pub(super) fn needs_wakeup(&self) -> bool {
        self.shared.needs_wakeup()
    }

    /// Puts the last `taken` entries that the kernel took once more before those that it has not taken.
    /// False where there is no room. Only where the kernel takes entries in calls of this process alone,
    /// of which none is under way.
    #[must_use]
    pub(super) fn put_again(&mut self, taken: u32) -> bool {
        let waiting = self.waiting();
        if self.room(taken) < taken || taken == 0 {
            return taken == 0;
        }
        let end = self.side.next();
        for _ in 0..taken {
            self.side.claim();
        }
        // From the back, since they overlap: every entry moves up by `taken`.
        for back in 1..=waiting + taken {
            let from = end.wrapping_sub(back);
            let (from, to) = (self.side.slot(from), self.side.slot(from.wrapping_add(taken)));
            // SAFETY: both slots lie in the ring. The caller says that the kernel reads none of them
            // meanwhile; those that it had taken keep what was written until they are written anew, and
            // `room` says that those behind the last one are free.
            unsafe { self.shared.entry(to).write(self.shared.entry(from).read()) };
        }
        true
    }

    /// An entry that was pushed, by how many were pushed since.
    pub(super) fn pushed(&self, back: u32) -> T {
        let slot = self.side.slot(self.side.next().wrapping_sub(back));
        // SAFETY: the slot lies in the ring; the kernel only reads there.
        unsafe { self.shared.entry(slot).read() }
    }
}

/// A ring that this process takes entries out of: receive, completion.
#[derive(Debug)]
pub(super) struct ConsumingRing<T> {
    shared: Shared<T>,
    side: Consuming,
}

impl<T: Entry> ConsumingRing<T> {
    pub(super) fn map(
        socket: BorrowedFd<'_>,
        size: u32,
        page_offset: u64,
        offsets: &xdp_ring_offset,
    ) -> Result<Self> {
        let shared = Shared::map(socket, size, page_offset, offsets)?;
        let side = Consuming::new(size, shared.consumer().look());
        Ok(Self { shared, side })
    }

    /// Entries that are there; looks at what the kernel put in only if `wanted` are more.
    #[inline]
    pub(super) fn filled(&mut self, wanted: u32) -> u32 {
        self.side.filled(wanted, self.shared.producer())
    }

    /// The entry `ahead` of the next one, one of those that [`ConsumingRing::filled`] told of.
    #[inline]
    pub(super) fn peek(&self, ahead: u32) -> T {
        // SAFETY: the slot lies in the ring, and the kernel published the entry before `filled` said
        // so: it writes there again only after `release`.
        unsafe { self.shared.entry(self.side.peek(ahead)).read() }
    }

    /// Gives the slots of the next `count` entries back to the kernel.
    #[inline]
    pub(super) fn release(&mut self, count: u32) {
        self.side.take(count);
        self.side.publish(self.shared.consumer());
    }
}
