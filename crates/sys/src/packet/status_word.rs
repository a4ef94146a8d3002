//! The word by which the kernel and this program hand a piece of shared memory to each other.

use std::sync::atomic::{AtomicU32, Ordering};

/// Stands in front of the memory and says whose it is. All accesses to it are here: the memory
/// behind it is no longer touched once [`StatusWord::hand_over`] is called, and not yet before
/// [`StatusWord::read`] says so.
pub(super) trait StatusWord {
    fn load(&self, order: Ordering) -> u32;
    fn store(&self, status: u32, order: Ordering);

    /// What the word says now. Whatever its last writer had done to the memory is seen after this.
    #[inline]
    fn read(&self) -> u32 {
        self.load(Ordering::Acquire)
    }

    /// Says whose the memory is from now on. Whoever reads it sees all that was done before.
    #[inline]
    fn hand_over(&self, status: u32) {
        self.store(status, Ordering::Release);
    }
}

impl StatusWord for AtomicU32 {
    #[inline]
    fn load(&self, order: Ordering) -> u32 {
        self.load(order)
    }

    #[inline]
    fn store(&self, status: u32, order: Ordering) {
        self.store(status, order);
    }
}

/// Loom's word cannot lie in memory of the kernel's, so models bring their own.
#[cfg(loom)]
impl StatusWord for loom::sync::atomic::AtomicU32 {
    fn load(&self, order: Ordering) -> u32 {
        self.load(order)
    }

    fn store(&self, status: u32, order: Ordering) {
        self.store(status, order);
    }
}
