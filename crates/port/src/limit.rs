//! A receiving queue that ends by itself after a number of frames, to the frame.
//!
//! Frames come in batches, and a kernel's ring holds more of them when the last wanted one is
//! taken. The input is stopped at that moment; what had come before is drained and counted in
//! [`RxCounters::beyond_count_packets`], so that the account still balances to the packet.

use std::time::Duration;

use crate::batch::Batch;
use crate::counters::RxCounters;
use crate::error::Result;
use crate::queue::{Event, PortDescription, RxQueue};

/// A receiving queue that delivers a number of frames at most.
#[derive(Debug)]
pub struct LimitedRx<Q> {
    inner: Q,
    /// Frames still wanted; `None` for all that come.
    left_packets: Option<u64>,
    is_stopped: bool,
    delivered_packets: u64,
    delivered_bytes: u64,
    beyond_packets: u64,
}

impl<Q: RxQueue> LimitedRx<Q> {
    /// Delivers the first `count` frames of `inner`; all of them without a count.
    pub fn new(inner: Q, count: Option<u64>) -> Self {
        Self {
            inner,
            left_packets: count,
            is_stopped: false,
            delivered_packets: 0,
            delivered_bytes: 0,
            beyond_packets: 0,
        }
    }

    /// The queue whose frames are delivered.
    pub fn inner(&self) -> &Q {
        &self.inner
    }

    /// Takes the frames out of `batch` that are not wanted any more, and ends the input with the
    /// last wanted one.
    fn cut(&mut self, batch: &mut Batch) -> Result<()> {
        let Some(left) = self.left_packets else { return Ok(()) };
        // A count beyond what a batch holds cuts nothing.
        self.beyond_packets += batch.truncate(usize::try_from(left).unwrap_or(usize::MAX)) as u64;
        self.left_packets = Some(left - batch.len() as u64);
        if self.left_packets == Some(0) { self.stop() } else { Ok(()) }
    }
}

impl<Q: RxQueue> RxQueue for LimitedRx<Q> {
    fn start(&mut self) -> Result<()> {
        self.inner.start()?;
        if self.left_packets == Some(0) { self.stop() } else { Ok(()) }
    }

    fn receive(&mut self, batch: &mut Batch) -> Result<usize> {
        if self.inner.receive(batch)? > 0 {
            self.cut(batch)?;
        }
        self.delivered_packets += batch.len() as u64;
        self.delivered_bytes += batch.bytes();
        Ok(batch.len())
    }

    fn wait(&mut self, timeout: Duration) -> Result<()> {
        self.inner.wait(timeout)
    }

    /// Whoever stops first decides the moment: the account of the inner queue knows only one.
    fn stop(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.is_stopped, true) { Ok(()) } else { self.inner.stop() }
    }

    fn is_finished(&mut self) -> Result<bool> {
        self.inner.is_finished()
    }

    fn is_expired(&mut self) -> bool {
        self.inner.is_expired()
    }

    fn counters(&mut self) -> Result<RxCounters> {
        let mut counters = self.inner.counters()?;
        counters.delivered_packets = self.delivered_packets;
        counters.delivered_bytes = self.delivered_bytes;
        counters.beyond_count_packets += self.beyond_packets;
        Ok(counters)
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
    use crate::frame::FrameMeta;
    use crate::memory::{self, MemoryTx};
    use crate::queue::TxQueue;

    /// A ring with `count` frames in batches of 64, each frame with its number in front.
    fn filled(count: u32) -> (MemoryTx, memory::MemoryRx) {
        let (mut tx, rx) = memory::pair("limit", 64);
        let mut batch = Batch::new(64);
        for number in 0..count {
            assert!(batch.push(&[number as u8; 60], FrameMeta::local(60)));
            if batch.is_full() || number == count - 1 {
                tx.transmit(&mut batch).unwrap();
            }
        }
        (tx, rx)
    }

    fn drain<Q: RxQueue>(rx: &mut Q) -> u64 {
        let mut batch = Batch::default();
        let mut received = 0;
        loop {
            let count = rx.receive(&mut batch).unwrap() as u64;
            for frame in batch.frames() {
                assert_eq!(frame.data[0], received as u8);
                received += 1;
            }
            if count == 0 && rx.is_finished().unwrap() {
                return received;
            }
        }
    }

    #[test]
    fn exactly_the_wanted_frames_are_delivered() {
        for wanted in [0, 1, 63, 64, 65, 130, 199, 200] {
            let (_tx, rx) = filled(200);
            let mut rx = LimitedRx::new(rx, Some(wanted));
            rx.start().unwrap();
            assert_eq!(drain(&mut rx), wanted);
            let counters = rx.counters().unwrap();
            assert_eq!((counters.wire_packets, counters.delivered_packets), (200, wanted));
            assert_eq!(counters.delivered_bytes, wanted * 60);
            assert_eq!(counters.beyond_count_packets, 200 - wanted);
        }
    }

    #[test]
    fn without_a_count_or_with_too_large_a_one_all_frames_come() {
        for wanted in [None, Some(201), Some(u64::MAX)] {
            let (tx, rx) = filled(200);
            drop(tx);
            let mut rx = LimitedRx::new(rx, wanted);
            rx.start().unwrap();
            assert_eq!(drain(&mut rx), 200);
            assert_eq!(rx.counters().unwrap().beyond_count_packets, 0);
        }
    }
}
