//! What is done to a batch between its two ports.

pub mod meter;
pub mod record;

use port::{Batch, RxCounters};

use crate::error::Result;
use crate::live::Live;

/// Something that sees, changes or keeps the frames of a batch.
pub trait Stage: Send {
    /// Handles one batch. Frames left in it go on to the sending port.
    fn process(&mut self, batch: &mut Batch) -> Result<()>;

    /// Called about ten times a second with the receiving port's account.
    fn tick(&mut self, _now_ns: u64, _received: &RxCounters, _live: &Live) -> Result<()> {
        Ok(())
    }

    /// Called once after the last batch, with the receiving port's final account.
    fn finish(&mut self, _received: &RxCounters) -> Result<()> {
        Ok(())
    }
}

/// Nothing is done: frames pass.
impl Stage for () {
    fn process(&mut self, _batch: &mut Batch) -> Result<()> {
        Ok(())
    }
}

/// One stage after the other.
impl<A: Stage, B: Stage> Stage for (A, B) {
    fn process(&mut self, batch: &mut Batch) -> Result<()> {
        self.0.process(batch)?;
        self.1.process(batch)
    }

    fn tick(&mut self, now_ns: u64, received: &RxCounters, live: &Live) -> Result<()> {
        self.0.tick(now_ns, received, live)?;
        self.1.tick(now_ns, received, live)
    }

    fn finish(&mut self, received: &RxCounters) -> Result<()> {
        self.0.finish(received)?;
        self.1.finish(received)
    }
}

/// A stage that may be left out.
impl<A: Stage> Stage for Option<A> {
    fn process(&mut self, batch: &mut Batch) -> Result<()> {
        self.as_mut().map_or(Ok(()), |stage| stage.process(batch))
    }

    fn tick(&mut self, now_ns: u64, received: &RxCounters, live: &Live) -> Result<()> {
        self.as_mut().map_or(Ok(()), |stage| stage.tick(now_ns, received, live))
    }

    fn finish(&mut self, received: &RxCounters) -> Result<()> {
        self.as_mut().map_or(Ok(()), |stage| stage.finish(received))
    }
}
