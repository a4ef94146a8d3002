//! All ways in which the kernel, the reader and a holder can meet at one block of a ring (loom).
//!
//! The kernel is a thread that follows the rules of `linux/if_packet.h`: it fills the block if its
//! status says that it is the kernel's, and goes on without it if not. The reader looks at it now
//! and then, while another thread, as those which drop batches, still holds what was taken before.

use loom::cell::Cell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

use super::Slot;
use crate::packet::walk::{Descriptor, FrameFlags, TimeSource};

/// A block that holds the number of its filling. Loom fails where two threads reach for the `Cell`
/// and neither has waited for the other.
struct Block {
    slot: Slot,
    status: AtomicU32,
    contents: Cell<u32>,
}

impl Block {
    fn new() -> Self {
        let status = AtomicU32::new(libc::TP_STATUS_KERNEL);
        Self { slot: Slot::with_room_for(1), status, contents: Cell::new(0) }
    }

    fn fill_as_the_kernel(&self, filling: u32) -> bool {
        if self.status.load(Ordering::Acquire) != libc::TP_STATUS_KERNEL {
            return false;
        }
        self.contents.set(filling);
        self.status.store(libc::TP_STATUS_USER, Ordering::Release);
        true
    }

    /// The filling, if there is one to take.
    fn take(&self) -> Option<u32> {
        let descriptors = self.slot.take(&self.status)?;
        let filling = self.contents.get();
        let before: Vec<_> = (1..filling).last().map(descriptor).into_iter().collect();
        assert_eq!(descriptors, before, "what was given back before filling {filling}");
        Some(filling)
    }

    fn give_back(&self, filling: u32) {
        assert_eq!(self.contents.get(), filling, "changed while it was held");
        self.slot.give_back(&self.status, vec![descriptor(filling)]);
    }
}

fn descriptor(filling: u32) -> Descriptor {
    Descriptor {
        offset: filling,
        length: 60,
        wire_length: 60,
        flow_hash: 0,
        time_ns: 0,
        flags: FrameFlags::empty(),
        time_source: TimeSource::Ring,
    }
}

#[test]
fn each_filling_is_seen_once_whole_and_in_order() {
    loom::model(|| {
        let block = Arc::new(Block::new());
        assert!(block.fill_as_the_kernel(1));
        let mut seen: Vec<_> = block.take().into_iter().collect();
        let holder = Arc::clone(&block);
        let holder = thread::spawn(move || holder.give_back(1));
        let kernel = Arc::clone(&block);
        let kernel = thread::spawn(move || {
            let mut filled = 1;
            for _ in 0..2 {
                filled += u32::from(kernel.fill_as_the_kernel(filled + 1));
            }
            filled
        });
        for _ in 0..2 {
            if let Some(filling) = block.take() {
                seen.push(filling);
                block.give_back(filling);
            }
        }
        holder.join().unwrap();
        let filled = kernel.join().unwrap();
        seen.extend(block.take());
        assert_eq!(seen, (1..=filled).collect::<Vec<_>>());
    });
}
