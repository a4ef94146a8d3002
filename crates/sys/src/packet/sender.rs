//! Sending batches of frames through a packet socket.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use super::interface::Interface;
use super::socket::{self, set_option};
use crate::{Error, Result};

/// Most frames that one call of [`Sender::send`] takes.
pub const BATCH_FRAMES: usize = 64;
const ETHERNET_HEADER_BYTES: usize = 14;
const TAG_BYTES: usize = 4;
const ETHERTYPE_VLAN: [u8; 2] = [0x81, 0x00];

/// The system interface that frames are sent by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Method {
    /// The fastest that was measured: [`Method::Mmsg`].
    #[default]
    Auto,
    /// `sendmmsg(2)`.
    Mmsg,
}

/// How to open a [`Sender`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SenderConfig {
    /// Name of the interface.
    pub interface: String,
    /// How to hand frames over.
    pub method: Method,
    /// Go past the queueing discipline straight to the driver (`PACKET_QDISC_BYPASS`): faster,
    /// and a full device refuses frames at once instead of queueing them.
    pub qdisc_bypass: bool,
    /// Socket buffer: bytes, the kernel's own overhead of several hundred per frame included,
    /// that may be on their way before [`Blocked::SocketFull`]. 0 leaves the system's default.
    pub socket_buffer_bytes: usize,
}

impl SenderConfig {
    /// The usual sender for an interface.
    pub fn new(interface: impl Into<String>) -> Self {
        Self {
            interface: interface.into(),
            method: Method::Auto,
            qdisc_bypass: true,
            socket_buffer_bytes: 4 << 20,
        }
    }
}

/// Why the kernel took no more frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Blocked {
    /// The device's queue is full, or its qdisc dropped the frame (`ENOBUFS`).
    DeviceFull,
    /// The socket's buffer is full of frames that are on their way (`EAGAIN`).
    SocketFull,
    /// The interface is down or gone (`ENETDOWN`, `ENXIO`).
    Down,
}

/// What became of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SendOutcome {
    /// Frames, from the first on, that the kernel took.
    pub accepted: usize,
    /// What stopped the next one, if any is left.
    pub blocked: Option<Blocked>,
}

/// Sends frames on one interface.
#[derive(Debug)]
pub struct Sender {
    socket: OwnedFd,
    name: String,
    mtu_bytes: usize,
}

impl Sender {
    /// Opens a socket that only sends: it receives nothing.
    ///
    /// Errors: [`crate::Kind::NotFound`] without such an interface, [`crate::Kind::Down`] when it is down,
    /// [`crate::Kind::Permission`] without CAP_NET_RAW in the network namespace.
    pub fn open(config: &SenderConfig) -> Result<Self> {
        let socket = socket::open(&config.interface)?;
        let fd = socket.as_fd();
        let interface = Interface::look_up_running(fd, &config.interface)?;
        if config.qdisc_bypass {
            set_option(fd, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1, || {
                format!("bypassing the queueing discipline of {}", config.interface)
            })?;
        }
        if config.socket_buffer_bytes > 0 {
            set_buffer(fd, config)?;
        }
        socket::bind(fd, interface.index, 0, &config.interface)?;
        Ok(Self { socket, name: config.interface.clone(), mtu_bytes: interface.mtu_bytes as usize })
    }

    /// Hands up to [`BATCH_FRAMES`] frames to the kernel, in order, without waiting; frames
    /// beyond that number are left in the iterator.
    ///
    /// A frame is given whole, from the destination address on, without FCS. Fails with
    /// [`crate::Kind::Invalid`], and sends nothing of the batch, when a frame is longer than the MTU
    /// allows or shorter than an Ethernet header. Other errors leave open how many were sent.
    pub fn send<'a>(&mut self, frames: impl IntoIterator<Item = &'a [u8]>) -> Result<SendOutcome> {
        let mut vectors =
            [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; BATCH_FRAMES];
        let mut count = 0;
        for (vector, frame) in vectors.iter_mut().zip(frames) {
            self.check_length(frame)?;
            vector.iov_base = frame.as_ptr().cast_mut().cast();
            vector.iov_len = frame.len();
            count += 1;
        }
        let mut messages = [EMPTY_MESSAGE; BATCH_FRAMES];
        for (message, vector) in messages.iter_mut().zip(&mut vectors) {
            message.msg_hdr.msg_iov = vector;
            message.msg_hdr.msg_iovlen = 1;
        }
        let mut accepted = 0;
        while accepted < count {
            // SAFETY: the messages from `accepted` to `count` are initialised; each refers to
            // one vector, and that to a frame borrowed for longer than this call. The kernel
            // reads the frames and writes only the messages' `msg_len`.
            let sent = unsafe {
                libc::sendmmsg(
                    self.socket.as_raw_fd(),
                    messages.as_mut_ptr().add(accepted),
                    (count - accepted) as libc::c_uint,
                    libc::MSG_DONTWAIT,
                )
            };
            match usize::try_from(sent) {
                Ok(0) => break,
                // Fewer than asked for: the next call tells why.
                Ok(sent) => accepted += sent,
                Err(_) => match self.classify(io::Error::last_os_error())? {
                    None => {}
                    blocked => return Ok(SendOutcome { accepted, blocked }),
                },
            }
        }
        Ok(SendOutcome { accepted, blocked: None })
    }

    /// The reason for which the kernel took no frame; nothing when it should be asked again.
    fn classify(&mut self, error: io::Error) -> Result<Option<Blocked>> {
        match error.raw_os_error() {
            Some(libc::ENOBUFS) => Ok(Some(Blocked::DeviceFull)),
            Some(libc::EAGAIN) => Ok(Some(Blocked::SocketFull)),
            Some(libc::ENETDOWN | libc::ENXIO) => Ok(Some(Blocked::Down)),
            Some(libc::EINTR) => Ok(None),
            Some(libc::EMSGSIZE) => {
                // Somebody has lowered the MTU since the sender was opened.
                self.mtu_bytes =
                    Interface::look_up(self.socket.as_fd(), &self.name)?.mtu_bytes as usize;
                Err(Error::new(format!("sending on {}", self.name), error).remedy(format!(
                    "its MTU is now {} bytes: send shorter frames or run: ip link set {} mtu BYTES",
                    self.mtu_bytes, self.name
                )))
            }
            _ => Err(Error::new(format!("sending on {}", self.name), error)),
        }
    }

    /// The kernel's own rule: MTU and Ethernet header, and a tag on top only for frames that
    /// begin with an 802.1Q tag.
    fn check_length(&self, frame: &[u8]) -> Result<()> {
        let longest = self.mtu_bytes + ETHERNET_HEADER_BYTES;
        if (ETHERNET_HEADER_BYTES..=longest).contains(&frame.len()) {
            return Ok(());
        }
        let tagged = frame.get(12..14).is_some_and(|kind| kind == ETHERTYPE_VLAN);
        if tagged && frame.len() <= longest + TAG_BYTES && frame.len() > ETHERNET_HEADER_BYTES {
            return Ok(());
        }
        let action = format!("sending a frame of {} bytes on {}", frame.len(), self.name);
        let error = Error::new(action, io::Error::from_raw_os_error(libc::EMSGSIZE));
        Err(if frame.len() < ETHERNET_HEADER_BYTES {
            error.remedy(format!("a frame has at least {ETHERNET_HEADER_BYTES} bytes"))
        } else {
            error.remedy(format!(
                "the MTU is {} bytes, so a frame has at most {longest}, or {} with an 802.1Q tag: \
                 send shorter frames or run: ip link set {} mtu {}",
                self.mtu_bytes,
                longest + TAG_BYTES,
                self.name,
                frame.len() - ETHERNET_HEADER_BYTES,
            ))
        })
    }

    /// Waits until the kernel can take frames again after [`Blocked::SocketFull`], or until
    /// `timeout` is over. Tells whether it can.
    pub fn wait(&self, timeout: Duration) -> Result<bool> {
        let seen = socket::poll(self.socket.as_fd(), PollFlags::OUT, timeout)?;
        Ok(seen.contains(PollFlags::OUT))
    }

    /// Waits until the device is done with all frames that were accepted, or until `timeout` is
    /// over. Tells whether it is. Closing a sender earlier loses nothing either, but leaves
    /// frames on their way that the device has not counted yet.
    pub fn drain(&mut self, timeout: Duration) -> Result<bool> {
        let deadline = Instant::now() + timeout;
        while socket::unsent_bytes(self.socket.as_fd())? > 0 {
            if Instant::now() >= deadline {
                return Ok(false);
            }
            std::thread::sleep(DRAIN_INTERVAL);
        }
        Ok(true)
    }

    /// How frames are handed over, never [`Method::Auto`].
    pub fn method(&self) -> Method {
        Method::Mmsg
    }
}

fn set_buffer(fd: BorrowedFd<'_>, config: &SenderConfig) -> Result<()> {
    let bytes = i32::try_from(config.socket_buffer_bytes / 2).unwrap_or(i32::MAX);
    let action = || format!("setting the send buffer of {}", config.interface);
    // The kernel doubles the value. Without CAP_NET_ADMIN net.core.wmem_max caps it.
    set_option(fd, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &bytes, action)
        .or_else(|_| set_option(fd, libc::SOL_SOCKET, libc::SO_SNDBUF, &bytes, action))
}

const DRAIN_INTERVAL: Duration = Duration::from_micros(200);

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
