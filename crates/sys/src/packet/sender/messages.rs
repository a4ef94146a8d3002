//! Frames handed over by `sendmmsg(2)`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::BATCH_FRAMES;

/// The description of a batch as `sendmmsg` reads it.
pub(super) struct Messages<'a> {
    vectors: [libc::iovec; BATCH_FRAMES],
    count: usize,
    frames: std::marker::PhantomData<&'a [u8]>,
}

impl<'a> Messages<'a> {
    pub(super) fn new() -> Self {
        Self {
            vectors: [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; BATCH_FRAMES],
            count: 0,
            frames: std::marker::PhantomData,
        }
    }

    /// Appends a frame. False when the batch is full.
    pub(super) fn push(&mut self, frame: &'a [u8]) -> bool {
        let Some(vector) = self.vectors.get_mut(self.count) else { return false };
        vector.iov_base = frame.as_ptr().cast_mut().cast();
        vector.iov_len = frame.len();
        self.count += 1;
        true
    }

    /// Sends the frames from `first` on, in order, without waiting. Gives how many were taken; an
    /// error when it was none.
    pub(super) fn send(&mut self, socket: BorrowedFd<'_>, first: usize) -> io::Result<usize> {
        let mut messages = [EMPTY_MESSAGE; BATCH_FRAMES];
        let vectors = self.vectors.get_mut(first..self.count).unwrap_or_default();
        for (message, vector) in messages.iter_mut().zip(&mut *vectors) {
            message.msg_hdr.msg_iov = vector;
            message.msg_hdr.msg_iovlen = 1;
        }
        // SAFETY: as many messages as vectors are filled in; each refers to one vector, and that
        // to a frame that is borrowed for longer than this call. The kernel reads the frames and
        // writes only the messages' `msg_len`.
        let sent = unsafe {
            libc::sendmmsg(
                socket.as_raw_fd(),
                messages.as_mut_ptr(),
                vectors.len() as libc::c_uint,
                libc::MSG_DONTWAIT,
            )
        };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}

const EMPTY_MESSAGE: libc::mmsghdr = libc::mmsghdr {
    msg_hdr: libc::msghdr {
        msg_name: std::ptr::null_mut(),
        msg_namelen: 0,
        msg_iov: std::ptr::null_mut(),
        msg_iovlen: 0,
        msg_control: std::ptr::null_mut(),
        msg_controllen: 0,
        msg_flags: 0,
    },
    msg_len: 0,
};
