//! How a socket is to be opened, and the options by which the kernel is told.

use std::os::fd::{AsRawFd, BorrowedFd};

use crate::packet::socket::set_option;
use crate::{Error, Result};

/// `SO_PREFER_BUSY_POLL` and `SO_BUSY_POLL_BUDGET` of asm-generic/socket.h.
const SO_PREFER_BUSY_POLL: i32 = 69;
const SO_BUSY_POLL_BUDGET: i32 = 70;

/// Who copies frames between the UMEM and the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CopyMode {
    /// Nobody: the driver uses the UMEM itself. Binding fails if it cannot.
    ZeroCopy,
    /// The kernel, for any driver.
    Copy,
}

/// Busy polling: a system call of ours does the driver's receiving, instead of an interrupt (Linux 5.11).
///
/// It takes effect with `napi_defer_hard_irqs` and `gro_flush_timeout` of the interface (napi(9) in the
/// kernel's documentation, networking/napi.rst).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BusyPoll {
    /// Longest time that a call polls the driver, in microseconds.
    pub time_us: u32,
    /// Frames that a call takes from the driver at most.
    pub budget_packets: u32,
}

impl Default for BusyPoll {
    fn default() -> Self {
        Self { time_us: 20, budget_packets: 64 }
    }
}

impl BusyPoll {
    pub(super) fn set(self, socket: BorrowedFd<'_>) -> Result<()> {
        let set = |name, value: u32, what: &str| {
            set_option(socket, libc::SOL_SOCKET, name, &value, || {
                format!("setting {what} of an AF_XDP socket")
            })
        };
        set(SO_PREFER_BUSY_POLL, 1, "preferred busy polling")?;
        set(libc::SO_BUSY_POLL, self.time_us, "the time of busy polling")?;
        set(SO_BUSY_POLL_BUDGET, self.budget_packets, "the budget of busy polling")
    }

    /// The longest time of a poll that the kernel has, in microseconds; `None` if busy polling is not
    /// preferred. The budget cannot be read.
    pub(super) fn time_us(socket: BorrowedFd<'_>) -> Result<Option<u32>> {
        let get = |name| {
            option(socket, libc::SOL_SOCKET, name, 0_u32, || {
                "reading the busy polling of an AF_XDP socket".into()
            })
        };
        Ok(if get(SO_PREFER_BUSY_POLL)? == 0 { None } else { Some(get(libc::SO_BUSY_POLL)?) })
    }
}

/// How to open a [`Socket`](super::Socket).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketConfig {
    /// Name of the interface, for messages.
    pub interface: String,
    /// Its number.
    pub index: u32,
    /// Number of the queue, from 0.
    pub queue: u32,
    /// Who copies.
    pub mode: CopyMode,
    /// Entries of the receive and fill rings, a power of two; 0 for a socket that does not receive.
    pub rx_entries: u32,
    /// Entries of the transmit ring, a power of two, and chunks that it gets; 0 for a socket that does not send.
    pub tx_entries: u32,
    /// Frames may be longer than a chunk and then lie in several.
    pub multi_buffer: bool,
    /// Busy polling, if it is wanted.
    pub busy_poll: Option<BusyPoll>,
}

/// Reads an option of plain data into `value`; what the kernel does not know stays as it is.
pub(super) fn option<T: Copy>(
    socket: BorrowedFd<'_>,
    level: i32,
    name: i32,
    mut value: T,
    action: impl FnOnce() -> String,
) -> Result<T> {
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` is plain data of integers, and the kernel writes at most `length` bytes, its size.
    let outcome = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, name, (&raw mut value).cast(), &raw mut length)
    };
    if outcome < 0 { Err(Error::last(action())) } else { Ok(value) }
}
