//! The plainest packet socket, written apart from the crate's own so that the two can disagree.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// `ETH_P_ALL` of linux/if_ether.h.
const EVERY_PROTOCOL: u16 = 3;

/// A packet socket bound to one interface of the calling thread's namespace.
pub struct PacketSocket(OwnedFd);

impl PacketSocket {
    pub fn open(index: u32, patience: Duration) -> io::Result<Self> {
        let protocol = EVERY_PROTOCOL.to_be();
        // SAFETY: socket(2) takes numbers only.
        let number = unsafe {
            libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol.into())
        };
        if number < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and nobody else's.
        let socket = Self(unsafe { OwnedFd::from_raw_fd(number) });
        // SAFETY: all fields of sockaddr_ll are integers, for which zero is a value.
        let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol;
        address.sll_ifindex = index as i32;
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the address is valid for the length that is given.
        if unsafe { libc::bind(number, (&raw const address).cast(), length) } < 0 {
            return Err(io::Error::last_os_error());
        }
        let patience = libc::timeval {
            tv_sec: patience.as_secs() as i64,
            tv_usec: patience.subsec_micros().into(),
        };
        let length = size_of::<libc::timeval>() as libc::socklen_t;
        // SAFETY: the value is a timeval, as SO_RCVTIMEO expects.
        let set = unsafe {
            let value = (&raw const patience).cast();
            libc::setsockopt(number, libc::SOL_SOCKET, libc::SO_RCVTIMEO, value, length)
        };
        if set < 0 { Err(io::Error::last_os_error()) } else { Ok(socket) }
    }

    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        // SAFETY: the buffer is valid for its length.
        let sent = unsafe { libc::send(self.0.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
        match usize::try_from(sent) {
            Ok(sent) if sent == frame.len() => Ok(()),
            Ok(_) => Err(io::ErrorKind::WriteZero.into()),
            Err(_) => Err(io::Error::last_os_error()),
        }
    }

    /// The next frame, or `WouldBlock` when the patience is over.
    pub fn receive(&self) -> io::Result<Vec<u8>> {
        let mut frame = vec![0; 65536];
        // SAFETY: the buffer is valid for its length.
        let got =
            unsafe { libc::recv(self.0.as_raw_fd(), frame.as_mut_ptr().cast(), frame.len(), 0) };
        frame.truncate(usize::try_from(got).map_err(|_| io::Error::last_os_error())?);
        Ok(frame)
    }
}

/// A frame of `bytes`, from `from` to `to`, of an experimental protocol (IEEE 802: 0x88b5), whose
/// content is known.
pub fn frame(from: [u8; 6], to: [u8; 6], bytes: usize) -> Vec<u8> {
    let mut frame = [&to[..], &from[..], &[0x88, 0xb5]].concat();
    frame.extend((frame.len()..bytes).map(|position| position as u8));
    frame
}
