//! `null:` takes every frame and keeps none; as a source it is empty at once.

use std::time::Duration;

use crate::batch::Batch;
use crate::counters::{RxCounters, TxCounters};
use crate::error::Result;
use crate::queue::{PortDescription, RxQueue, TxQueue};

/// Longest frame that memory-backed ports take: larger than any interface's.
pub const FRAME_BYTES_MAX: usize = 262_144;

/// The sink and the empty source.
#[derive(Debug, Default)]
pub struct Null {
    sent: TxCounters,
}

impl TxQueue for Null {
    fn transmit(&mut self, batch: &mut Batch) -> Result<usize> {
        let count = batch.len();
        self.sent.accepted_packets += count as u64;
        self.sent.accepted_bytes += batch.bytes();
        batch.clear();
        Ok(count)
    }

    fn wait(&mut self, _timeout: Duration) -> Result<()> {
        Ok(())
    }

    fn flush(&mut self, _timeout: Duration) -> Result<bool> {
        Ok(true)
    }

    fn counters(&mut self) -> Result<TxCounters> {
        Ok(self.sent)
    }

    fn describe(&self) -> PortDescription {
        describe()
    }
}

impl RxQueue for Null {
    fn start(&mut self) -> Result<()> {
        Ok(())
    }

    fn receive(&mut self, batch: &mut Batch) -> Result<usize> {
        batch.clear();
        Ok(0)
    }

    fn wait(&mut self, _timeout: Duration) -> Result<()> {
        Ok(())
    }

    fn stop(&mut self) -> Result<()> {
        Ok(())
    }

    fn is_finished(&mut self) -> Result<bool> {
        Ok(true)
    }

    fn counters(&mut self) -> Result<RxCounters> {
        Ok(RxCounters::default())
    }

    fn describe(&self) -> PortDescription {
        describe()
    }
}

fn describe() -> PortDescription {
    PortDescription {
        spec: "null:".into(),
        mechanism: "nothing is kept".into(),
        frame_bytes_max: FRAME_BYTES_MAX,
        longer_frames: None,
        link_type: 1,
        speed_bps: None,
    }
}
