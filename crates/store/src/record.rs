//! One captured packet, and the interface it was seen on, whatever format they come from.
//!
//! Vocabulary: a *record* is a packet with its time and lengths; an *interface* is where it was
//! seen and how its bytes and times are meant; *ticks* are a file's own unit of time.
//! Limits: times are nanoseconds since the Unix epoch in 64 bits (years 1970 to 2554), 0 means
//! unknown; comments, hashes and packet identifiers of single packets are not carried.

mod interface;
mod link_type;
mod statistics;
mod time;

pub use interface::{Interface, Section};
pub use link_type::LinkType;
pub use statistics::InterfaceStatistics;
pub use time::{TimeResolution, TimeScale};

/// The longest captured packet that Wireshark and libpcap accept (their `MAXIMUM_SNAPLEN`), and so
/// the longest that is read or written here, in bytes.
pub const MAXIMUM_CAPTURED_LENGTH: u32 = 262_144;

/// Which way a packet went through its interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Received.
    Inbound,
    /// Sent.
    Outbound,
}

/// The flags word of a packet: direction, kind of reception, FCS length, link-layer errors
/// (pcapng draft, section 4.3.1, option `epb_flags`). Zero means that nothing is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct PacketFlags(pub u32);

impl PacketFlags {
    /// Flags that say only which way the packet went.
    pub fn with_direction(direction: Direction) -> Self {
        match direction {
            Direction::Inbound => Self(1),
            Direction::Outbound => Self(2),
        }
    }

    /// Bits 0 and 1; none if they are 0 (unknown) or 3 (undefined).
    pub fn direction(self) -> Option<Direction> {
        match self.0 & 3 {
            1 => Some(Direction::Inbound),
            2 => Some(Direction::Outbound),
            _ => None,
        }
    }

    /// Bits 16 to 31: errors that the link layer reported, such as a wrong FCS (bit 24).
    pub fn link_errors(self) -> u16 {
        (self.0 >> 16) as u16
    }
}

/// A captured packet. Its bytes are borrowed from the reader's buffer until the next call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Nanoseconds since the Unix epoch; 0 if the format carries none.
    pub time_ns: u64,
    /// The captured bytes, starting with the link layer's header.
    pub data: &'a [u8],
    /// Length of the packet on the wire in bytes; more than `data` if it was cut.
    pub original_length: u32,
    /// Index into the reader's (or writer's) interfaces, over all sections of the file.
    pub interface: u32,
    /// Direction and link-layer errors.
    pub flags: PacketFlags,
    /// The queue of the interface that it came through (`epb_queue`).
    pub queue: Option<u32>,
    /// Packets lost between this one and the one before on the interface (`epb_dropcount`).
    pub drop_count: Option<u64>,
}

impl<'a> Record<'a> {
    /// A whole packet seen on interface 0, of which nothing else is known.
    pub fn new(time_ns: u64, data: &'a [u8]) -> Self {
        Self {
            time_ns,
            data,
            original_length: u32::try_from(data.len()).unwrap_or(u32::MAX),
            interface: 0,
            flags: PacketFlags::default(),
            queue: None,
            drop_count: None,
        }
    }

    /// Which way it went, if known.
    pub fn direction(&self) -> Option<Direction> {
        self.flags.direction()
    }
}
