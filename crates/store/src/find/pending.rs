//! What a search has to read when its time comes.

use super::losses::LossSpan;
use crate::ledger::LOSS_SLOTS;
use crate::merge::Key;

/// A chunk to be read, or a capture to be begun, when its time comes.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pending {
    pub(super) key: Key,
    pub(super) offset: u64,
    /// 0 for a capture.
    pub(super) length: u32,
    /// Found packets that were delivered before the chunk was put back, and those that were not:
    /// `None` for a chunk that was not read yet.
    pub(super) taken: usize,
    pub(super) waiting: Option<u32>,
    /// Packets that are missing if the chunk is damaged, and the latest time of any.
    pub(super) packets: u32,
    pub(super) time_max_ns: u64,
}

impl Pending {
    /// Packets that are missing when the chunk cannot be read.
    pub(super) fn missing_packets(&self) -> u64 {
        self.waiting.unwrap_or(self.packets).into()
    }

    /// What is missing when the chunk cannot be read.
    pub(super) fn loss(&self) -> LossSpan {
        let from_ns = self.key.0;
        LossSpan {
            from_ns,
            to_ns: self.time_max_ns.max(from_ns),
            lost_packets: [0; LOSS_SLOTS],
            unreadable_packets: self.missing_packets(),
            interrupted: false,
        }
    }
}
