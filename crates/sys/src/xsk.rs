//! AF_XDP sockets (Documentation/networking/af_xdp.rst): frames between one queue of an interface and
//! memory of this process, before the kernel has made a packet of them.
//!
//! The **UMEM** ([`Umem`]) is that memory, cut into equal *chunks* of which each holds one frame or a
//! piece of one. Each chunk is at one place at a time, and moves between them by its number: the
//! *fill ring* (empty ones for the kernel to receive into), the *receive ring* (filled ones), a
//! [`Frames`] that somebody reads, the *transmit ring*, the *completion ring* (sent ones), and the
//! UMEM's own stock of free ones.
//!
//! A [`Socket`] belongs to one queue and has a [`Receiver`], a [`Transmitter`] or both. What arrives
//! comes to it only if an XDP program on the interface redirects it there. Several sockets share one
//! UMEM: the first one registers it, the others join (`XDP_SHARED_UMEM`), each with rings of its own.
//!
//! *Zero-copy*: the driver itself reads and writes the UMEM. *Copy mode*: the kernel copies each frame
//! between the UMEM and memory of its own, with any driver. *Multi-buffer*: a frame that is longer than a
//! chunk lies in several (`XDP_USE_SG`, Linux 6.6). *Need-wakeup*: the kernel says when a system call is
//! needed to make it look at a ring.
//!
//! Limits: chunks of 2 or 4 KiB that are aligned; Linux 5.10 and later for several sockets on one UMEM.
//! The right is CAP_NET_RAW in the user namespace that owns the network namespace. The kernel counts a UMEM as
//! locked memory of the user (`ulimit -l`), unless the process has CAP_IPC_LOCK.

mod cursor;
mod frames;
mod receiver;
mod ring;
mod settings;
mod socket;
mod statistics;
mod transmitter;
mod umem;
mod wait;

pub use frames::{Frames, STAMP_BYTES};
pub use receiver::{FRAMES_MAX, Receiver};
pub use settings::{BusyPoll, CopyMode, SocketConfig};
pub use socket::{Socket, check_right};
pub use statistics::XskStatistics;
pub use transmitter::{Stopped, Transmitter};
pub use umem::{CHUNK_BYTES, HEADROOM_BYTES, PIECES_MAX, Umem, chunk_bytes_for};
pub use wait::{Waited, settle, wait_for_frames};
