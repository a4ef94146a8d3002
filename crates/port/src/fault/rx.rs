//! Faults on the way in.

use std::time::Duration;

use super::{FaultCounters, Faults, Injector, describe};
use crate::batch::Batch;
use crate::counters::{Reason, RxCounters};
use crate::error::Result;
use crate::queue::{Event, PortDescription, RxQueue};

/// A receiving queue whose frames meet faults before they are delivered.
#[derive(Debug)]
pub struct FaultyRx<Q> {
    inner: Q,
    injector: Injector,
    batch: Batch,
    delivered_packets: u64,
    delivered_bytes: u64,
}

impl<Q: RxQueue> FaultyRx<Q> {
    /// Wraps `inner`.
    pub fn new(inner: Q, faults: Faults) -> Self {
        Self {
            inner,
            injector: Injector::new(faults),
            batch: Batch::default(),
            delivered_packets: 0,
            delivered_bytes: 0,
        }
    }

    /// What was done so far.
    pub fn faults(&self) -> FaultCounters {
        self.injector.counters
    }
}

impl<Q: RxQueue> RxQueue for FaultyRx<Q> {
    fn start(&mut self) -> Result<()> {
        self.inner.start()
    }

    fn receive(&mut self, batch: &mut Batch) -> Result<usize> {
        batch.clear();
        if self.injector.ready.is_empty() {
            self.inner.receive(&mut self.batch)?;
            for frame in self.batch.frames() {
                self.injector.take(frame);
            }
            let over = self.batch.is_empty() && self.inner.is_finished()?;
            self.batch.clear();
            if over {
                self.injector.release_all();
            }
        }
        let count = self.injector.give(batch);
        self.delivered_packets += count as u64;
        self.delivered_bytes += batch.bytes();
        Ok(count)
    }

    fn wait(&mut self, timeout: Duration) -> Result<()> {
        if self.injector.ready.is_empty() { self.inner.wait(timeout) } else { Ok(()) }
    }

    fn stop(&mut self) -> Result<()> {
        self.inner.stop()
    }

    fn is_finished(&mut self) -> Result<bool> {
        Ok(self.injector.is_empty() && self.inner.is_finished()?)
    }

    fn is_expired(&mut self) -> bool {
        self.inner.is_expired()
    }

    /// The inner account, with the frames that were added and, dropped for [`Reason::Injected`],
    /// those that were swallowed.
    fn counters(&mut self) -> Result<RxCounters> {
        let mut counters = self.inner.counters()?;
        let faults = self.injector.counters;
        counters.added_packets += faults.duplicated_packets;
        counters.delivered_packets = self.delivered_packets;
        counters.delivered_bytes = self.delivered_bytes;
        counters.dropped.add(Reason::Injected, faults.dropped_packets);
        Ok(counters)
    }

    fn next_event(&mut self) -> Option<Event> {
        self.inner.next_event()
    }

    fn describe(&self) -> PortDescription {
        describe(self.inner.describe(), &self.injector.faults)
    }
}
