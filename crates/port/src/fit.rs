//! A sending queue that leaves out what its port cannot take, and sends the rest.
//!
//! For frames that somebody else made: of a recording, some may be longer than the MTU (segments that
//! were cut or merged beside the wire) or shorter than an Ethernet header. One of them is no reason to
//! send none.

use std::time::Duration;

use crate::batch::Batch;
use crate::counters::TxCounters;
use crate::error::Result;
use crate::queue::{Event, PortDescription, TxQueue};

/// Frames that were left out; there is at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unfit {
    /// How many.
    pub packets: u64,
    /// Bytes of all of them.
    pub bytes: u64,
    /// Length of the longest.
    pub longest_bytes: usize,
    /// Length of the shortest.
    pub shortest_bytes: usize,
}

impl Unfit {
    fn add(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.longest_bytes = self.longest_bytes.max(other.longest_bytes);
        self.shortest_bytes = self.shortest_bytes.min(other.shortest_bytes);
    }
}

/// A sending queue that is given frames of any length.
///
/// A call of [`TxQueue::transmit`] either leaves frames out of the batch or hands it on, so that what
/// it takes from the batch is never both. It takes 0 when it has left some out: the caller comes again,
/// as it does when the port is full, and is not made to wait.
#[derive(Debug)]
pub struct FittingTx<Q> {
    inner: Q,
    unfit: Option<Unfit>,
    /// Whether the last call asked the port: only then it may be full.
    has_asked: bool,
}

impl<Q: TxQueue> FittingTx<Q> {
    /// Sends those frames on `inner` that it takes.
    pub fn new(inner: Q) -> Self {
        Self { inner, unfit: None, has_asked: false }
    }

    /// The queue that frames were sent on.
    pub fn into_inner(self) -> Q {
        self.inner
    }

    /// What was left out so far; `None` if all fitted.
    pub fn unfit(&self) -> Option<Unfit> {
        self.unfit
    }

    /// Whether there was a frame in `batch` that does not fit.
    fn leave_out(&mut self, batch: &mut Batch) -> bool {
        let Self { inner, unfit, .. } = self;
        let left_out = batch.retain(|frame| {
            let fits = inner.takes(frame.data);
            if !fits {
                let bytes = frame.data.len();
                let one = Unfit {
                    packets: 1,
                    bytes: bytes as u64,
                    longest_bytes: bytes,
                    shortest_bytes: bytes,
                };
                match unfit {
                    Some(unfit) => unfit.add(one),
                    None => *unfit = Some(one),
                }
            }
            fits
        });
        left_out > 0
    }
}

impl<Q: TxQueue> TxQueue for FittingTx<Q> {
    fn transmit(&mut self, batch: &mut Batch) -> Result<usize> {
        self.has_asked = false;
        if self.leave_out(batch) {
            return Ok(0);
        }
        match self.inner.transmit(batch) {
            // It takes less by now than it did a moment ago: somebody has lowered the MTU.
            Err(_) if self.leave_out(batch) => Ok(0),
            outcome => {
                self.has_asked = true;
                outcome
            }
        }
    }

    fn takes(&self, frame: &[u8]) -> bool {
        self.inner.takes(frame)
    }

    fn wait(&mut self, timeout: Duration) -> Result<()> {
        if self.has_asked { self.inner.wait(timeout) } else { Ok(()) }
    }

    fn flush(&mut self, timeout: Duration) -> Result<bool> {
        self.inner.flush(timeout)
    }

    fn taken_bytes(&self) -> Option<u64> {
        self.inner.taken_bytes()
    }

    fn abandon(&mut self) {
        self.inner.abandon();
    }

    fn counters(&mut self) -> Result<TxCounters> {
        self.inner.counters()
    }

    fn next_event(&mut self) -> Option<Event> {
        self.inner.next_event()
    }

    fn describe(&self) -> PortDescription {
        self.inner.describe()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::error::PortError;
    use crate::frame::FrameMeta;
    use crate::null::Null;

    /// Takes frames of 14 to `longest` bytes, `room` a call.
    struct Narrow {
        longest: usize,
        /// What `longest` turns out to be when the next frame is handed over.
        sinks_to: usize,
        room: usize,
        waits: u32,
        sent: Vec<usize>,
    }

    fn narrow(longest: usize, room: usize) -> FittingTx<Narrow> {
        FittingTx::new(Narrow { longest, sinks_to: longest, room, waits: 0, sent: Vec::new() })
    }

    impl TxQueue for Narrow {
        fn transmit(&mut self, batch: &mut Batch) -> Result<usize> {
            self.longest = self.sinks_to;
            if let Some(bad) = batch.frames().find(|frame| !self.takes(frame.data)) {
                return Err(PortError::FrameTooLong {
                    port: "narrow".into(),
                    frame_bytes: bad.data.len(),
                    frame_bytes_max: self.longest,
                    remedy: String::new(),
                });
            }
            let count = self.room.min(batch.len());
            self.sent.extend(batch.frames().take(count).map(|frame| frame.data.len()));
            batch.drop_front(count);
            Ok(count)
        }
        fn takes(&self, frame: &[u8]) -> bool {
            (14..=self.longest).contains(&frame.len())
        }
        fn wait(&mut self, _timeout: Duration) -> Result<()> {
            self.waits += 1;
            Ok(())
        }
        fn flush(&mut self, _timeout: Duration) -> Result<bool> {
            Ok(true)
        }
        fn counters(&mut self) -> Result<TxCounters> {
            Ok(TxCounters::default())
        }
        fn describe(&self) -> PortDescription {
            TxQueue::describe(&Null::default())
        }
    }

    fn batch(lengths: &[usize]) -> Batch {
        let mut batch = Batch::new(70_000);
        for &length in lengths {
            assert!(batch.push(&vec![7; length], FrameMeta::local(length)));
        }
        batch
    }

    /// Hands a batch over as a worker does; gives what each call took.
    fn hand_over(tx: &mut FittingTx<Narrow>, batch: &mut Batch) -> Vec<usize> {
        let mut taken = Vec::new();
        while !batch.is_empty() {
            let (before, bytes) = (batch.len(), batch.bytes());
            let count = tx.transmit(batch).unwrap();
            assert!(count == 0 || before - batch.len() == count);
            assert!(count > 0 || batch.bytes() < bytes, "it comes again without end");
            taken.push(count);
            if count == 0 {
                tx.wait(Duration::ZERO).unwrap();
            }
        }
        taken
    }

    #[test]
    fn what_does_not_fit_is_left_out_and_the_rest_is_sent() {
        let mut tx = narrow(100, 64);
        let mut frames = batch(&[60, 10, 101, 61, 65_226, 100, 13, 14]);
        assert_eq!(hand_over(&mut tx, &mut frames), [0, 4]);
        assert_eq!(tx.inner.sent, [60, 61, 100, 14]);
        let expected = Unfit {
            packets: 4,
            bytes: 10 + 101 + 65_226 + 13,
            longest_bytes: 65_226,
            shortest_bytes: 10,
        };
        assert_eq!(tx.unfit(), Some(expected));
        // Batches without, and with nothing but such frames.
        assert_eq!(hand_over(&mut tx, &mut batch(&[20, 30])), [2]);
        assert_eq!(hand_over(&mut tx, &mut batch(&[9, 70_000])), [0]);
        assert_eq!(tx.inner.sent, [60, 61, 100, 14, 20, 30]);
        let expected = Unfit {
            packets: 6,
            bytes: expected.bytes + 70_009,
            longest_bytes: 70_000,
            shortest_bytes: 9,
        };
        assert_eq!(tx.unfit(), Some(expected));
        assert_eq!(tx.inner.waits, 0, "the port was never full");
    }

    #[test]
    fn a_full_port_is_waited_for_and_all_that_fits_is_not_unfit() {
        let mut tx = narrow(100, 3);
        assert_eq!(hand_over(&mut tx, &mut batch(&[60; 7])), [3, 3, 1]);
        assert_eq!(tx.unfit(), None);
        tx.inner.room = 0;
        assert_eq!(tx.transmit(&mut batch(&[60])).unwrap(), 0);
        tx.wait(Duration::ZERO).unwrap();
        assert_eq!(tx.inner.waits, 1);
    }

    #[test]
    fn a_limit_that_sinks_is_no_error() {
        let mut tx = narrow(1_514, 64);
        tx.inner.sinks_to = 1_014;
        assert_eq!(hand_over(&mut tx, &mut batch(&[60, 1_514, 1_014])), [0, 2]);
        assert_eq!(tx.inner.sent, [60, 1_014]);
        assert_eq!(tx.unfit().unwrap().bytes, 1_514);
    }
}
