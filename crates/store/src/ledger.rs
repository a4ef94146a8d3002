//! The account that a recorder keeps and writes into every chunk: what reached the interface, what
//! was stored, and what was lost for which reason.
//!
//! All counters are cumulative over one *session*: from [`Recorder::open`](crate::recorder::Recorder)
//! to its end. The recorder itself adds the losses that happen in it (`pool_empty`, `storage`);
//! everything in front of it is told to it as [`InputCounters`].
//! Limit: the input's counters in a chunk are as old as the caller's last report.

use port::{Losses, Reason, RxCounters};

/// Reasons that a chunk has room for; the last place collects all others.
pub const LOSS_SLOTS: usize = 8;

/// Which reason each place of [`Ledger::lost_packets`] stands for, as written to disk.
/// The last place is "any other reason".
pub const LOSS_REASONS: [Reason; LOSS_SLOTS - 1] = [
    Reason::Interface,
    Reason::KernelRing,
    Reason::NoBuffer,
    Reason::PoolEmpty,
    Reason::Storage,
    Reason::Shutdown,
    Reason::Injected,
];

/// Names of the places of [`Ledger::lost_packets`], in order.
pub fn loss_names() -> impl Iterator<Item = &'static str> {
    LOSS_REASONS.iter().map(|reason| reason.name()).chain(["other"])
}

/// What happened in front of the recorder, in packets, cumulative since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InputCounters {
    /// Packets that reached the interface.
    pub wire_packets: u64,
    /// Packets passed over on purpose: by a filter, or behind as many as were wanted.
    pub filtered_packets: u64,
    /// Packets lost before the recorder, by reason.
    pub dropped: Losses,
}

impl From<&RxCounters> for InputCounters {
    fn from(counters: &RxCounters) -> Self {
        Self {
            // The account of a file has no place for packets that a fault added.
            wire_packets: counters.wire_packets + counters.added_packets,
            filtered_packets: counters.filtered_packets + counters.beyond_count_packets,
            dropped: counters.dropped,
        }
    }
}

/// The account at the moment a chunk was closed, in packets and bytes, cumulative over the session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Packets that reached the interface, as last reported; 0 if nobody ever did.
    pub wire_packets: u64,
    /// Packets passed over on purpose: by a filter, or behind as many as were wanted.
    pub filtered_packets: u64,
    /// Packets put into chunks, up to and including the chunk that carries this account; in the last
    /// chunk of a recording less those that could not be written.
    pub stored_packets: u64,
    /// Captured bytes of those packets, without any framing.
    pub stored_bytes: u64,
    /// Packets lost, by place: [`LOSS_REASONS`], then all others.
    pub lost_packets: [u64; LOSS_SLOTS],
}

impl Ledger {
    /// The account of an input as last reported, with nothing stored.
    pub fn of_input(input: &InputCounters) -> Self {
        let mut lost_packets = [0; LOSS_SLOTS];
        let mut named = 0;
        for (slot, reason) in lost_packets.iter_mut().zip(LOSS_REASONS) {
            *slot = input.dropped.get(reason);
            named += *slot;
        }
        if let Some(other) = lost_packets.last_mut() {
            *other = input.dropped.total().saturating_sub(named);
        }
        Self {
            wire_packets: input.wire_packets,
            filtered_packets: input.filtered_packets,
            lost_packets,
            ..Self::default()
        }
    }

    /// Packets lost for `reason`; for a reason without a place of its own, for all such together.
    pub fn lost(&self, reason: Reason) -> u64 {
        let slot = LOSS_REASONS.iter().position(|known| *known == reason);
        self.lost_packets[slot.unwrap_or(LOSS_SLOTS - 1)]
    }

    /// Adds packets lost for `reason`.
    pub fn lose(&mut self, reason: Reason, packets: u64) {
        let slot = LOSS_REASONS.iter().position(|known| *known == reason);
        self.lost_packets[slot.unwrap_or(LOSS_SLOTS - 1)] += packets;
    }

    /// Takes packets that were put into chunks and could not be written from the stored ones.
    pub fn give_up(&mut self, packets: u64, bytes: u64) {
        self.stored_packets = self.stored_packets.saturating_sub(packets);
        self.stored_bytes = self.stored_bytes.saturating_sub(bytes);
        self.lose(Reason::Storage, packets);
    }

    /// Packets lost for any reason.
    pub fn lost_total(&self) -> u64 {
        self.lost_packets.iter().fold(0, |sum, lost| sum.saturating_add(*lost))
    }

    /// Losses between an `earlier` account of the same session and this one, by place.
    pub fn lost_since(&self, earlier: &Self) -> [u64; LOSS_SLOTS] {
        let mut lost = self.lost_packets;
        for (mine, before) in lost.iter_mut().zip(earlier.lost_packets) {
            *mine = mine.saturating_sub(before);
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_loss_of_the_input_has_a_place() {
        let mut input = InputCounters { wire_packets: 100, ..InputCounters::default() };
        for (count, reason) in Reason::ALL.into_iter().enumerate() {
            input.dropped.add(reason, count as u64 + 1);
        }
        let ledger = Ledger::of_input(&input);
        assert_eq!(ledger.lost_total(), input.dropped.total());
        assert_eq!(ledger.lost(Reason::KernelRing), input.dropped.get(Reason::KernelRing));
        assert_eq!(loss_names().count(), LOSS_SLOTS);
    }

    #[test]
    fn losses_between_two_accounts_are_told_by_reason() {
        let mut earlier = Ledger::default();
        earlier.lose(Reason::Storage, 3);
        let mut later = earlier;
        later.lose(Reason::Storage, 4);
        later.lose(Reason::PoolEmpty, 5);
        assert_eq!(later.lost_since(&earlier), [0, 0, 0, 5, 4, 0, 0, 0]);
    }
}
