//! Fan-out: several packet sockets on one interface share its frames, each frame to one socket
//! (packet(7), `PACKET_FANOUT`).

use std::os::fd::BorrowedFd;

use super::socket::set_option;
use crate::{Kind, Result};

/// How the kernel chooses the socket of a group that gets a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FanoutMode {
    /// By a symmetric hash of the flow: both directions of a flow meet at one socket.
    Hash,
    /// In turn.
    LoadBalance,
    /// By the CPU that received the frame.
    Cpu,
    /// All to the first socket, to the next when it is full.
    Rollover,
    /// At random.
    Random,
    /// By the receive queue that the interface recorded.
    QueueMapping,
}

impl FanoutMode {
    fn code(self) -> u32 {
        match self {
            Self::Hash => libc::PACKET_FANOUT_HASH,
            Self::LoadBalance => libc::PACKET_FANOUT_LB,
            Self::Cpu => libc::PACKET_FANOUT_CPU,
            Self::Rollover => libc::PACKET_FANOUT_ROLLOVER,
            Self::Random => libc::PACKET_FANOUT_RND,
            Self::QueueMapping => libc::PACKET_FANOUT_QM,
        }
    }
}

/// Membership of a fan-out group. All members must use the same values, the same interface and
/// the same network namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fanout {
    /// Number of the group, unique in the network namespace.
    pub group: u16,
    /// How the kernel chooses the socket.
    pub mode: FanoutMode,
    /// Put IP fragments together before choosing, so that they follow their flow. The socket
    /// then sees the whole datagram instead of its fragments.
    pub defragment: bool,
    /// When the chosen socket is full, take another with room. Not with [`FanoutMode::Rollover`],
    /// which does this by itself.
    pub rollover: bool,
}

impl Fanout {
    /// Upper half of the option's value. A group has a hook of its own, which does not know of
    /// its members' `PACKET_IGNORE_OUTGOING`: it needs the flag (Linux 5.16) as well.
    fn flags(self) -> u32 {
        let mut flags = libc::PACKET_FANOUT_FLAG_IGNORE_OUTGOING;
        if self.defragment {
            flags |= libc::PACKET_FANOUT_FLAG_DEFRAG;
        }
        if self.rollover {
            flags |= libc::PACKET_FANOUT_FLAG_ROLLOVER;
        }
        flags
    }

    /// Lets a bound socket join the group.
    pub(super) fn join(self, socket: BorrowedFd<'_>, interface: &str) -> Result<()> {
        let value = u32::from(self.group) | (self.mode.code() | self.flags()) << 16;
        set_option(socket, libc::SOL_PACKET, libc::PACKET_FANOUT, &value, || {
            format!("joining the fan-out group {} of {interface}", self.group)
        })
        .map_err(|error| match error.kind() {
            Kind::Invalid => error.remedy(
                "all members of a group need the same mode, flags and interface: \
                 choose another group number or the same settings",
            ),
            _ => error,
        })
    }
}
