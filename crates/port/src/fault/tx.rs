//! Faults on the way out.

use std::time::Duration;

use super::{FaultCounters, Faults, Injector, describe};
use crate::batch::Batch;
use crate::counters::{Reason, TxCounters};
use crate::error::Result;
use crate::queue::{Event, PortDescription, TxQueue};

/// A sending queue whose frames meet faults before they leave.
#[derive(Debug)]
pub struct FaultyTx<Q> {
    inner: Q,
    injector: Injector,
    batch: Batch,
    accepted_packets: u64,
    accepted_bytes: u64,
    blocked_times: u64,
    has_failed: bool,
    is_abandoned: bool,
}

impl<Q: TxQueue> FaultyTx<Q> {
    /// Wraps `inner`.
    pub fn new(inner: Q, faults: Faults) -> Self {
        Self {
            inner,
            injector: Injector::new(faults),
            batch: Batch::default(),
            accepted_packets: 0,
            accepted_bytes: 0,
            blocked_times: 0,
            has_failed: false,
            is_abandoned: false,
        }
    }

    /// What was done so far.
    pub fn faults(&self) -> FaultCounters {
        self.injector.counters
    }

    /// Sends what is ready. Returns whether all of it left.
    fn push_on(&mut self) -> Result<bool> {
        loop {
            if self.batch.is_empty() && self.injector.give(&mut self.batch) == 0 {
                return Ok(true);
            }
            let sent = self.inner.transmit(&mut self.batch);
            self.has_failed |= sent.is_err();
            if sent? == 0 {
                return Ok(false);
            }
        }
    }
}

impl<Q: TxQueue> TxQueue for FaultyTx<Q> {
    fn transmit(&mut self, batch: &mut Batch) -> Result<usize> {
        if !self.push_on()? {
            self.blocked_times += 1;
            return Ok(0);
        }
        let (count, bytes) = (batch.len(), batch.bytes());
        for frame in batch.frames() {
            self.injector.take(frame);
        }
        batch.clear();
        self.accepted_packets += count as u64;
        self.accepted_bytes += bytes;
        self.push_on()?;
        Ok(count)
    }

    fn takes(&self, frame: &[u8]) -> bool {
        self.inner.takes(frame)
    }

    fn wait(&mut self, timeout: Duration) -> Result<()> {
        self.inner.wait(timeout)
    }

    fn flush(&mut self, timeout: Duration) -> Result<bool> {
        self.injector.release_all();
        let deadline = std::time::Instant::now() + timeout;
        while !self.push_on()? {
            let left = deadline.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            self.inner.wait(left)?;
        }
        self.inner.flush(deadline.saturating_duration_since(std::time::Instant::now()))
    }

    fn taken_bytes(&self) -> Option<u64> {
        self.inner.taken_bytes()
    }

    fn abandon(&mut self) {
        self.is_abandoned = true;
        self.inner.abandon();
    }

    fn counters(&mut self) -> Result<TxCounters> {
        let mut counters = self.inner.counters()?;
        let faults = self.injector.counters;
        counters.accepted_packets = self.accepted_packets;
        counters.accepted_bytes = self.accepted_bytes;
        counters.blocked_times += self.blocked_times;
        counters.dropped.add(Reason::Injected, faults.dropped_packets);
        counters.added_packets += faults.duplicated_packets;
        if self.has_failed || self.is_abandoned {
            // The caller's batch is empty: what the port refused was taken from it before.
            let refused = self.batch.len() + self.injector.waiting();
            let reason = if self.has_failed { Reason::Rejected } else { Reason::RingFull };
            counters.dropped.add(reason, refused as u64);
        }
        Ok(counters)
    }

    fn next_event(&mut self) -> Option<Event> {
        self.inner.next_event()
    }

    fn describe(&self) -> PortDescription {
        describe(self.inner.describe(), &self.injector.faults)
    }
}
