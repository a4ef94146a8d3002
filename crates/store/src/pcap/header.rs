//! The file's header: magic, version, snap length, link field.

use crate::pcapng::ByteOrder;
use crate::record::{Interface, LinkType, TimeResolution};

/// Length of the file's header in bytes.
pub(crate) const HEADER_LENGTH: usize = 24;
/// Magic of times in microseconds.
pub(crate) const MAGIC_MICROSECONDS: u32 = 0xa1b2_c3d4;
/// Magic of times in nanoseconds.
pub(crate) const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
/// Magic of longer record headers, times in microseconds.
pub(crate) const MAGIC_MODIFIED: u32 = 0xa1b2_cd34;

/// The link field's bit that says that it holds a FCS length.
const FCS_LENGTH_IS_GIVEN: u32 = 0x0400_0000;

/// How the two lengths of a record stand in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LengthOrder {
    /// Captured, then original: every version since 2.4.
    CapturedFirst,
    /// Original, then captured: before 2.3.
    OriginalFirst,
    /// Version 2.3, whose writers did either: the smaller one is the captured.
    SmallerIsCaptured,
}

/// What the magic says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Magic {
    pub(crate) order: ByteOrder,
    pub(crate) time_resolution: TimeResolution,
    /// Length of each record's header in bytes.
    pub(crate) record_header_length: usize,
}

impl Magic {
    /// Recognises the four bytes that a file begins with.
    pub(crate) fn parse(bytes: [u8; 4]) -> Option<Self> {
        [ByteOrder::Little, ByteOrder::Big].into_iter().find_map(|order| {
            let (time_resolution, record_header_length) = match order.u32(bytes) {
                MAGIC_MICROSECONDS => (TimeResolution::MICROSECONDS, 16),
                MAGIC_NANOSECONDS => (TimeResolution::NANOSECONDS, 16),
                MAGIC_MODIFIED => (TimeResolution::MICROSECONDS, 24),
                _ => return None,
            };
            Some(Self { order, time_resolution, record_header_length })
        })
    }
}

/// The whole header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) magic: Magic,
    pub(crate) version: (u16, u16),
    pub(crate) snap_length: u32,
    /// Link type in the low 16 bits; above them a FCS length, or junk.
    pub(crate) link_field: u32,
}

impl Header {
    pub(crate) fn parse(bytes: &[u8; HEADER_LENGTH]) -> Option<Self> {
        let magic = Magic::parse(*bytes.first_chunk()?)?;
        let order = magic.order;
        Some(Self {
            magic,
            version: (order.u16_at(bytes, 4)?, order.u16_at(bytes, 6)?),
            snap_length: order.u32_at(bytes, 16)?,
            link_field: order.u32_at(bytes, 20)?,
        })
    }

    /// None for a version that no reader knows. 543.0 is a writer's mistake that libpcap reads too.
    pub(crate) fn length_order(&self) -> Option<LengthOrder> {
        match self.version {
            (2, 4) => Some(LengthOrder::CapturedFirst),
            (2, 3) => Some(LengthOrder::SmallerIsCaptured),
            (2, 0..3) | (543, 0) => Some(LengthOrder::OriginalFirst),
            _ => None,
        }
    }

    /// Bytes of FCS at the end of each packet, which the link field counts in units of two.
    pub(crate) fn fcs_length(&self) -> Option<u8> {
        let units = (self.link_field >> 28) as u8;
        (self.link_field & FCS_LENGTH_IS_GIVEN != 0).then_some(units * 2)
    }

    /// Whether the link field has bits that mean nothing.
    pub(crate) fn has_link_junk(&self) -> bool {
        let known = if self.fcs_length().is_some() { 0xf400_ffff } else { 0xffff };
        self.link_field & !known != 0
    }

    pub(crate) fn interface(&self) -> Interface {
        let mut interface = Interface::new(LinkType(self.link_field as u16), self.snap_length);
        interface.time_resolution = self.magic.time_resolution;
        interface.fcs_length = self.fcs_length();
        interface
    }

    /// The header as it stands in a little-endian file.
    pub(crate) fn encode(interface: &Interface, nanoseconds: bool) -> [u8; HEADER_LENGTH] {
        let magic = if nanoseconds { MAGIC_NANOSECONDS } else { MAGIC_MICROSECONDS };
        let mut link_field = u32::from(interface.link_type.0);
        // The field has four bits for half the length; longer or odd ones cannot be told.
        if let Some(length @ (0 | 2 | 4 | 6 | 8)) = interface.fcs_length {
            link_field |= FCS_LENGTH_IS_GIVEN | u32::from(length / 2) << 28;
        }
        let words = [magic, u32::from(2_u16) | 4 << 16, 0, 0, interface.snap_length, link_field];
        let mut bytes = [0; HEADER_LENGTH];
        for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_link_field(link_field: u32) -> Header {
        let mut bytes = Header::encode(&Interface::new(LinkType::ETHERNET, 0), false);
        bytes[20..].copy_from_slice(&link_field.to_le_bytes());
        Header::parse(&bytes).unwrap()
    }

    #[test]
    fn junk_in_the_link_field_is_masked_and_told() {
        for junk in [0x3000_0001, 0x0001_0001, 0x0800_0001] {
            let header = with_link_field(junk);
            assert_eq!(header.interface().link_type, LinkType::ETHERNET);
            assert!(header.has_link_junk(), "{junk:#x}");
        }
        assert!(!with_link_field(276).has_link_junk());
    }

    #[test]
    fn the_fcs_length_survives_a_round_trip() {
        let mut interface = Interface::new(LinkType::ETHERNET, 262_144);
        interface.fcs_length = Some(4);
        let header = Header::parse(&Header::encode(&interface, true)).unwrap();
        assert_eq!(header.link_field, 0x2400_0001);
        assert_eq!(header.interface(), interface);
        assert!(!header.has_link_junk());
    }
}
