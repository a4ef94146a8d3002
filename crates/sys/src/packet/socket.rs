//! The packet socket itself: opening, binding, options, errors (packet(7)).

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::interface::Interface;
use crate::{Error, Kind, Result};

/// Opens a raw packet socket that is not bound and so receives nothing (protocol 0).
pub(super) fn open(interface: &str) -> Result<OwnedFd> {
    let action = || format!("opening a packet socket for {interface}");
    // SAFETY: no pointers are passed; a non-negative result is a new descriptor that nobody
    // else owns.
    let number = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if number < 0 {
        let error = Error::last(action());
        return Err(match error.kind() {
            Kind::Permission => error.remedy(
                "run as root, give the program the right once with: setcap cap_net_raw,cap_net_admin+ep \
                 PROGRAM, or try it without any right in a user namespace with: linerate demo",
            ),
            _ if error.errno() == Some(libc::EAFNOSUPPORT) => error
                .with_kind(Kind::Unsupported)
                .remedy("this kernel has no packet sockets (CONFIG_PACKET) or the sandbox forbids them"),
            _ => error,
        });
    }
    // SAFETY: `number` is the new descriptor from above.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Whether this thread may open packet sockets in its network namespace; the socket is closed again.
///
/// # Errors
/// [`Kind::Permission`] without `CAP_NET_RAW`; [`Kind::Unsupported`] when the kernel has none.
pub fn check_right() -> Result<()> {
    open("a trial").map(drop)
}

/// Sets one socket option of plain data.
pub(crate) fn set_option<T: Copy>(
    socket: BorrowedFd<'_>,
    level: i32,
    name: i32,
    value: &T,
    action: impl FnOnce() -> String,
) -> Result<()> {
    // SAFETY: `value` is valid for reads of its size, and the kernel only reads it.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if outcome < 0 { Err(Error::last(action())) } else { Ok(()) }
}

/// Binds to an interface; `protocol` in host order, 0 for a socket that only sends.
pub(super) fn bind(socket: BorrowedFd<'_>, index: i32, protocol: u16, name: &str) -> Result<()> {
    let mut address = empty_address();
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = index;
    // SAFETY: `address` is a complete link-layer address of the length given.
    let outcome = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    if outcome < 0 {
        return Err(Error::last(format!("binding a packet socket to {name}")));
    }
    Ok(())
}

/// Makes the kernel send what a transmit ring holds, as frames of `protocol` (host order) on the
/// interface `index`, without waiting.
pub(super) fn send_ring(socket: BorrowedFd<'_>, index: i32, protocol: u16) -> io::Result<()> {
    let mut address = empty_address();
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = index;
    // SAFETY: no data is passed, and `address` is a complete link-layer address of the length given.
    let sent = unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            std::ptr::null(),
            0,
            libc::MSG_DONTWAIT,
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The interface index that the socket is bound to; negative once that interface was removed.
pub(super) fn bound_index(socket: BorrowedFd<'_>) -> Result<i32> {
    let mut address = empty_address();
    let mut length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, the size of `address`.
    let outcome = unsafe {
        libc::getsockname(socket.as_raw_fd(), (&raw mut address).cast(), &raw mut length)
    };
    if outcome < 0 {
        return Err(Error::last("asking what a packet socket is bound to"));
    }
    Ok(address.sll_ifindex)
}

fn empty_address() -> libc::sockaddr_ll {
    libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: 0,
        sll_ifindex: 0,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    }
}

/// Asks for frames that are not addressed to the interface, for as long as the socket lives:
/// the kernel takes the membership back when the socket closes, however the program ends.
pub(super) fn join_promiscuous(
    socket: BorrowedFd<'_>,
    interface: Interface,
    name: &str,
) -> Result<()> {
    let membership = libc::packet_mreq {
        mr_ifindex: interface.index,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set_option(socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership, || {
        format!("making {name} promiscuous")
    })
}

/// Takes the pending error off the socket.
pub(super) fn take_error(socket: BorrowedFd<'_>) -> Result<Option<io::Error>> {
    rustix::net::sockopt::socket_error(socket)
        .map(|pending| pending.err().map(io::Error::from))
        .map_err(|errno| Error::new("reading the state of a packet socket", errno))
}

/// Bytes handed over for sending that the device has not finished with (`SIOCOUTQ`).
pub(super) fn unsent_bytes(socket: BorrowedFd<'_>) -> Result<u32> {
    let mut bytes = MaybeUninit::<libc::c_int>::zeroed();
    // SAFETY: the kernel writes one `int` to the pointer, which is valid for that.
    let outcome = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, bytes.as_mut_ptr()) };
    if outcome < 0 {
        return Err(Error::last("asking a packet socket what is still to be sent"));
    }
    // SAFETY: zeroed above, then possibly written by the kernel: initialised either way.
    Ok(unsafe { bytes.assume_init() }.try_into().unwrap_or(0))
}

/// Waits until no CPU can still be at work with what the socket had before: a filter that was
/// exchanged is not asked by anybody once this returns.
pub(crate) fn wait_for_receivers() {
    const GLOBAL: libc::c_int = 1;
    // SAFETY: the call takes no pointers. Its effect is a full RCU grace period (membarrier(2),
    // MEMBARRIER_CMD_GLOBAL), and the kernel receives frames inside RCU read sections.
    let outcome = unsafe { libc::syscall(libc::SYS_membarrier, GLOBAL, 0, 0) };
    if outcome < 0 {
        // Kernels with nohz_full CPUs refuse the command; receiving one batch of frames takes
        // far less than this.
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}

/// Waits for events on the socket. Gives what happened; nothing after `timeout`.
pub(crate) fn poll(
    socket: BorrowedFd<'_>,
    events: rustix::event::PollFlags,
    timeout: std::time::Duration,
) -> Result<rustix::event::PollFlags> {
    let mut waiting = [rustix::event::PollFd::from_borrowed_fd(socket, events)];
    let limit = rustix::event::Timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(timeout.subsec_nanos()),
    };
    match rustix::event::poll(&mut waiting, Some(&limit)) {
        Ok(_) => Ok(waiting[0].revents()),
        // A signal: the caller looks again and decides.
        Err(rustix::io::Errno::INTR) => Ok(rustix::event::PollFlags::empty()),
        Err(errno) => Err(Error::new("waiting for a packet socket", errno)),
    }
}
