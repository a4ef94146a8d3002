//! The SCTP common header, RFC 9260 section 3.1.
//!
//! Limits: the CRC32c checksum is read and written, not computed; chunks are
//! payload.

use std::fmt;
use std::ops::Range;

use crate::bytes::{get_array, get_rest, get_u16, get_u32, set_array, set_u16, set_u32};
use crate::view::{HeaderError, header_view, require};

const SOURCE_PORT: Range<usize> = 0..2;
const DESTINATION_PORT: Range<usize> = 2..4;
const VERIFICATION_TAG: Range<usize> = 4..8;
const CHECKSUM: Range<usize> = 8..12;

/// Length of the common header, in bytes.
pub const SCTP_BYTES: usize = 12;

header_view! {
    /// View of an SCTP packet.
    SctpHeader
}

impl<T: AsRef<[u8]>> SctpHeader<T> {
    /// The view, if the common header is complete.
    ///
    /// # Errors
    ///
    /// Fewer than 12 bytes.
    pub fn new_checked(bytes: T) -> Result<Self, HeaderError> {
        require(bytes.as_ref(), SCTP_BYTES, "SCTP")?;
        Ok(Self(bytes))
    }

    /// Source port.
    pub fn source_port(&self) -> u16 {
        get_u16(self.as_bytes(), SOURCE_PORT)
    }

    /// Destination port.
    pub fn destination_port(&self) -> u16 {
        get_u16(self.as_bytes(), DESTINATION_PORT)
    }

    /// Verification tag.
    pub fn verification_tag(&self) -> u32 {
        get_u32(self.as_bytes(), VERIFICATION_TAG)
    }

    /// CRC32c; unlike all else it stands with its lowest byte first
    /// (RFC 9260 appendix A).
    pub fn checksum(&self) -> u32 {
        u32::from_le_bytes(get_array(self.as_bytes(), CHECKSUM))
    }

    /// The chunks.
    pub fn payload(&self) -> &[u8] {
        get_rest(self.as_bytes(), SCTP_BYTES)
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> SctpHeader<T> {
    /// Sets the source port.
    pub fn set_source_port(&mut self, port: u16) {
        set_u16(self.0.as_mut(), SOURCE_PORT, port);
    }

    /// Sets the destination port.
    pub fn set_destination_port(&mut self, port: u16) {
        set_u16(self.0.as_mut(), DESTINATION_PORT, port);
    }

    /// Sets the verification tag.
    pub fn set_verification_tag(&mut self, tag: u32) {
        set_u32(self.0.as_mut(), VERIFICATION_TAG, tag);
    }

    /// Sets the CRC32c field.
    pub fn set_checksum(&mut self, checksum: u32) {
        set_array(self.0.as_mut(), CHECKSUM, checksum.to_le_bytes());
    }
}

impl<T: AsRef<[u8]>> fmt::Display for SctpHeader<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (source, destination) = (self.source_port(), self.destination_port());
        write!(formatter, "SCTP {source} > {destination} tag 0x{:08x}", self.verification_tag())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_round_trip() {
        let mut bytes = [0u8; 13];
        let mut sctp = SctpHeader::new_checked(&mut bytes).unwrap();
        sctp.set_source_port(36412);
        sctp.set_destination_port(38412);
        sctp.set_verification_tag(0x0102_0304);
        sctp.set_checksum(0x0506_0708);
        assert_eq!(sctp.to_string(), "SCTP 36412 > 38412 tag 0x01020304");
        assert_eq!((sctp.checksum(), sctp.payload()), (0x0506_0708, &[0][..]));
        assert_eq!(bytes[8..], [8, 7, 6, 5, 0]);
    }

    #[test]
    fn incomplete_headers_are_refused() {
        assert!(SctpHeader::new_checked([0; 11]).is_err());
    }
}
