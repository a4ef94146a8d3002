//! Making an interface receive what is not addressed to it, without receiving it here.

use std::os::fd::{AsFd, OwnedFd};

use super::interface::Interface;
use super::socket;
use crate::Result;

/// Keeps an interface promiscuous; the kernel ends that with the process, however it ends.
#[derive(Debug)]
pub struct Promiscuity {
    _socket: OwnedFd,
}

impl Promiscuity {
    /// Makes an interface of the calling thread's namespace promiscuous.
    ///
    /// # Errors
    /// [`Kind::NotFound`](crate::Kind::NotFound); [`Kind::Permission`](crate::Kind::Permission) without CAP_NET_RAW.
    pub fn join(interface: &str) -> Result<Self> {
        let socket = socket::open(interface)?;
        let found = Interface::look_up(socket.as_fd(), interface)?;
        socket::join_promiscuous(socket.as_fd(), found, interface)?;
        Ok(Self { _socket: socket })
    }
}
