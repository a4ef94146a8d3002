//! The ladder of ways in which an interface can be served, and what a user insists on.

use std::fmt;

/// A way in which frames pass between an interface and this program; the later, the faster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rung {
    /// Packet sockets, no AF_XDP.
    Packet,
    /// AF_XDP in copy mode; on the way in behind the driver, where the kernel has made a packet already.
    Generic,
    /// AF_XDP in copy mode; on the way in by a program in the driver.
    Native,
    /// AF_XDP, with a driver that uses our memory.
    ZeroCopy,
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Packet => "packet sockets",
            Self::Generic => "AF_XDP in copy mode with a generic program",
            Self::Native => "AF_XDP in copy mode with a native program",
            Self::ZeroCopy => "AF_XDP in zero-copy mode",
        })
    }
}

/// The least that a user insists on; anything below is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Require {
    /// [`Rung::ZeroCopy`].
    ZeroCopy,
    /// [`Rung::Native`] or better.
    Native,
    /// Any AF_XDP.
    Xdp,
}

impl Require {
    /// The lowest rung that will do.
    pub fn least(self) -> Rung {
        match self {
            Self::ZeroCopy => Rung::ZeroCopy,
            Self::Native => Rung::Native,
            Self::Xdp => Rung::Generic,
        }
    }
}

impl fmt::Display for Require {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ZeroCopy => "zerocopy",
            Self::Native => "native",
            Self::Xdp => "xdp",
        })
    }
}
