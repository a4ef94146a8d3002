//! The UDP header, RFC 768.

use std::fmt;
use std::ops::Range;

use crate::bytes::{get_u16, set_u16};
use crate::checksum::Sum;
use crate::view::{HeaderError, header_view, require};

const SOURCE_PORT: Range<usize> = 0..2;
const DESTINATION_PORT: Range<usize> = 2..4;
const LENGTH: Range<usize> = 4..6;
const CHECKSUM: Range<usize> = 6..8;

/// Length of the header, in bytes.
pub const UDP_BYTES: usize = 8;

header_view! {
    /// View of a UDP datagram.
    UdpHeader
}

impl<T: AsRef<[u8]>> UdpHeader<T> {
    /// The view, if the header is complete.
    ///
    /// # Errors
    ///
    /// Fewer than 8 bytes.
    pub fn new_checked(bytes: T) -> Result<Self, HeaderError> {
        require(bytes.as_ref(), UDP_BYTES, "UDP")?;
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

    /// Length of header and payload, as the header says.
    pub fn length_bytes(&self) -> u16 {
        get_u16(self.as_bytes(), LENGTH)
    }

    /// Checksum over pseudo header, header and payload; 0 for none.
    pub fn checksum(&self) -> u16 {
        get_u16(self.as_bytes(), CHECKSUM)
    }

    /// What follows the header, to the end by the length field or of the buffer.
    pub fn payload(&self) -> &[u8] {
        let end = usize::from(self.length_bytes()).min(self.as_bytes().len());
        self.as_bytes().get(UDP_BYTES..end).unwrap_or_default()
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> UdpHeader<T> {
    /// Sets the source port.
    pub fn set_source_port(&mut self, port: u16) {
        set_u16(self.0.as_mut(), SOURCE_PORT, port);
    }

    /// Sets the destination port.
    pub fn set_destination_port(&mut self, port: u16) {
        set_u16(self.0.as_mut(), DESTINATION_PORT, port);
    }

    /// Sets the length of header and payload.
    pub fn set_length_bytes(&mut self, bytes: u16) {
        set_u16(self.0.as_mut(), LENGTH, bytes);
    }

    /// Sets the checksum field.
    pub fn set_checksum(&mut self, checksum: u16) {
        set_u16(self.0.as_mut(), CHECKSUM, checksum);
    }

    /// Computes the checksum over the whole buffer and the pseudo header, whose
    /// length must be that of the buffer, and sets it; a computed 0 is sent as
    /// 0xffff, as 0 means none.
    pub fn fill_checksum(&mut self, pseudo_header: Sum) {
        self.set_checksum(0);
        let checksum = pseudo_header.add_bytes(self.as_bytes()).checksum();
        self.set_checksum(if checksum == 0 { 0xffff } else { checksum });
    }
}

impl<T: AsRef<[u8]>> fmt::Display for UdpHeader<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (source, destination) = (self.source_port(), self.destination_port());
        write!(formatter, "UDP {source} > {destination} length {}", self.length_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_round_trip() {
        let mut bytes = [0u8; 12];
        let mut udp = UdpHeader::new_checked(&mut bytes).unwrap();
        udp.set_source_port(1234);
        udp.set_destination_port(53);
        udp.set_length_bytes(11);
        assert_eq!(udp.payload().len(), 3);
        udp.fill_checksum(Sum::new());
        assert_eq!(Sum::new().add_bytes(udp.as_bytes()).checksum(), 0);
        assert_eq!(udp.to_string(), "UDP 1234 > 53 length 11");
    }

    #[test]
    fn zero_is_sent_as_all_ones() {
        let mut udp = UdpHeader::new_checked([0xff, 0xff, 0, 0, 0, 0, 0, 0]).unwrap();
        udp.fill_checksum(Sum::new());
        assert_eq!(udp.checksum(), 0xffff);
    }

    #[test]
    fn incomplete_headers_are_refused() {
        assert!(UdpHeader::new_checked([0; 7]).is_err());
    }
}
