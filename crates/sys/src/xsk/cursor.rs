//! Where a ring's two sides are: one side puts entries in, the other takes them out, and each tells the
//! other by an index that only it writes.
//!
//! The indices count all entries that ever passed, modulo 2^32; an entry's slot is its index modulo the
//! ring's size. Each side keeps what it last saw of the other's index, and looks again only when that
//! says that there is too little: most calls touch no memory that the other side writes.

use std::sync::atomic::{AtomicU32, Ordering};

/// An index as it lies in memory that both sides share. All accesses to it are here: entries are no
/// longer touched once [`IndexWord::publish`] passes them on, and not before [`IndexWord::look`] has
/// shown them.
pub(super) trait IndexWord {
    fn load(&self, order: Ordering) -> u32;
    fn store(&self, index: u32, order: Ordering);

    /// What the other side has come to. Whatever it had done to the entries before is seen after this.
    #[inline]
    fn look(&self) -> u32 {
        self.load(Ordering::Acquire)
    }

    /// Says what this side has come to. There is one writer, so nothing is read before.
    #[inline]
    fn publish(&self, index: u32) {
        self.store(index, Ordering::Release);
    }
}

impl IndexWord for AtomicU32 {
    #[inline]
    fn load(&self, order: Ordering) -> u32 {
        self.load(order)
    }

    #[inline]
    fn store(&self, index: u32, order: Ordering) {
        self.store(index, order);
    }
}

/// Loom's word cannot lie in memory of the kernel's, so models bring their own.
#[cfg(loom)]
impl IndexWord for loom::sync::atomic::AtomicU32 {
    fn load(&self, order: Ordering) -> u32 {
        self.load(order)
    }

    fn store(&self, index: u32, order: Ordering) {
        self.store(index, order);
    }
}

/// The side that puts entries in.
#[derive(Debug)]
pub(super) struct Producing {
    /// Entries in the ring, a power of two.
    size: u32,
    /// Index of the next entry, those not yet published included.
    next: u32,
    /// How far the other side had come when it was last looked at.
    taken: u32,
}

impl Producing {
    /// The side of a ring whose indices stand at `index` both.
    pub(super) fn new(size: u32, index: u32) -> Self {
        debug_assert!(size.is_power_of_two());
        Self { size, next: index, taken: index }
    }

    /// Entries for which there is room; looks at the other side only if it was less than `wanted`.
    #[inline]
    pub(super) fn room(&mut self, wanted: u32, taken: &impl IndexWord) -> u32 {
        let room = self.size - self.used();
        if room >= wanted {
            return room;
        }
        self.taken = taken.look();
        self.size - self.used()
    }

    /// A side that went back or ahead of this one is broken; nothing may be written then.
    fn used(&self) -> u32 {
        self.next.wrapping_sub(self.taken).min(self.size)
    }

    /// The slot of the next entry; after [`Producing::room`] has said that there is one.
    #[inline]
    pub(super) fn claim(&mut self) -> usize {
        let slot = self.next & (self.size - 1);
        self.next = self.next.wrapping_add(1);
        slot as usize
    }

    /// Passes on all that was claimed.
    #[inline]
    pub(super) fn publish(&self, index: &impl IndexWord) {
        index.publish(self.next);
    }

    /// Index of the next entry.
    pub(super) fn next(&self) -> u32 {
        self.next
    }

    /// The slot of an entry by its index.
    pub(super) fn slot(&self, index: u32) -> usize {
        (index & (self.size - 1)) as usize
    }

    /// Entries that the other side has not taken yet, looked up now.
    pub(super) fn waiting(&mut self, taken: &impl IndexWord) -> u32 {
        self.taken = taken.look();
        self.used()
    }
}

/// The side that takes entries out.
#[derive(Debug)]
pub(super) struct Consuming {
    /// Entries in the ring, a power of two.
    size: u32,
    /// Index of the next entry to take.
    next: u32,
    /// How far the other side had come when it was last looked at.
    put: u32,
}

impl Consuming {
    /// The side of a ring whose indices stand at `index` both.
    pub(super) fn new(size: u32, index: u32) -> Self {
        debug_assert!(size.is_power_of_two());
        Self { size, next: index, put: index }
    }

    /// Entries that are there; looks at the other side only if it was less than `wanted`.
    #[inline]
    pub(super) fn filled(&mut self, wanted: u32, put: &impl IndexWord) -> u32 {
        let filled = self.known();
        if filled >= wanted {
            return filled;
        }
        self.put = put.look();
        self.known()
    }

    fn known(&self) -> u32 {
        self.put.wrapping_sub(self.next).min(self.size)
    }

    /// The slot of the entry `ahead` of the next one, which is left there; it is among those that
    /// [`Consuming::filled`] has told of.
    #[inline]
    pub(super) fn peek(&self, ahead: u32) -> usize {
        (self.next.wrapping_add(ahead) & (self.size - 1)) as usize
    }

    /// Takes `count` entries, which were read.
    #[inline]
    pub(super) fn take(&mut self, count: u32) {
        self.next = self.next.wrapping_add(count);
    }

    /// Gives the slots of all that was taken back.
    #[inline]
    pub(super) fn publish(&self, index: &impl IndexWord) {
        index.publish(self.next);
    }
}

#[cfg(all(test, loom))]
mod model;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Both sides of a ring of `u32` in plain memory.
    struct Ring {
        slots: Vec<u32>,
        put: AtomicU32,
        taken: AtomicU32,
    }

    fn ring(size: u32, index: u32) -> (Ring, Producing, Consuming) {
        let ring = Ring {
            slots: vec![0; size as usize],
            put: AtomicU32::new(index),
            taken: AtomicU32::new(index),
        };
        (ring, Producing::new(size, index), Consuming::new(size, index))
    }

    #[test]
    fn entries_pass_once_in_order_also_where_indices_wrap() {
        for start in [0, u32::MAX - 5, u32::MAX] {
            let (mut ring, mut producing, mut consuming) = ring(8, start);
            let (mut sent, mut seen) = (0, 0);
            for step in 1..200_u32 {
                let count = (step * 7 % 11).min(producing.room(8, &ring.taken));
                for _ in 0..count {
                    ring.slots[producing.claim()] = sent;
                    sent += 1;
                }
                producing.publish(&ring.put);
                let filled = consuming.filled(8, &ring.put);
                assert_eq!(filled, sent - seen);
                let count = (step * 5 % 7).min(filled);
                for ahead in 0..count {
                    assert_eq!(ring.slots[consuming.peek(ahead)], seen);
                    seen += 1;
                }
                consuming.take(count);
                consuming.publish(&ring.taken);
            }
            assert!(sent > 300 && sent - seen <= 8);
        }
    }

    #[test]
    fn a_full_ring_has_no_room_and_an_empty_one_nothing() {
        let (ring, mut producing, mut consuming) = ring(4, u32::MAX - 1);
        assert_eq!(consuming.filled(1, &ring.put), 0);
        assert_eq!(producing.room(1, &ring.taken), 4);
        for _ in 0..4 {
            producing.claim();
        }
        assert_eq!(producing.room(1, &ring.taken), 0);
        assert_eq!(consuming.filled(1, &ring.put), 0, "not published yet");
        producing.publish(&ring.put);
        assert_eq!(producing.waiting(&ring.taken), 4);
        assert_eq!(consuming.filled(1, &ring.put), 4);
        consuming.take(3);
        assert_eq!(producing.room(1, &ring.taken), 0, "not published yet");
        consuming.publish(&ring.taken);
        assert_eq!((producing.room(1, &ring.taken), producing.waiting(&ring.taken)), (3, 1));
    }

    #[test]
    fn an_index_that_makes_no_sense_reaches_no_slot_outside() {
        let (ring, mut producing, mut consuming) = ring(4, 0);
        ring.put.store(1_000, Ordering::Relaxed);
        ring.taken.store(1_000, Ordering::Relaxed);
        assert_eq!(consuming.filled(1, &ring.put), 4);
        assert!((0..10).all(|ahead| consuming.peek(ahead) < 4));
        assert_eq!(producing.room(5, &ring.taken), 0);
    }
}
