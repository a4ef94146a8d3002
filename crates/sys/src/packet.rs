//! Packet sockets (`AF_PACKET`, packet(7)): frames of an interface in and out of user space
//! without any driver of ours.
//!
//! **Receiving** is a TPACKET_V3 ring: the kernel copies frames into large *blocks* of shared
//! memory and hands over one block at a time, when it is full or when its *retire timeout* is
//! over. [`PacketRing`] opens the ring so that nothing is in it, [`PacketRing::start`] and
//! [`PacketRing::stop`] are the exact first and last moment, and after the last block
//! `packets - drops == delivered` holds to the frame. The kernel strips the outer VLAN tag from
//! frames; it is put back before a [`Block`] is given out.
//!
//! **Sending** is [`Sender`]: batches of frames, each answered by how many the kernel took and
//! what stopped the rest. What a device then transmits or drops stands in its own counters.
//!
//! *Fan-out* shares the frames of one interface among several sockets. *Snap* is the number of
//! bytes kept of each frame.
//!
//! Limits: Linux 5.16 and later (fan-out without our own outgoing frames), Ethernet-like
//! interfaces, CAP_NET_RAW in the user namespace that owns the network namespace. The kernel
//! sees frames after XDP programs and before the IP stack, so both get them.

mod block;
mod fanout;
mod filter;
mod hardware_time;
mod interface;
mod mapping;
mod promiscuity;
mod ring;
mod sender;
mod slot;
pub(crate) mod socket;
mod statistics;
mod status_word;
mod walk;

pub use block::Block;
pub use fanout::{Fanout, FanoutMode};
pub use filter::{BpfInstruction, attach as attach_filter};
pub use promiscuity::Promiscuity;
pub use ring::{Event, PacketRing, RingConfig};
pub use sender::{BATCH_FRAMES, Blocked, Method, SendOutcome, Sender, SenderConfig};
pub use socket::check_right;
pub use statistics::RingStatistics;
pub use walk::{Descriptor, FrameFlags, TimeSource};
