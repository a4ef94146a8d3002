//! `memory:NAME` hands batches from one thread to another within the process.
//!
//! Two single-producer single-consumer rings carry whole batches: full ones there, emptied ones
//! back, so that in a steady state nothing is allocated and no frame is copied. A ring has one
//! sender and one receiver; the receiver sees the end when the sender is dropped.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::batch::Batch;
use crate::counters::{RxCounters, TxCounters};
use crate::error::{PortError, Result};
use crate::null::FRAME_BYTES_MAX;
use crate::queue::{PortDescription, RxQueue, TxQueue};
use crate::ring::{Consumer, Producer, PushError, RingBuffer};

/// Batches that a ring holds unless told otherwise: 16,384 frames.
pub const BATCHES: usize = 256;

/// Sleep between two looks at a ring that was empty or full: short against a scheduling tick, long
/// against the hand-over of a batch.
const NAP: Duration = Duration::from_micros(50);

/// The sending end.
#[derive(Debug)]
pub struct MemoryTx {
    name: String,
    full: Producer<Batch>,
    empty: Consumer<Batch>,
    sent: TxCounters,
}

/// The receiving end.
#[derive(Debug)]
pub struct MemoryRx {
    name: String,
    full: Consumer<Batch>,
    empty: Producer<Batch>,
    received: RxCounters,
    stopped: bool,
}

/// A ring of `batches` batches: what is sent at one end is received at the other.
pub fn pair(name: &str, batches: usize) -> (MemoryTx, MemoryRx) {
    let (full_in, full_out) = RingBuffer::new(batches.max(1));
    // One more than there are batches under way: the hand-back never finds the ring full.
    let (empty_in, empty_out) = RingBuffer::new(batches.max(1) + 1);
    let tx = MemoryTx {
        name: name.into(),
        full: full_in,
        empty: empty_out,
        sent: TxCounters::default(),
    };
    let rx = MemoryRx {
        name: name.into(),
        full: full_out,
        empty: empty_in,
        received: RxCounters::default(),
        stopped: false,
    };
    (tx, rx)
}

/// Ends of named rings whose other end has been opened and which wait for theirs.
#[derive(Default)]
struct Waiting {
    tx: HashMap<String, MemoryTx>,
    rx: HashMap<String, MemoryRx>,
}

static WAITING: Mutex<Option<Waiting>> = Mutex::new(None);

/// Opens the sending end of the ring of this name; the receiving end waits for its opener.
pub fn open_tx(name: &str) -> Result<MemoryTx> {
    with_waiting(|waiting| {
        if let Some(tx) = waiting.tx.remove(name) {
            return Ok(tx);
        }
        if waiting.rx.contains_key(name) {
            return Err(taken(name, "sending"));
        }
        let (tx, rx) = pair(name, BATCHES);
        waiting.rx.insert(name.into(), rx);
        Ok(tx)
    })
}

/// Opens the receiving end of the ring of this name; the sending end waits for its opener.
pub fn open_rx(name: &str) -> Result<MemoryRx> {
    with_waiting(|waiting| {
        if let Some(rx) = waiting.rx.remove(name) {
            return Ok(rx);
        }
        if waiting.tx.contains_key(name) {
            return Err(taken(name, "receiving"));
        }
        let (tx, rx) = pair(name, BATCHES);
        waiting.tx.insert(name.into(), tx);
        Ok(rx)
    })
}

fn with_waiting<R>(action: impl FnOnce(&mut Waiting) -> R) -> R {
    let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    action(waiting.get_or_insert_default())
}

fn taken(name: &str, end: &str) -> PortError {
    PortError::Unsupported {
        port: format!("memory:{name}"),
        reason: format!("its {end} end is open already; a ring has one at each end"),
    }
}

impl TxQueue for MemoryTx {
    fn transmit(&mut self, batch: &mut Batch) -> Result<usize> {
        let (count, bytes) = (batch.len(), batch.bytes());
        if count == 0 {
            return Ok(0);
        }
        batch.check_lengths(FRAME_BYTES_MAX, |_| FRAME_BYTES_MAX, || self.describe())?;
        if self.full.is_full() {
            self.sent.blocked_times += 1;
            return Ok(0);
        }
        let mut replacement = self.empty.pop().unwrap_or_default();
        replacement.reserve(batch.slot_bytes());
        let filled = std::mem::replace(batch, replacement);
        if let Err(PushError::Full(filled)) = self.full.push(filled) {
            *batch = filled;
            return Ok(0);
        }
        self.sent.accepted_packets += count as u64;
        self.sent.accepted_bytes += bytes;
        Ok(count)
    }

    fn takes(&self, frame: &[u8]) -> bool {
        frame.len() <= FRAME_BYTES_MAX
    }

    fn wait(&mut self, timeout: Duration) -> Result<()> {
        nap_until(timeout, || !self.full.is_full() || self.full.is_abandoned());
        Ok(())
    }

    fn flush(&mut self, timeout: Duration) -> Result<bool> {
        let ring_batches = self.full.buffer().capacity();
        nap_until(timeout, || self.full.slots() == ring_batches || self.full.is_abandoned());
        Ok(self.full.slots() == ring_batches)
    }

    fn counters(&mut self) -> Result<TxCounters> {
        Ok(self.sent)
    }

    fn describe(&self) -> PortDescription {
        describe(&self.name)
    }
}

impl RxQueue for MemoryRx {
    fn start(&mut self) -> Result<()> {
        Ok(())
    }

    fn receive(&mut self, batch: &mut Batch) -> Result<usize> {
        batch.clear();
        let Ok(filled) = self.full.pop() else { return Ok(0) };
        let emptied = std::mem::replace(batch, filled);
        // A full ring of empties means that the receiver brought batches of its own: let it go.
        let _ = self.empty.push(emptied);
        self.received.wire_packets += batch.len() as u64;
        self.received.delivered_packets += batch.len() as u64;
        self.received.delivered_bytes += batch.bytes();
        Ok(batch.len())
    }

    fn wait(&mut self, timeout: Duration) -> Result<()> {
        nap_until(timeout, || !self.full.is_empty() || self.full.is_abandoned());
        Ok(())
    }

    fn stop(&mut self) -> Result<()> {
        self.stopped = true;
        Ok(())
    }

    fn is_finished(&mut self) -> Result<bool> {
        // The order matters: a sender that is gone can no longer add to a ring seen empty after.
        let ended = self.stopped || self.full.is_abandoned();
        Ok(ended && self.full.is_empty())
    }

    fn counters(&mut self) -> Result<RxCounters> {
        Ok(self.received)
    }

    fn describe(&self) -> PortDescription {
        describe(&self.name)
    }
}

fn nap_until(timeout: Duration, mut ready: impl FnMut() -> bool) {
    let naps = timeout.as_micros() / NAP.as_micros();
    for _ in 0..=naps {
        if ready() {
            return;
        }
        sys::sync::nap(NAP);
    }
}

fn describe(name: &str) -> PortDescription {
    PortDescription {
        spec: format!("memory:{name}"),
        mechanism: format!("ring of {BATCHES} batches in memory"),
        frame_bytes_max: FRAME_BYTES_MAX,
        longer_frames: None,
        link_type: 1,
        speed_bps: None,
    }
}

#[cfg(all(test, loom))]
mod model;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::FrameMeta;

    struct Ring(Option<MemoryTx>, Option<MemoryRx>);

    impl crate::conformance::Medium for Ring {
        fn open_tx(&mut self) -> Result<Box<dyn TxQueue>> {
            Ok(Box::new(self.0.take().unwrap()))
        }
        fn open_rx(&mut self) -> Result<Box<dyn RxQueue>> {
            Ok(Box::new(self.1.take().unwrap()))
        }
        fn frame_bytes_max(&self) -> usize {
            FRAME_BYTES_MAX
        }
    }

    #[test]
    fn memory_rings_conform() {
        for batches in [1, 3, BATCHES] {
            crate::conformance::check(|| {
                let (tx, rx) = pair("conformance", batches);
                Ring(Some(tx), Some(rx))
            })
            .unwrap();
        }
    }

    #[test]
    fn batches_go_there_and_come_back() {
        let (mut tx, mut rx) = pair("there-and-back", 2);
        let mut outgoing = Batch::new(64);
        let mut incoming = Batch::new(64);
        for round in 0..100u8 {
            assert!(outgoing.push(&[round; 60], FrameMeta::local(60)));
            assert_eq!(tx.transmit(&mut outgoing).unwrap(), 1);
            assert_eq!(rx.receive(&mut incoming).unwrap(), 1);
            assert_eq!(incoming.frames().next().unwrap().data[0], round);
        }
        assert_eq!(tx.counters().unwrap().accepted_packets, 100);
        assert_eq!(rx.counters().unwrap().delivered_bytes, 6000);
    }

    #[test]
    fn a_full_ring_keeps_the_frames_with_the_sender() {
        let (mut tx, mut rx) = pair("full", 1);
        let mut batch = Batch::new(64);
        assert!(batch.push(&[1; 60], FrameMeta::local(60)));
        assert_eq!(tx.transmit(&mut batch).unwrap(), 1);
        assert!(batch.push(&[2; 60], FrameMeta::local(60)));
        assert_eq!(tx.transmit(&mut batch).unwrap(), 0);
        assert_eq!(batch.len(), 1);
        assert_eq!(tx.counters().unwrap().blocked_times, 1);
        let mut incoming = Batch::new(64);
        assert_eq!(rx.receive(&mut incoming).unwrap(), 1);
        assert_eq!(tx.transmit(&mut batch).unwrap(), 1);
    }

    #[test]
    fn named_ends_meet_once() {
        let mut tx = open_tx("named-ends").unwrap();
        assert!(open_tx("named-ends").is_err());
        let mut rx = open_rx("named-ends").unwrap();
        let mut batch = Batch::new(64);
        assert!(batch.push(&[7; 60], FrameMeta::local(60)));
        assert_eq!(tx.transmit(&mut batch).unwrap(), 1);
        drop(tx);
        let mut incoming = Batch::default();
        assert!(!rx.is_finished().unwrap());
        assert_eq!(rx.receive(&mut incoming).unwrap(), 1);
        assert!(rx.is_finished().unwrap());
    }
}
