//! A worker between a source and a port that is narrow.
#![allow(clippy::unwrap_used)]

use super::*;
use port::fit::FittingTx;
use port::null::Null;
use port::{FrameMeta, PortDescription, TxCounters, memory};

/// Takes frames of up to 100 bytes, `room` a call.
struct Port {
    room: usize,
    sent: Vec<usize>,
    waits: u32,
}

impl Port {
    fn new(room: usize) -> Self {
        Self { room, sent: Vec::new(), waits: 0 }
    }
}

impl TxQueue for Port {
    fn transmit(&mut self, batch: &mut Batch) -> port::Result<usize> {
        let count = self.room.min(batch.len());
        self.sent.extend(batch.frames().take(count).map(|frame| frame.data.len()));
        batch.drop_front(count);
        Ok(count)
    }
    fn takes(&self, frame: &[u8]) -> bool {
        frame.len() <= 100
    }
    fn wait(&mut self, _timeout: Duration) -> port::Result<()> {
        self.waits += 1;
        Ok(())
    }
    fn flush(&mut self, _timeout: Duration) -> port::Result<bool> {
        Ok(true)
    }
    fn counters(&mut self) -> port::Result<TxCounters> {
        Ok(TxCounters::default())
    }
    fn describe(&self) -> PortDescription {
        TxQueue::describe(&Null::default())
    }
}

/// A source that ends behind frames of these lengths.
fn source(lengths: &[usize]) -> memory::MemoryRx {
    let (mut tx, rx) = memory::pair("source", lengths.len());
    let mut batch = Batch::new(1_000);
    for lengths in lengths.chunks(port::BATCH_FRAMES) {
        for &length in lengths {
            assert!(batch.push(&vec![1; length], FrameMeta::local(length)));
        }
        assert_eq!(tx.transmit(&mut batch).unwrap(), lengths.len());
    }
    rx
}

fn worker<R: RxQueue, T: TxQueue>(rx: R, tx: T) -> Worker<R, (), T> {
    Worker { rx, stage: (), tx, cpu: None, stop: Stop::new(), live: Arc::new(Live::default()) }
}

#[test]
fn frames_that_are_left_out_are_not_transmitted() {
    // Two batches; each second frame is too long, the last three too.
    let lengths: Vec<usize> =
        (0..97).map(|number| if number % 2 == 0 && number < 94 { 60 } else { 500 }).collect();
    let worker = worker(source(&lengths), FittingTx::new(Port::new(40)));
    let live = Arc::clone(&worker.live);
    let finished = worker.run(Clock::new().unwrap());
    assert!(finished.error.is_none());
    assert_eq!((live.received_packets.get(), live.received_bytes.get()), (97, 47 * 60 + 50 * 500));
    assert_eq!((live.transmitted_packets.get(), live.transmitted_bytes.get()), (47, 47 * 60));
    assert_eq!(finished.unsent.total(), 0, "what was left out is the port's to tell");
    let unfit = finished.tx.unfit().unwrap();
    assert_eq!((unfit.packets, unfit.bytes), (50, 50 * 500));
    let port = finished.tx.into_inner();
    assert_eq!((port.sent, port.waits), (vec![60; 47], 0));
}
