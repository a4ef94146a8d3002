//! Counters of a running worker, for whoever wants to look: one writer, any number of readers.

use std::sync::atomic::{AtomicU64, Ordering};

/// A 64-bit counter with one writer.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Sets the value. Only the counter's worker calls this.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Adds to the value. Only the counter's worker calls this: no locked instruction is needed.
    pub fn add(&self, value: u64) {
        self.set(self.get() + value);
    }

    /// The value, as of a moment ago.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a worker has done so far.
#[derive(Debug, Default)]
pub struct Live {
    /// 1 once the source has been started: what arrives from then on is seen.
    pub started: Counter,
    /// Frames received or made.
    pub received_packets: Counter,
    /// Bytes of these.
    pub received_bytes: Counter,
    /// Frames lost before they were received, as of the last tick.
    pub dropped_packets: Counter,
    /// Frames accepted by the sending port.
    pub transmitted_packets: Counter,
    /// Bytes of these.
    pub transmitted_bytes: Counter,
    /// Frames that a stage dropped (a recorder without room), as of the last tick.
    pub stage_dropped_packets: Counter,
    /// Bytes that a stage has put on disk, as of the last tick.
    pub stored_bytes: Counter,
    /// Share of the stage's buffer in use, in 1/1000, as of the last tick.
    pub buffer_used_milli: Counter,
}
