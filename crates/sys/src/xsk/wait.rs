//! Waiting: for frames on several sockets, and for the kernel to be done with what was before.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::packet::socket::wait_for_receivers;
use crate::{Error, Result};

/// What there was when waiting was over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Waited {
    /// At least one socket has frames.
    Ready,
    /// The time was over, or a signal came.
    Nothing,
    /// At least one socket says that its interface is gone.
    Gone,
}

/// Waits until one of the sockets has frames, at most `timeout`. Sleeps: what received the frames gets the
/// processor.
///
/// # Errors
/// What poll(2) reports.
pub fn wait_for_frames(sockets: &[BorrowedFd<'_>], timeout: Duration) -> Result<Waited> {
    let mut waiting: Vec<PollFd<'_>> =
        sockets.iter().map(|socket| PollFd::from_borrowed_fd(*socket, PollFlags::IN)).collect();
    let limit = Timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(timeout.subsec_nanos()),
    };
    match poll(&mut waiting, Some(&limit)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(errno) => return Err(Error::new("waiting for AF_XDP sockets", errno)),
    }
    let any = |flags| waiting.iter().any(|socket| socket.revents().intersects(flags));
    Ok(if any(PollFlags::IN) {
        Waited::Ready
    } else if any(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL) {
        Waited::Gone
    } else {
        Waited::Nothing
    })
}

/// Waits until no processor can still be at work with what a map said before it was changed: from then on
/// no frame comes to a socket that was taken out of its map.
pub fn settle() {
    wait_for_receivers();
}
