//! Who has a slot of a transmit ring: the sender, the kernel, or a device that still reads it.

use crate::packet::status_word::StatusWord;

/// A slot, by its status word.
#[derive(Debug)]
pub(super) struct TransmitSlot<'a, W>(pub(super) &'a W);

impl<W: StatusWord> TransmitSlot<'_, W> {
    /// Nobody sends what is in it any more: the sender may write to it.
    pub(super) fn is_free(&self) -> bool {
        self.state() == libc::TP_STATUS_AVAILABLE
    }

    /// Marks what was written as to be sent by the next send call.
    pub(super) fn request(&self) {
        self.0.hand_over(libc::TP_STATUS_SEND_REQUEST);
    }

    /// The send call that is over has not taken it, or has refused what is in it.
    pub(super) fn is_left(&self) -> bool {
        self.state() & (libc::TP_STATUS_SEND_REQUEST | libc::TP_STATUS_WRONG_FORMAT) != 0
    }

    /// Takes a slot back that is left: what is in it will not be sent.
    pub(super) fn take_back(&self) {
        self.0.hand_over(libc::TP_STATUS_AVAILABLE);
    }

    /// The state without the bits that say who took a timestamp.
    fn state(&self) -> u32 {
        self.0.read()
            & (libc::TP_STATUS_SEND_REQUEST
                | libc::TP_STATUS_SENDING
                | libc::TP_STATUS_WRONG_FORMAT)
    }
}

#[cfg(all(test, loom))]
mod model;
