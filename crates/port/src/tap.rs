//! A port that shows every frame passing through it to a sink, such as a capture file.

use std::time::Duration;

use crate::batch::Batch;
use crate::counters::{RxCounters, TxCounters};
use crate::error::{PortError, Result};
use crate::frame::FrameRef;
use crate::queue::{Event, PortDescription, RxQueue, TxQueue};

/// Whatever wants to see frames: a capture writer, a printer, a test.
pub trait FrameSink: Send {
    /// Sees one frame. An error ends the run.
    fn see(&mut self, frame: FrameRef<'_>) -> Result<(), Box<dyn std::error::Error + Send + Sync>>;
}

impl<F> FrameSink for F
where
    F: FnMut(FrameRef<'_>) + Send,
{
    fn see(&mut self, frame: FrameRef<'_>) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        self(frame);
        Ok(())
    }
}

/// A queue whose frames a sink sees: received ones when they are delivered, sent ones when the
/// port has accepted them.
#[derive(Debug)]
pub struct Tap<Q, S> {
    inner: Q,
    sink: S,
}

impl<Q, S: FrameSink> Tap<Q, S> {
    /// Wraps `inner`.
    pub fn new(inner: Q, sink: S) -> Self {
        Self { inner, sink }
    }

    /// Gives queue and sink back.
    pub fn into_parts(self) -> (Q, S) {
        (self.inner, self.sink)
    }

    fn show(&mut self, batch: &Batch, count: usize, port: impl Fn(&Q) -> String) -> Result<()> {
        for frame in batch.frames().take(count) {
            self.sink
                .see(frame)
                .map_err(|source| PortError::File { port: port(&self.inner), source })?;
        }
        Ok(())
    }
}

impl<Q: RxQueue, S: FrameSink> RxQueue for Tap<Q, S> {
    fn start(&mut self) -> Result<()> {
        self.inner.start()
    }

    fn receive(&mut self, batch: &mut Batch) -> Result<usize> {
        let count = self.inner.receive(batch)?;
        self.show(batch, count, |queue| queue.describe().spec)?;
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
        self.inner.counters()
    }

    fn next_event(&mut self) -> Option<Event> {
        self.inner.next_event()
    }

    fn describe(&self) -> PortDescription {
        self.inner.describe()
    }
}

impl<Q: TxQueue, S: FrameSink> TxQueue for Tap<Q, S> {
    /// Frames are offered one batch at a time; a port that takes a part is asked again by the
    /// caller, so each frame is shown once. The batch's memory may leave with its frames: what will
    /// be accepted is known only afterwards, hence the copy.
    fn transmit(&mut self, batch: &mut Batch) -> Result<usize> {
        let mut copy = Batch::new(batch.frames().map(|frame| frame.data.len()).max().unwrap_or(0));
        for frame in batch.frames() {
            // Both hold 64 frames and the slots are long enough: nothing can be refused.
            let _ = copy.push(frame.data, frame.meta);
        }
        let count = self.inner.transmit(batch)?;
        self.show(&copy, count, |queue| queue.describe().spec)?;
        Ok(count)
    }

    fn takes(&self, frame: &[u8]) -> bool {
        self.inner.takes(frame)
    }

    fn wait(&mut self, timeout: Duration) -> Result<()> {
        self.inner.wait(timeout)
    }

    fn flush(&mut self, timeout: Duration) -> Result<bool> {
        self.inner.flush(timeout)
    }

    fn taken_bytes(&self) -> Option<u64> {
        self.inner.taken_bytes()
    }

    fn abandon(&mut self) {
        self.inner.abandon();
    }

    fn counters(&mut self) -> Result<TxCounters> {
        self.inner.counters()
    }

    fn next_event(&mut self) -> Option<Event> {
        self.inner.next_event()
    }

    fn describe(&self) -> PortDescription {
        self.inner.describe()
    }
}
