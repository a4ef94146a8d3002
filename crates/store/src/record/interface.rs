//! Where packets of a capture were seen, and who wrote the capture.

use super::{LinkType, TimeResolution, TimeScale};

/// An interface of a capture: a pcapng Interface Description Block (draft section 4.2), or what the
/// header of a pcap file says of its only one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// What the packets begin with.
    pub link_type: LinkType,
    /// The most bytes captured of a packet; 0 means no limit. A hint, not a promise: packets may
    /// be longer.
    pub snap_length: u32,
    /// Unit of the times in the file.
    pub time_resolution: TimeResolution,
    /// Seconds to add to each time in the file; may be negative.
    pub time_offset_s: i64,
    /// The system's name of the interface, as `eth0`.
    pub name: Option<String>,
    /// A longer description.
    pub description: Option<String>,
    /// The capture filter in libpcap's language.
    pub filter: Option<String>,
    /// The hardware behind it.
    pub hardware: Option<String>,
    /// The operating system of the machine that it belongs to.
    pub operating_system: Option<String>,
    /// A remark.
    pub comment: Option<String>,
    /// Its MAC address.
    pub mac: Option<[u8; 6]>,
    /// Its speed in bits per second.
    pub speed_bits_per_second: Option<u64>,
    /// Bytes of FCS at the end of each packet.
    pub fcs_length: Option<u8>,
}

impl Interface {
    /// An interface with nanosecond times, no offset, and nothing else known.
    pub fn new(link_type: LinkType, snap_length: u32) -> Self {
        Self {
            link_type,
            snap_length,
            time_resolution: TimeResolution::NANOSECONDS,
            time_offset_s: 0,
            name: None,
            description: None,
            filter: None,
            hardware: None,
            operating_system: None,
            comment: None,
            mac: None,
            speed_bits_per_second: None,
            fcs_length: None,
        }
    }

    /// The same interface with nanosecond times and no offset, in which every time can be written;
    /// for copying packets out of a file whose own unit is odd.
    #[must_use]
    pub fn in_nanoseconds(&self) -> Self {
        let time_resolution = TimeResolution::NANOSECONDS;
        Self { time_resolution, time_offset_s: 0, ..self.clone() }
    }

    /// The conversion between its ticks and nanoseconds since the epoch.
    pub fn time_scale(&self) -> TimeScale {
        TimeScale::new(self.time_resolution, self.time_offset_s)
    }
}

/// Who wrote a section of a pcapng file (Section Header Block, draft section 4.1).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Section {
    /// The machine.
    pub hardware: Option<String>,
    /// Its operating system.
    pub operating_system: Option<String>,
    /// The program that wrote it.
    pub application: Option<String>,
    /// A remark.
    pub comment: Option<String>,
}
