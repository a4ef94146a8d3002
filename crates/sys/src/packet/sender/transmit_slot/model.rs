//! All ways in which the sender, a send call and a device can meet at a transmit ring (loom).
//!
//! The kernel is a thread: what it does before it says that the call is over is the call, in which
//! it takes as many frames as it likes; what it does afterwards is the device, which reads the
//! frames and frees their slots whenever it likes.

use loom::cell::Cell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use loom::thread;

use super::TransmitSlot;

const SLOTS: usize = 2;

/// A ring whose slots hold the number of a frame. Loom fails where two threads reach for a `Cell`
/// and neither has waited for the other.
struct Ring {
    status: [AtomicU32; SLOTS],
    frames: [Cell<u32>; SLOTS],
    /// Set at some time or other, after which the kernel takes no more frames.
    full: AtomicBool,
    /// The send call is over.
    returned: AtomicBool,
}

impl Ring {
    fn new() -> Self {
        Self {
            status: std::array::from_fn(|_| AtomicU32::new(libc::TP_STATUS_AVAILABLE)),
            frames: std::array::from_fn(|_| Cell::new(0)),
            full: AtomicBool::new(false),
            returned: AtomicBool::new(false),
        }
    }

    fn slot(&self, index: usize) -> TransmitSlot<'_, AtomicU32> {
        TransmitSlot(&self.status[index])
    }

    /// Sends what is requested when the last slot is; gives the frames in order.
    fn send_as_the_kernel(&self) -> Vec<u32> {
        while self.status[SLOTS - 1].load(Ordering::Acquire) != libc::TP_STATUS_SEND_REQUEST {
            thread::yield_now();
        }
        let mut taken = 0;
        for status in &self.status {
            if self.full.load(Ordering::Relaxed) {
                break;
            }
            assert_eq!(status.load(Ordering::Acquire), libc::TP_STATUS_SEND_REQUEST);
            status.store(libc::TP_STATUS_SENDING, Ordering::Relaxed);
            taken += 1;
        }
        self.returned.store(true, Ordering::Release);
        let mut sent = Vec::new();
        for (status, frame) in self.status.iter().zip(&self.frames).take(taken) {
            sent.push(frame.get());
            status.store(libc::TP_STATUS_AVAILABLE, Ordering::Release);
        }
        sent
    }
}

#[test]
fn each_frame_is_sent_once_and_whole_or_left_with_the_sender() {
    loom::model(|| {
        let ring = Arc::new(Ring::new());
        let kernel = Arc::clone(&ring);
        let kernel = thread::spawn(move || kernel.send_as_the_kernel());
        for index in 0..SLOTS {
            assert!(ring.slot(index).is_free());
            ring.frames[index].set(1 + index as u32);
        }
        for index in 0..SLOTS {
            ring.slot(index).request();
        }
        ring.full.store(true, Ordering::Relaxed);
        while !ring.returned.load(Ordering::Acquire) {
            thread::yield_now();
        }
        let taken = (0..SLOTS).position(|index| ring.slot(index).is_left()).unwrap_or(SLOTS);
        for index in taken..SLOTS {
            ring.slot(index).take_back();
        }
        // The next batch: a slot that the device still reads is not written to.
        for index in 0..SLOTS {
            while !ring.slot(index).is_free() {
                thread::yield_now();
            }
            ring.frames[index].set(11 + index as u32);
        }
        let sent = kernel.join().unwrap();
        assert_eq!(sent, (1..=taken as u32).collect::<Vec<_>>());
    });
}
