//! The counters of a receiving packet socket, widened from the kernel's 32 bits that are
//! cleared at each reading.

use std::os::fd::{AsRawFd, BorrowedFd};

use crate::{Error, Result};

/// What a receive ring counted since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RingStatistics {
    /// Frames that passed the filter, those dropped for want of room included.
    pub packets: u64,
    /// Frames that found no room in the ring.
    pub drops: u64,
    /// Times that the ring froze because the next block was still with the reader.
    pub freezes: u64,
}

impl RingStatistics {
    /// Adds what the kernel counted since the last reading.
    ///
    /// The kernel's counters are 32 bits wide and wrap silently: reading them every few minutes
    /// is enough at 10 Mpps.
    pub(super) fn add_from(&mut self, socket: BorrowedFd<'_>) -> Result<()> {
        let mut counted = libc::tpacket_stats_v3 { tp_packets: 0, tp_drops: 0, tp_freeze_q_cnt: 0 };
        let mut length = size_of::<libc::tpacket_stats_v3>() as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes, the size of `counted`.
        let outcome = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut counted).cast(),
                &raw mut length,
            )
        };
        if outcome < 0 {
            return Err(Error::last("reading the counters of a packet socket"));
        }
        self.packets += u64::from(counted.tp_packets);
        self.drops += u64::from(counted.tp_drops);
        self.freezes += u64::from(counted.tp_freeze_q_cnt);
        Ok(())
    }
}
