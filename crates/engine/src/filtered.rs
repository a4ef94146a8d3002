//! A receiving queue that gives out the frames that match a filter, and counts the others.
//!
//! It stands behind the port and its faults and before all that cuts or counts frames off: the filter
//! sees whole frames, and a number of wanted ones is a number of those that match. What does not match is
//! in [`RxCounters::filtered_packets`].

use std::time::Duration;

use filter::{BATCH_PACKETS_MAX, Filter, Packet};
use port::{Batch, Event, PortDescription, Result, RxCounters, RxQueue};

/// Batches without a match in one call: whoever calls wants to look at his clock now and then.
const EMPTY_BATCHES_MAX: usize = 16;

/// What a port knows of all its frames beyond their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Facts {
    /// Whether this machine sent them, where that is known.
    pub outbound: Option<bool>,
    /// Number of the interface, where there is one.
    pub interface: Option<u32>,
}

/// A receiving queue whose frames match a filter.
#[derive(Debug)]
pub struct FilteredRx<Q> {
    inner: Q,
    filter: filter::Batch,
    facts: Facts,
    filtered_packets: u64,
    delivered_packets: u64,
    delivered_bytes: u64,
}

impl<Q: RxQueue> FilteredRx<Q> {
    /// Gives out the frames of `inner` that match `filter`, which is one for their link.
    pub fn new(inner: Q, filter: &Filter, facts: Facts) -> Self {
        Self {
            inner,
            filter: filter.batch(),
            facts,
            filtered_packets: 0,
            delivered_packets: 0,
            delivered_bytes: 0,
        }
    }

    /// Takes the frames out of `batch` that do not match.
    fn sift(&mut self, batch: &mut Batch) {
        let mut packets = [Packet::default(); BATCH_PACKETS_MAX];
        for (packet, frame) in packets.iter_mut().zip(batch.frames()) {
            *packet = Packet {
                data: frame.data,
                wire_bytes: frame.meta.wire_length,
                outbound: self.facts.outbound,
                interface: self.facts.interface,
            };
        }
        let asked = packets.get(..batch.len()).unwrap_or_default();
        let mut matches = self.filter.matches(asked);
        if matches.count_ones() as usize == batch.len() {
            return;
        }
        let dropped = batch.retain(|_| {
            let is_match = matches & 1 == 1;
            matches >>= 1;
            is_match
        });
        self.filtered_packets += dropped as u64;
    }
}

// The filter's answers have a bit for every frame of a batch.
const _: () = assert!(port::BATCH_FRAMES <= BATCH_PACKETS_MAX);

impl<Q: RxQueue> RxQueue for FilteredRx<Q> {
    fn start(&mut self) -> Result<()> {
        self.inner.start()
    }

    fn receive(&mut self, batch: &mut Batch) -> Result<usize> {
        for _ in 0..EMPTY_BATCHES_MAX {
            if self.inner.receive(batch)? == 0 {
                break;
            }
            self.sift(batch);
            if !batch.is_empty() {
                break;
            }
        }
        self.delivered_packets += batch.len() as u64;
        self.delivered_bytes += batch.bytes();
        Ok(batch.len())
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
        let mut counters = self.inner.counters()?;
        counters.filtered_packets += self.filtered_packets;
        counters.delivered_packets = self.delivered_packets;
        counters.delivered_bytes = self.delivered_bytes;
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
mod tests;
