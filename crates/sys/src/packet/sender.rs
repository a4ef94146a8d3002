//! Sending batches of frames through a packet socket.

mod messages;
mod transmit_ring;
mod transmit_slot;

use std::io;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use self::messages::Messages;
use self::transmit_ring::TransmitRing;
use super::interface::Interface;
use super::socket::{self, set_option};
use crate::{Error, Kind, Result};

/// Most frames that one call of [`Sender::send`] takes.
pub const BATCH_FRAMES: usize = 64;
const ETHERNET_HEADER_BYTES: usize = 14;
const TAG_BYTES: usize = 4;
/// No Ethernet interface can have less (`ETH_MIN_MTU` of linux/if_ether.h).
const MTU_BYTES_MIN: usize = 68;
const ETHERTYPE_VLAN: [u8; 2] = [0x81, 0x00];

/// What the kernel is told that the frames carry (`ETH_P_LOOPBACK`): a protocol that it has no
/// dissector for. Told nothing it would look each frame's headers up, 3 % of what sending costs;
/// drivers and the far end read the frame itself.
const PROTOCOL: u16 = 0x9000;

/// How frames are handed to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Method {
    /// The faster one where it can be had: [`Method::Ring`], else [`Method::Messages`].
    #[default]
    Auto,
    /// Through a transmit ring, copied by the kernel in one piece (`PACKET_TX_RING` with
    /// `PACKET_VNET_HDR`): 1.1 to 1.8 times as fast as the other on a veth pair.
    Ring,
    /// By `sendmmsg(2)`: needs no memory that is shared with the kernel.
    Messages,
}

/// How to open a [`Sender`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SenderConfig {
    /// Name of the interface.
    pub interface: String,
    /// How to hand frames over.
    pub method: Method,
    /// Go past the queueing discipline straight to the driver (`PACKET_QDISC_BYPASS`): saves its
    /// work where there is one, and a full device refuses frames at once instead of queueing
    /// them. The frames are then invisible to captures on the same interface.
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
    /// Before the socket: the ring is unmapped before the socket is closed.
    ring: Option<TransmitRing>,
    socket: OwnedFd,
    name: String,
    index: i32,
    mtu_bytes: usize,
    /// Longest frame that there is room for, whatever the MTU is by now.
    room_bytes: usize,
}

impl Sender {
    /// Opens a socket that only sends: it receives nothing.
    ///
    /// Errors: [`Kind::NotFound`] without such an interface, [`Kind::Down`] when
    /// it is down, [`Kind::Permission`] without CAP_NET_RAW in the network namespace.
    pub fn open(config: &SenderConfig) -> Result<Self> {
        match config.method {
            Method::Ring => Self::open_with(config, true),
            Method::Messages => Self::open_with(config, false),
            Method::Auto => Self::open_with(config, true).or_else(|error| match error.kind() {
                Kind::NotFound | Kind::Down | Kind::Permission => Err(error),
                _ => Self::open_with(config, false),
            }),
        }
    }

    fn open_with(config: &SenderConfig, ring: bool) -> Result<Self> {
        let socket = socket::open(&config.interface)?;
        let fd = socket.as_fd();
        let interface = Interface::look_up_running(fd, &config.interface)?;
        let mtu_bytes = interface.mtu_bytes as usize;
        if config.qdisc_bypass {
            set_option(fd, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1, || {
                format!("bypassing the queueing discipline of {}", config.interface)
            })?;
        }
        if config.socket_buffer_bytes > 0 {
            set_buffer(fd, config)?;
        }
        let longest = mtu_bytes + ETHERNET_HEADER_BYTES + TAG_BYTES;
        let ring =
            if ring { Some(TransmitRing::new(&socket, longest, &config.interface)?) } else { None };
        socket::bind(fd, interface.index, 0, &config.interface)?;
        let name = config.interface.clone();
        let room_bytes = ring.as_ref().map_or(usize::MAX, TransmitRing::frame_bytes_max);
        Ok(Self { ring, socket, name, index: interface.index, mtu_bytes, room_bytes })
    }

    /// Hands up to [`BATCH_FRAMES`] frames to the kernel, in order, without waiting; frames
    /// beyond that number are left in the iterator.
    ///
    /// A frame is given whole, from the destination address on, without FCS. Fails with
    /// [`Kind::Invalid`] when a frame has none of the [`Sender::lengths`] that it may have. After any
    /// error nothing of the batch was sent: one that comes when some frames are on their way is told by
    /// the next call.
    pub fn send<'a>(&mut self, frames: impl IntoIterator<Item = &'a [u8]>) -> Result<SendOutcome> {
        let frames = frames.into_iter().take(BATCH_FRAMES);
        match self.ring.take() {
            Some(mut ring) => {
                let outcome = self.send_by_ring(&mut ring, frames);
                self.ring = Some(ring);
                outcome
            }
            None => self.send_by_messages(frames),
        }
    }

    fn send_by_ring<'a>(
        &mut self,
        ring: &mut TransmitRing,
        frames: impl Iterator<Item = &'a [u8]>,
    ) -> Result<SendOutcome> {
        let mut written = 0;
        let mut full = None;
        let mut longest: &[u8] = &[];
        for frame in frames {
            self.check_length(frame)?;
            if !ring.write(written, frame) {
                full = Some(Blocked::SocketFull);
                break;
            }
            written += 1;
            if frame.len() > longest.len() {
                longest = frame;
            }
        }
        if longest.len() > ETHERNET_HEADER_BYTES + MTU_BYTES_MIN {
            // With virtio headers the kernel leaves this check to us.
            self.refresh_mtu();
            self.check_length(longest)?;
        }
        ring.hand_over(written);
        let mut accepted = 0;
        while accepted < written {
            let called = socket::send_ring(self.socket.as_fd(), self.index, PROTOCOL);
            let taken = ring.advance(written - accepted);
            accepted += taken;
            let blocked = match called {
                // Fewer than there were: the next call tells why.
                Ok(_) if taken > 0 => continue,
                Ok(_) => Ok(Some(Blocked::SocketFull)),
                Err(_) if accepted == written => break,
                Err(error) => self.classify(error),
            };
            if matches!(blocked, Ok(None)) {
                continue;
            }
            ring.take_back(written - accepted);
            return Ok(SendOutcome { accepted, blocked: behind(accepted, blocked)? });
        }
        Ok(SendOutcome { accepted, blocked: full })
    }

    fn send_by_messages<'a>(
        &mut self,
        frames: impl Iterator<Item = &'a [u8]>,
    ) -> Result<SendOutcome> {
        let mut messages = Messages::new();
        let mut count = 0;
        for frame in frames {
            self.check_length(frame)?;
            if !messages.push(frame) {
                break;
            }
            count += 1;
        }
        let mut accepted = 0;
        while accepted < count {
            match messages.send(self.socket.as_fd(), accepted) {
                Ok(0) => break,
                // Fewer than asked for: the next call tells why.
                Ok(sent) => accepted += sent,
                Err(error) => match self.classify(error) {
                    Ok(None) => {}
                    blocked => {
                        return Ok(SendOutcome { accepted, blocked: behind(accepted, blocked)? });
                    }
                },
            }
        }
        Ok(SendOutcome { accepted, blocked: None })
    }

    fn refresh_mtu(&mut self) {
        if let Ok(interface) = Interface::look_up(self.socket.as_fd(), &self.name) {
            self.mtu_bytes = interface.mtu_bytes as usize;
        }
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
                self.refresh_mtu();
                Err(Error::new(format!("sending on {}", self.name), error).remedy(format!(
                    "the MTU is {} bytes by now: send shorter frames or run: ip link set {} mtu BYTES",
                    self.mtu_bytes, self.name
                )))
            }
            _ => Err(Error::new(format!("sending on {}", self.name), error)),
        }
    }

    /// What the MTU allows a frame: a tag on top, if the frame begins with one of 802.1Q
    /// (`packet_extra_vlan_len_allowed` in net/packet/af_packet.c).
    fn frame_bytes_max(&self, frame: &[u8]) -> usize {
        let is_tagged = frame.get(12..14).is_some_and(|kind| kind == ETHERTYPE_VLAN);
        self.mtu_bytes + ETHERNET_HEADER_BYTES + if is_tagged { TAG_BYTES } else { 0 }
    }

    /// How long a frame may be that begins like this one: the kernel's own rule, by the MTU as it was
    /// when it was last seen, and what there is room for.
    pub fn lengths(&self, frame: &[u8]) -> RangeInclusive<usize> {
        ETHERNET_HEADER_BYTES..=self.frame_bytes_max(frame).min(self.room_bytes)
    }

    fn check_length(&self, frame: &[u8]) -> Result<()> {
        if self.lengths(frame).contains(&frame.len()) {
            return Ok(());
        }
        let action = format!("sending a frame of {} bytes on {}", frame.len(), self.name);
        let error = Error::new(action, io::Error::from_raw_os_error(libc::EMSGSIZE));
        let longest = self.mtu_bytes + ETHERNET_HEADER_BYTES;
        Err(if frame.len() < ETHERNET_HEADER_BYTES {
            error.remedy(format!("a frame has at least {ETHERNET_HEADER_BYTES} bytes"))
        } else if frame.len() <= self.frame_bytes_max(frame) {
            // The MTU allows it by now, but did not when the ring was made.
            error.remedy(format!(
                "the sender was opened for frames of up to {} bytes: open it again after raising \
                 the MTU",
                self.room_bytes
            ))
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
        if self.ring.is_some() { Method::Ring } else { Method::Messages }
    }
}

/// What stopped a batch of which `accepted` frames are on their way: an error will come again.
fn behind(accepted: usize, blocked: Result<Option<Blocked>>) -> Result<Option<Blocked>> {
    match blocked {
        Err(_) if accepted > 0 => Ok(None),
        blocked => blocked,
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
