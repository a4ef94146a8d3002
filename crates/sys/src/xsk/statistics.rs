//! What the kernel counted at a socket (`XDP_STATISTICS`).

use std::os::fd::BorrowedFd;

use super::settings::option;
use crate::Result;

/// Counters since the socket was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct XskStatistics {
    /// Frames that were lost since there was no empty chunk, or since they were longer than one.
    pub rx_dropped: u64,
    /// Frames that were lost since the receive ring was full (Linux 5.9; before, among `rx_dropped`).
    pub rx_ring_full: u64,
    /// Times that the fill ring was empty when a chunk was needed (Linux 5.9).
    pub fill_ring_empty: u64,
    /// Entries of the fill ring that the kernel did not take.
    pub rx_invalid_descriptors: u64,
    /// Entries of the transmit ring that the kernel did not take.
    pub tx_invalid_descriptors: u64,
}

impl XskStatistics {
    pub(super) fn read(socket: BorrowedFd<'_>) -> Result<Self> {
        // Kernels before 5.9 fill in the first three fields and leave the others.
        let empty = libc::xdp_statistics {
            rx_dropped: 0,
            rx_invalid_descs: 0,
            tx_invalid_descs: 0,
            rx_ring_full: 0,
            rx_fill_ring_empty_descs: 0,
            tx_ring_empty_descs: 0,
        };
        let counted = option(socket, libc::SOL_XDP, libc::XDP_STATISTICS, empty, || {
            "reading the counters of an AF_XDP socket".into()
        })?;
        Ok(Self {
            rx_dropped: counted.rx_dropped,
            rx_ring_full: counted.rx_ring_full,
            fill_ring_empty: counted.rx_fill_ring_empty_descs,
            rx_invalid_descriptors: counted.rx_invalid_descs,
            tx_invalid_descriptors: counted.tx_invalid_descs,
        })
    }
}
