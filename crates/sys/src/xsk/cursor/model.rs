//! All ways in which the two sides of a ring can meet (loom): each entry passes once, whole and in
//! order, and no slot is written while the other side may still read it.

use loom::cell::Cell;
use loom::sync::Arc;
use loom::sync::atomic::AtomicU32;
use loom::thread;

use super::{Consuming, Producing};

const SIZE: u32 = 2;

/// Just below the point where indices wrap.
const START: u32 = u32::MAX - 1;

/// Loom fails where two threads reach for a `Cell` and neither has waited for the other.
struct Ring {
    slots: [Cell<u32>; SIZE as usize],
    put: AtomicU32,
    taken: AtomicU32,
}

impl Ring {
    fn new() -> Self {
        let slots = [Cell::new(0), Cell::new(0)];
        Self { slots, put: AtomicU32::new(START), taken: AtomicU32::new(START) }
    }
}

/// Puts in as many of `wanted` entries from `first` on as there is room for.
fn put(ring: &Ring, producing: &mut Producing, first: u32, wanted: u32) -> u32 {
    let count = producing.room(wanted, &ring.taken).min(wanted);
    for number in first..first + count {
        ring.slots[producing.claim()].set(number);
    }
    producing.publish(&ring.put);
    count
}

/// Takes out what is there, up to `wanted`.
fn take(ring: &Ring, consuming: &mut Consuming, wanted: u32, seen: &mut Vec<u32>) {
    let count = consuming.filled(wanted, &ring.put).min(wanted);
    for ahead in 0..count {
        seen.push(ring.slots[consuming.peek(ahead)].get());
    }
    consuming.take(count);
    consuming.publish(&ring.taken);
}

#[test]
fn entries_pass_once_whole_and_in_order() {
    loom::model(|| {
        let ring = Arc::new(Ring::new());
        let kernel = Arc::clone(&ring);
        let kernel = thread::spawn(move || {
            let mut producing = Producing::new(SIZE, START);
            let mut sent = 0;
            for wanted in [1, 2, 1] {
                sent += put(&kernel, &mut producing, sent, wanted);
            }
            sent
        });
        let mut consuming = Consuming::new(SIZE, START);
        let mut seen = Vec::new();
        for wanted in [1, 2] {
            take(&ring, &mut consuming, wanted, &mut seen);
        }
        let sent = kernel.join().unwrap();
        for _ in 0..2 {
            take(&ring, &mut consuming, SIZE, &mut seen);
        }
        assert_eq!(seen, (0..sent).collect::<Vec<_>>());
    });
}
