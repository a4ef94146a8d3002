//! What the kernel says about a network interface, asked by name through a packet socket.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::{Error, Kind, Result};

/// An interface as it was when it was looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Interface {
    /// Kernel index; a new one after the interface was removed and made again.
    pub(super) index: i32,
    /// Largest payload in bytes, without the 14 bytes of the Ethernet header.
    pub(super) mtu_bytes: u32,
    /// Administratively up (`IFF_UP`).
    pub(super) up: bool,
}

impl Interface {
    /// Looks `name` up in the network namespace of `socket`.
    ///
    /// Fails with [`crate::Kind::NotFound`] when there is no such interface.
    pub(super) fn look_up(socket: BorrowedFd<'_>, name: &str) -> Result<Self> {
        let fail = |source: io::Error| {
            let error = Error::new(format!("looking up the interface {name}"), source);
            match error.kind() {
                Kind::NotFound => error.remedy("list the interfaces with: ip link"),
                _ => error,
            }
        };
        let index = request(socket, name, libc::SIOCGIFINDEX).map_err(fail)?;
        let mtu = request(socket, name, libc::SIOCGIFMTU).map_err(fail)?;
        let flags = request(socket, name, libc::SIOCGIFFLAGS).map_err(fail)?;
        // SAFETY: each request succeeded, so the kernel filled the member that belongs to it;
        // all three are plain integers for which every bit pattern is valid.
        let (index, mtu, flags) = unsafe {
            (index.ifr_ifru.ifru_ifindex, mtu.ifr_ifru.ifru_mtu, flags.ifr_ifru.ifru_flags)
        };
        Ok(Self {
            index,
            mtu_bytes: u32::try_from(mtu).unwrap_or(0),
            up: i32::from(flags) & libc::IFF_UP != 0,
        })
    }

    /// Like [`Interface::look_up`], and fails with [`crate::Kind::Down`] when the interface is not up.
    pub(super) fn look_up_running(socket: BorrowedFd<'_>, name: &str) -> Result<Self> {
        let interface = Self::look_up(socket, name)?;
        if interface.up { Ok(interface) } else { Err(down(name)) }
    }
}

/// The error for an interface that exists but is down.
pub(super) fn down(name: &str) -> Error {
    Error::new(
        format!("using the interface {name}, which is down"),
        io::Error::from_raw_os_error(libc::ENETDOWN),
    )
    .remedy(format!("run: ip link set {name} up"))
}

/// One `ioctl` of the netdevice(7) family that takes a name and gives a value.
fn request(
    socket: BorrowedFd<'_>,
    name: &str,
    code: libc::Ioctl,
) -> Result<libc::ifreq, io::Error> {
    let mut ifreq = named_request(name)?;
    // SAFETY: `ifreq` is a valid, exclusively borrowed request whose name is terminated; the
    // kernel writes at most `size_of::<ifreq>()` bytes into it.
    let outcome = unsafe { libc::ioctl(socket.as_raw_fd(), code, &raw mut ifreq) };
    if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(ifreq) }
}

/// An empty request that carries the interface's name.
pub(super) fn named_request(name: &str) -> Result<libc::ifreq, io::Error> {
    // SAFETY: `ifreq` consists of integers, arrays of them and unions of those: all zeroes is
    // a valid value.
    let mut ifreq: libc::ifreq = unsafe { std::mem::zeroed() };
    // One byte stays zero: the name's end.
    if name.is_empty() || name.len() >= ifreq.ifr_name.len() || name.contains('\0') {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in ifreq.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from.cast_signed();
    }
    Ok(ifreq)
}
