//! What an XDP program decides about a frame.

/// The numbers that it returns (`enum xdp_action`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Verdict {
    /// The program failed: the frame is dropped, and the kernel's tracepoint `xdp_exception` is told.
    Aborted = 0,
    /// The frame is dropped.
    Drop = 1,
    /// The kernel receives the frame.
    Pass = 2,
    /// The frame leaves by the interface that it came from.
    Transmit = 3,
    /// The frame goes where the helper before said.
    Redirect = 4,
}

impl Verdict {
    /// The verdict of this number.
    pub fn of_number(number: u32) -> Option<Self> {
        Some(match number {
            0 => Self::Aborted,
            1 => Self::Drop,
            2 => Self::Pass,
            3 => Self::Transmit,
            4 => Self::Redirect,
            _ => return None,
        })
    }
}
