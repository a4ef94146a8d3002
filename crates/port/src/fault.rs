//! Ports wrapped in faults: frames dropped, duplicated, corrupted or delayed on purpose, and counted.
//!
//! Which frames are hit depends on the seed and on the order of frames alone, so that a run can be
//! repeated and its receiver be held against exact figures. A delayed frame is overtaken by a
//! stated number of later frames; a corrupted one has a single bit flipped behind its Ethernet
//! header, where a checksum can notice it.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use wire::random::Random;

use crate::batch::Batch;
use crate::counters::{Reason, RxCounters, TxCounters};
use crate::error::Result;
use crate::frame::{FrameMeta, FrameRef};
use crate::queue::{Event, PortDescription, RxQueue, TxQueue};

/// Bytes of the Ethernet header, which are never corrupted: no checksum covers them.
const ETHERNET_BYTES: usize = 14;

/// Later frames that overtake a delayed one, unless told otherwise.
const DELAY_FRAMES: u32 = 3;

/// The share of frames that each fault hits, 0 to 1, and the seed that chooses them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Faults {
    /// Share of frames that vanish.
    pub drop: f64,
    /// Share of frames that come twice.
    pub duplicate: f64,
    /// Share of frames with one flipped bit.
    pub corrupt: f64,
    /// Share of frames that later ones overtake.
    pub delay: f64,
    /// How many later frames overtake a delayed one.
    pub delay_frames: u32,
    /// Seed of the choice.
    pub seed: u64,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            drop: 0.0,
            duplicate: 0.0,
            corrupt: 0.0,
            delay: 0.0,
            delay_frames: DELAY_FRAMES,
            seed: 0,
        }
    }
}

impl Faults {
    /// Whether no frame is ever touched.
    pub fn is_none(&self) -> bool {
        [self.drop, self.duplicate, self.corrupt, self.delay].iter().all(|share| *share == 0.0)
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shares = [
            ("drop", self.drop),
            ("duplicate", self.duplicate),
            ("corrupt", self.corrupt),
            ("delay", self.delay),
        ];
        let mut options: Vec<String> = shares
            .iter()
            .filter(|(_, share)| *share != 0.0)
            .map(|(name, share)| format!("{name}={share}"))
            .collect();
        if self.delay_frames != DELAY_FRAMES {
            options.push(format!("delay_frames={}", self.delay_frames));
        }
        if self.seed != 0 {
            options.push(format!("seed={}", self.seed));
        }
        f.write_str(&options.join("&"))
    }
}

impl FromStr for Faults {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut faults = Self::default();
        for option in text.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option
                .split_once('=')
                .ok_or_else(|| format!("option «{option}» has no value, as in drop=0.01"))?;
            match name {
                "drop" => faults.drop = share(name, value)?,
                "duplicate" => faults.duplicate = share(name, value)?,
                "corrupt" => faults.corrupt = share(name, value)?,
                "delay" => faults.delay = share(name, value)?,
                "delay_frames" => faults.delay_frames = whole(name, value)?,
                "seed" => faults.seed = whole(name, value)?,
                _ => {
                    return Err(format!(
                        "unknown option «{name}»; known are drop, duplicate, corrupt, delay, \
                         delay_frames, seed"
                    ));
                }
            }
        }
        Ok(faults)
    }
}

fn share(name: &str, value: &str) -> Result<f64, String> {
    match value.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err(format!("{name}={value}: expected a share between 0 and 1, as in 0.01")),
    }
}

fn whole<T: FromStr>(name: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{name}={value}: expected a whole number"))
}

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

    fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.held.is_empty()
    }
}

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

    /// The inner account, in which an added frame counts as one more on the wire and a swallowed
    /// one as dropped for [`Reason::Injected`].
    fn counters(&mut self) -> Result<RxCounters> {
        let mut counters = self.inner.counters()?;
        let faults = self.injector.counters;
        counters.wire_packets += faults.duplicated_packets;
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

/// A sending queue whose frames meet faults before they leave.
#[derive(Debug)]
pub struct FaultyTx<Q> {
    inner: Q,
    injector: Injector,
    batch: Batch,
    accepted_packets: u64,
    accepted_bytes: u64,
    blocked_times: u64,
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
            if self.inner.transmit(&mut self.batch)? == 0 {
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

    fn counters(&mut self) -> Result<TxCounters> {
        let mut counters = self.inner.counters()?;
        let faults = self.injector.counters;
        counters.accepted_packets = self.accepted_packets;
        counters.accepted_bytes = self.accepted_bytes;
        counters.blocked_times += self.blocked_times;
        counters.dropped.add(Reason::Injected, faults.dropped_packets);
        counters.added_packets += faults.duplicated_packets;
        Ok(counters)
    }

    fn next_event(&mut self) -> Option<Event> {
        self.inner.next_event()
    }

    fn describe(&self) -> PortDescription {
        describe(self.inner.describe(), &self.injector.faults)
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
mod tests {
    use super::*;
    use crate::memory;

    /// Sends `count` numbered frames through faults and returns what arrives, with the counters.
    fn through(faults: Faults, count: u32) -> (Vec<Vec<u8>>, FaultCounters) {
        let (mut tx, rx) = memory::pair("faults", 4);
        let mut rx = FaultyRx::new(rx, faults);
        let mut outgoing = Batch::new(64);
        let mut incoming = Batch::default();
        let mut seen = Vec::new();
        for number in 0..count {
            let mut data = [0; 60];
            data[20..24].copy_from_slice(&number.to_be_bytes());
            assert!(outgoing.push(&data, FrameMeta::local(60)));
            if outgoing.is_full() || number + 1 == count {
                assert!(tx.transmit(&mut outgoing).unwrap() > 0);
                while rx.receive(&mut incoming).unwrap() > 0 {
                    seen.extend(incoming.frames().map(|frame| frame.data.to_vec()));
                }
            }
        }
        drop(tx);
        while !rx.is_finished().unwrap() {
            rx.receive(&mut incoming).unwrap();
            seen.extend(incoming.frames().map(|frame| frame.data.to_vec()));
        }
        let counters = rx.counters().unwrap();
        assert_eq!(counters.delivered_packets, seen.len() as u64);
        assert_eq!(
            counters.wire_packets,
            counters.delivered_packets + counters.dropped.total(),
            "the account of a faulty port balances"
        );
        (seen, rx.faults())
    }

    #[test]
    fn drops_and_duplicates_are_counted_exactly() {
        let faults = Faults { drop: 0.1, duplicate: 0.05, seed: 3, ..Faults::default() };
        let (seen, counters) = through(faults, 10_000);
        assert!(counters.dropped_packets > 800 && counters.duplicated_packets > 300);
        assert_eq!(
            seen.len() as u64,
            10_000 - counters.dropped_packets + counters.duplicated_packets
        );
    }

    #[test]
    fn a_corrupted_frame_differs_in_one_bit() {
        let (seen, counters) = through(Faults { corrupt: 1.0, seed: 5, ..Faults::default() }, 500);
        assert_eq!(counters.corrupted_packets, 500);
        for (number, data) in seen.iter().enumerate() {
            let mut right = [0; 60];
            right[20..24].copy_from_slice(&(number as u32).to_be_bytes());
            let flipped: u32 = right.iter().zip(data).map(|(a, b)| (a ^ b).count_ones()).sum();
            assert_eq!(flipped, 1, "frame {number}");
        }
    }

    #[test]
    fn a_delayed_frame_is_overtaken_by_the_stated_number() {
        let faults = Faults { delay: 0.02, delay_frames: 5, seed: 9, ..Faults::default() };
        let (seen, counters) = through(faults, 5_000);
        assert_eq!(seen.len(), 5_000);
        let mut newest = None;
        let mut late = 0;
        for data in &seen {
            let number = u32::from_be_bytes([data[20], data[21], data[22], data[23]]);
            if newest.is_some_and(|newest| number < newest) {
                late += 1;
            }
            newest = newest.max(Some(number));
        }
        assert_eq!(late, counters.delayed_packets);
        assert!(late > 50);
    }

    #[test]
    fn the_same_seed_hits_the_same_frames() {
        let faults = Faults {
            drop: 0.3,
            duplicate: 0.2,
            delay: 0.1,
            corrupt: 0.1,
            seed: 1,
            ..Faults::default()
        };
        assert_eq!(through(faults, 1_000), through(faults, 1_000));
        assert_ne!(through(faults, 1_000).0, through(Faults { seed: 2, ..faults }, 1_000).0);
    }

    #[test]
    fn a_faulty_sender_releases_held_frames_when_flushed() {
        let (tx, mut rx) = memory::pair("faulty sender", 4);
        let mut tx = FaultyTx::new(tx, Faults { delay: 1.0, delay_frames: 9, ..Faults::default() });
        let mut batch = Batch::new(64);
        assert!(batch.push(&[4; 60], FrameMeta::local(60)));
        assert_eq!(tx.transmit(&mut batch).unwrap(), 1);
        let mut incoming = Batch::default();
        assert_eq!(rx.receive(&mut incoming).unwrap(), 0);
        tx.flush(Duration::from_millis(1)).unwrap();
        assert_eq!(rx.receive(&mut incoming).unwrap(), 1);
    }
}
