//! A worker between a source and a port that is narrow.
#![allow(clippy::unwrap_used)]

use super::*;
use port::fit::FittingTx;
use port::limit::LimitedRx;
use port::null::Null;
use port::{FrameMeta, PortDescription, TxCounters, memory};

/// Takes frames of up to 100 bytes, `room` a call. Waiting for it takes at least 1 ms.
struct Port {
    room: usize,
    sent: Vec<usize>,
    waits: u32,
    /// Raises the flag with the wait of that number.
    stop: Option<(u32, Stop)>,
}

impl Port {
    fn new(room: usize) -> Self {
        Self { room, sent: Vec::new(), waits: 0, stop: None }
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
        std::thread::sleep(Duration::from_millis(1));
        self.waits += 1;
        if let Some((_, stop)) = self.stop.as_ref().filter(|(waits, _)| *waits == self.waits) {
            stop.request();
        }
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

/// A source whose time is over when it has been asked that often.
struct Expiring {
    inner: LimitedRx<memory::MemoryRx>,
    asked: u32,
    lasts: u32,
}

impl RxQueue for Expiring {
    fn start(&mut self) -> port::Result<()> {
        self.inner.start()
    }
    fn receive(&mut self, batch: &mut Batch) -> port::Result<usize> {
        self.inner.receive(batch)
    }
    fn wait(&mut self, timeout: Duration) -> port::Result<()> {
        self.inner.wait(timeout)
    }
    fn stop(&mut self) -> port::Result<()> {
        self.inner.stop()
    }
    fn is_finished(&mut self) -> port::Result<bool> {
        self.inner.is_finished()
    }
    fn is_expired(&mut self) -> bool {
        self.asked += 1;
        self.asked >= self.lasts
    }
    fn counters(&mut self) -> port::Result<RxCounters> {
        self.inner.counters()
    }
    fn describe(&self) -> PortDescription {
        self.inner.describe()
    }
}

/// A port that has taken nothing for longer than it would be waited for is not waited for at the end.
#[test]
fn a_port_that_takes_nothing_does_not_outlast_the_time() {
    let lasts = 150;
    assert!(u64::from(lasts) * 1_000_000 > EXPIRED_GRACE_NS);
    let rx = Expiring { inner: LimitedRx::new(source(&[60; 10]), None), asked: 0, lasts };
    let finished = worker(rx, Port::new(0)).run(Clock::new().unwrap());
    assert!(finished.error.is_none());
    // The worker asks the source after each wait.
    assert_eq!((finished.tx.waits, finished.rx.asked), (lasts, lasts));
    assert_eq!(finished.unsent.get(Reason::RingFull), 10);
    assert_eq!(finished.unsent.total(), 10);
}

/// The same when a stop is asked for, which waits longer. One that is full just now is waited for.
#[test]
fn a_stop_waits_for_a_port_that_may_only_be_full() {
    for (waits_before, is_waited_for) in [(1_100, false), (1, true)] {
        let mut worker = worker(source(&[60; 10]), Port::new(0));
        worker.tx.stop = Some((waits_before, worker.stop.clone()));
        let finished = worker.run(Clock::new().unwrap());
        assert_eq!(finished.tx.waits > waits_before, is_waited_for, "{}", finished.tx.waits);
        assert_eq!(finished.unsent.get(Reason::RingFull), 10);
    }
}
