//! Ports wrapped in faults: frames dropped, duplicated, corrupted or delayed on purpose, and counted.
//!
//! Which frames are hit depends on the seed and on the order of frames alone, so that a run can be
//! repeated and its receiver be held against exact figures. A delayed frame is overtaken by a
//! stated number of later frames; a corrupted one has a single bit flipped behind its Ethernet
//! header, where a checksum can notice it.

mod faults;
mod rx;
mod tx;

use std::collections::VecDeque;

use wire::random::Random;

use crate::batch::Batch;
use crate::frame::{FrameMeta, FrameRef};
use crate::queue::PortDescription;

pub use faults::Faults;
pub use rx::FaultyRx;
pub use tx::FaultyTx;

/// Bytes of the Ethernet header, which are never corrupted: no checksum covers them.
const ETHERNET_BYTES: usize = 14;

/// What was done to frames so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FaultCounters {
    /// Frames that vanished.
    pub dropped_packets: u64,
    /// Frames that came twice: this many copies were added.
    pub duplicated_packets: u64,
    /// Frames with a flipped bit.
    pub corrupted_packets: u64,
    /// Frames that later ones overtook.
    pub delayed_packets: u64,
}

/// A frame on its own, between two batches.
#[derive(Debug)]
struct Loose {
    data: Vec<u8>,
    meta: FrameMeta,
}

/// Decides what happens to each frame, and holds those that wait.
#[derive(Debug)]
struct Injector {
    faults: Faults,
    random: Random,
    counters: FaultCounters,
    /// Ready to go on.
    ready: VecDeque<Loose>,
    /// Delayed, with the number of frames that still have to pass.
    held: VecDeque<(u32, Loose)>,
    /// Buffers for reuse.
    spare: Vec<Vec<u8>>,
}

impl Injector {
    fn new(faults: Faults) -> Self {
        Self {
            faults,
            random: Random::new(faults.seed),
            counters: FaultCounters::default(),
            ready: VecDeque::new(),
            held: VecDeque::new(),
            spare: Vec::new(),
        }
    }

    fn take(&mut self, frame: FrameRef<'_>) {
        if self.hits(self.faults.drop) {
            self.counters.dropped_packets += 1;
            return;
        }
        let mut loose = self.copy(frame);
        if self.hits(self.faults.corrupt) && loose.data.len() > ETHERNET_BYTES {
            self.counters.corrupted_packets += 1;
            let bits = (loose.data.len() - ETHERNET_BYTES) as u64 * 8;
            let bit = self.random.below(bits) as usize;
            loose.data[ETHERNET_BYTES + bit / 8] ^= 1 << (bit % 8);
        }
        if self.hits(self.faults.duplicate) {
            self.counters.duplicated_packets += 1;
            let twin = self.copy(FrameRef { data: &loose.data, meta: loose.meta });
            self.ready.push_back(twin);
        }
        if self.hits(self.faults.delay) && self.faults.delay_frames > 0 {
            self.counters.delayed_packets += 1;
            self.held.push_back((self.faults.delay_frames, loose));
        } else {
            self.ready.push_back(loose);
            self.release_overtaken();
        }
    }

    /// A frame has passed: those that have waited for it may be free now.
    fn release_overtaken(&mut self) {
        for (wait, _) in &mut self.held {
            *wait = wait.saturating_sub(1);
        }
        while matches!(self.held.front(), Some((0, _))) {
            let Some((_, loose)) = self.held.pop_front() else { return };
            self.ready.push_back(loose);
        }
    }

    fn release_all(&mut self) {
        self.ready.extend(self.held.drain(..).map(|(_, loose)| loose));
    }

    /// Moves ready frames to the end of `batch`, as many as fit. Returns how many.
    fn give(&mut self, batch: &mut Batch) -> usize {
        if batch.is_empty() {
            let longest = self.ready.iter().take(crate::BATCH_FRAMES).map(|l| l.data.len()).max();
            batch.reserve(longest.unwrap_or(0));
        }
        let before = batch.len();
        while let Some(loose) = self.ready.pop_front() {
            if !batch.push(&loose.data, loose.meta) {
                self.ready.push_front(loose);
                break;
            }
            self.spare.push(loose.data);
        }
        batch.len() - before
    }

    fn copy(&mut self, frame: FrameRef<'_>) -> Loose {
        let mut data = self.spare.pop().unwrap_or_default();
        data.clear();
        data.extend_from_slice(frame.data);
        Loose { data, meta: frame.meta }
    }

    fn hits(&mut self, share: f64) -> bool {
        share > 0.0 && self.random.unit() < share
    }

    /// Frames that were taken and not given on.
    fn waiting(&self) -> usize {
        self.ready.len() + self.held.len()
    }

    fn is_empty(&self) -> bool {
        self.waiting() == 0
    }
}

fn describe(inner: PortDescription, faults: &Faults) -> PortDescription {
    PortDescription {
        spec: format!("{}?{faults}", inner.spec),
        mechanism: format!("{}, with faults: {faults}", inner.mechanism),
        ..inner
    }
}

#[cfg(test)]
mod tests;
