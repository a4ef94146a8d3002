//! What a port counts: frames in, frames out, frames lost by reason. All 64 bits, one writer each.

use std::fmt;

/// The named place where a frame was lost, or the named cause for which it was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// The interface or its driver dropped it before any socket saw it.
    Interface,
    /// The kernel's receive ring of this program was full: the reader was late.
    KernelRing,
    /// The reader had no buffer to copy it to.
    NoBuffer,
    /// It was longer than a buffer of this program's ring.
    TooLong,
    /// All chunks of the recorder's pool waited for the disk.
    PoolEmpty,
    /// The disk was full or failed.
    Storage,
    /// It arrived after the run had been told to end.
    Shutdown,
    /// A fault that the user asked for swallowed it.
    Injected,
    /// The schedule had slipped past it when the run's time was over.
    Late,
    /// The ring or the device queue was full when the run ended.
    RingFull,
    /// The kernel or the device refused it.
    Rejected,
    /// The device took it and dropped it, by its own count.
    Device,
    /// The run was interrupted before its turn came.
    Interrupted,
}

impl Reason {
    /// All reasons, in the order in which they are shown.
    pub const ALL: [Self; 13] = [
        Self::Interface,
        Self::KernelRing,
        Self::NoBuffer,
        Self::TooLong,
        Self::PoolEmpty,
        Self::Storage,
        Self::Shutdown,
        Self::Injected,
        Self::Late,
        Self::RingFull,
        Self::Rejected,
        Self::Device,
        Self::Interrupted,
    ];

    /// The name that the ledger and JSON use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Interface => "interface",
            Self::KernelRing => "kernel_ring",
            Self::NoBuffer => "no_buffer",
            Self::TooLong => "too_long",
            Self::PoolEmpty => "pool_empty",
            Self::Storage => "storage",
            Self::Shutdown => "shutdown",
            Self::Injected => "injected",
            Self::Late => "late",
            Self::RingFull => "ring_full",
            Self::Rejected => "rejected",
            Self::Device => "device",
            Self::Interrupted => "interrupted",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Frames lost, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Losses([u64; Reason::ALL.len()]);

impl Losses {
    /// Adds `packets` lost for `reason`.
    pub fn add(&mut self, reason: Reason, packets: u64) {
        self.0[reason as usize] += packets;
    }

    /// Frames lost for `reason`.
    pub fn get(&self, reason: Reason) -> u64 {
        self.0[reason as usize]
    }

    /// Frames lost for any reason.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }

    /// Reasons with at least one frame, in the order in which they are shown.
    pub fn iter(&self) -> impl Iterator<Item = (Reason, u64)> + '_ {
        Reason::ALL.into_iter().map(|reason| (reason, self.get(reason))).filter(|(_, n)| *n > 0)
    }
}

/// What a device says it moved during a run, with the uncertainty of reading a live counter.
///
/// A device's counters cannot be read at the very moment in which a socket is opened or closed;
/// they are read before and after each, so the truth lies between `min` and `max`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeviceCount {
    /// Frames that the device counted between the inner pair of readings.
    pub packets_min: u64,
    /// Frames that the device counted between the outer pair of readings.
    pub packets_max: u64,
    /// Frames that the device itself dropped, between the outer readings.
    pub dropped_packets: u64,
    /// Frames that the device counted, that the port never saw, and that no drop counter explains.
    pub unexplained_packets: u64,
}

/// The account of a receiving queue: `wire + added = filtered + beyond_count + delivered + dropped`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RxCounters {
    /// Frames that reached the port while it was started.
    pub wire_packets: u64,
    /// Frames that a wrapping port added.
    pub added_packets: u64,
    /// Frames that a filter passed over.
    pub filtered_packets: u64,
    /// Frames that came behind as many as were wanted: nobody's loss.
    pub beyond_count_packets: u64,
    /// Frames given to the caller.
    pub delivered_packets: u64,
    /// Captured bytes of the frames given to the caller.
    pub delivered_bytes: u64,
    /// Of these, frames that were copied from one memory of this program to another.
    pub copied_packets: u64,
    /// Frames lost, by reason.
    pub dropped: Losses,
    /// Times that the kernel's ring ran full and stood still.
    pub ring_freezes: u64,
    /// What the device counted, where there is one.
    pub device: Option<DeviceCount>,
}

/// The account of a sending queue: what was handed over, and what the device made of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TxCounters {
    /// Frames that the port accepted.
    pub accepted_packets: u64,
    /// Bytes of the frames that the port accepted, without FCS.
    pub accepted_bytes: u64,
    /// Times that the port was full and the caller had to come again.
    pub blocked_times: u64,
    /// Frames swallowed on purpose by a wrapping port, and the like.
    pub dropped: Losses,
    /// Frames that a wrapping port added.
    pub added_packets: u64,
    /// What the device counted, where there is one.
    pub device: Option<DeviceCount>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_add_up_by_reason() {
        let mut losses = Losses::default();
        losses.add(Reason::Storage, 3);
        losses.add(Reason::KernelRing, 4);
        let mut other = Losses::default();
        other.add(Reason::Storage, 5);
        losses.merge(&other);
        assert_eq!(losses.total(), 12);
        let listed: Vec<_> = losses.iter().collect();
        assert_eq!(listed, [(Reason::KernelRing, 4), (Reason::Storage, 8)]);
    }

    #[test]
    fn every_reason_has_its_own_place_and_name() {
        let mut names: Vec<_> = Reason::ALL.iter().map(|reason| reason.name()).collect();
        for (index, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Reason::ALL.len());
    }
}
