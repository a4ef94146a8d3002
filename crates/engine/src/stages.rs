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
