//! A receiving queue that keeps the beginning of each frame, for ports whose kernel does not cut.

use std::time::Duration;

use crate::batch::Batch;
use crate::counters::RxCounters;
use crate::error::Result;
use crate::queue::{Event, PortDescription, RxQueue};

/// A receiving queue whose frames are cut.
#[derive(Debug)]
pub struct SnapRx<Q> {
    inner: Q,
    snap_bytes: u32,
    delivered_bytes: u64,
}

impl<Q: RxQueue> SnapRx<Q> {
    /// Keeps at most `snap_bytes` bytes of each frame of `inner`.
    pub fn new(inner: Q, snap_bytes: u32) -> Self {
        Self { inner, snap_bytes, delivered_bytes: 0 }
    }
}

impl<Q: RxQueue> RxQueue for SnapRx<Q> {
    fn start(&mut self) -> Result<()> {
        self.inner.start()
    }

    fn receive(&mut self, batch: &mut Batch) -> Result<usize> {
        let count = self.inner.receive(batch)?;
        batch.snap(self.snap_bytes);
        self.delivered_bytes += batch.bytes();
        Ok(count)
    }

    fn wait(&mut self, timeout: Duration) -> Result<()> {
        self.inner.wait(timeout)
    }

    fn stop(&mut self) -> Result<()> {
        self.inner.stop()
    }

    fn is_finished(&mut self) -> Result<bool> {
        self.inner.is_finished()
    }

    fn is_expired(&mut self) -> bool {
        self.inner.is_expired()
    }

    fn counters(&mut self) -> Result<RxCounters> {
        Ok(RxCounters { delivered_bytes: self.delivered_bytes, ..self.inner.counters()? })
    }

    fn next_event(&mut self) -> Option<Event> {
        self.inner.next_event()
    }

    fn describe(&self) -> PortDescription {
        self.inner.describe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::FrameMeta;
    use crate::memory;
    use crate::queue::TxQueue;

    #[test]
    fn frames_are_cut_and_their_lengths_kept() {
        let (mut tx, rx) = memory::pair("snap", 4);
        let mut rx = SnapRx::new(rx, 40);
        let mut batch = Batch::new(100);
        for length in [100usize, 40, 20] {
            assert!(batch.push(&vec![7; length], FrameMeta::local(length)));
        }
        tx.transmit(&mut batch).unwrap();
        assert_eq!(rx.receive(&mut batch).unwrap(), 3);
        let seen: Vec<(usize, u32)> =
            batch.frames().map(|frame| (frame.data.len(), frame.meta.wire_length)).collect();
        assert_eq!(seen, [(40, 100), (40, 40), (20, 20)]);
        assert_eq!((batch.bytes(), rx.counters().unwrap().delivered_bytes), (100, 100));
    }
}
