//! The header common to ICMP (RFC 792) and ICMPv6 (RFC 4443): type, code,
//! checksum and four more bytes whose meaning depends on the type.

use std::fmt;
use std::ops::Range;

use crate::bytes::{get_rest, get_u8, get_u16, get_u32, set_u8, set_u16, set_u32};
use crate::checksum::Sum;
use crate::view::{HeaderError, header_view, require};

const TYPE: usize = 0;
const CODE: usize = 1;
const CHECKSUM: Range<usize> = 2..4;
const REST: Range<usize> = 4..8;
const IDENTIFIER: Range<usize> = 4..6;
const SEQUENCE: Range<usize> = 6..8;

/// Length of the header, in bytes.
pub const ICMP_BYTES: usize = 8;

/// Type of an echo reply over IPv4.
pub const ECHO_REPLY: u8 = 0;
/// Type of an echo request over IPv4.
pub const ECHO_REQUEST: u8 = 8;
/// Type of an echo request over IPv6.
pub const ECHO_REQUEST_V6: u8 = 128;
/// Type of an echo reply over IPv6.
pub const ECHO_REPLY_V6: u8 = 129;

header_view! {
    /// View of an ICMP or ICMPv6 message.
    IcmpHeader
}

impl<T: AsRef<[u8]>> IcmpHeader<T> {
    /// The view, if the header is complete.
    ///
    /// # Errors
    ///
    /// Fewer than 8 bytes.
    pub fn new_checked(bytes: T) -> Result<Self, HeaderError> {
        require(bytes.as_ref(), ICMP_BYTES, "ICMP")?;
        Ok(Self(bytes))
    }

    /// Type of the message; numbered differently by ICMP and ICMPv6.
    pub fn message_type(&self) -> u8 {
        get_u8(self.as_bytes(), TYPE)
    }

    /// Code within the type.
    pub fn code(&self) -> u8 {
        get_u8(self.as_bytes(), CODE)
    }

    /// Checksum; over IPv6 it covers the pseudo header.
    pub fn checksum(&self) -> u16 {
        get_u16(self.as_bytes(), CHECKSUM)
    }

    /// The four bytes whose meaning depends on the type.
    pub fn rest(&self) -> u32 {
        get_u32(self.as_bytes(), REST)
    }

    /// Identifier of echo messages.
    pub fn identifier(&self) -> u16 {
        get_u16(self.as_bytes(), IDENTIFIER)
    }

    /// Sequence number of echo messages.
    pub fn sequence(&self) -> u16 {
        get_u16(self.as_bytes(), SEQUENCE)
    }

    /// What follows the header.
    pub fn payload(&self) -> &[u8] {
        get_rest(self.as_bytes(), ICMP_BYTES)
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> IcmpHeader<T> {
    /// Sets the type.
    pub fn set_message_type(&mut self, message_type: u8) {
        set_u8(self.0.as_mut(), TYPE, message_type);
    }

    /// Sets the code.
    pub fn set_code(&mut self, code: u8) {
        set_u8(self.0.as_mut(), CODE, code);
    }

    /// Sets the checksum field.
    pub fn set_checksum(&mut self, checksum: u16) {
        set_u16(self.0.as_mut(), CHECKSUM, checksum);
    }

    /// Sets the four bytes whose meaning depends on the type.
    pub fn set_rest(&mut self, rest: u32) {
        set_u32(self.0.as_mut(), REST, rest);
    }

    /// Sets the identifier of echo messages.
    pub fn set_identifier(&mut self, identifier: u16) {
        set_u16(self.0.as_mut(), IDENTIFIER, identifier);
    }

    /// Sets the sequence number of echo messages.
    pub fn set_sequence(&mut self, sequence: u16) {
        set_u16(self.0.as_mut(), SEQUENCE, sequence);
    }

    /// Computes the checksum over the whole buffer and sets it. The pseudo
    /// header is `Sum::new()` for ICMP and that of IPv6, with the length of the
    /// buffer, for ICMPv6.
    pub fn fill_checksum(&mut self, pseudo_header: Sum) {
        self.set_checksum(0);
        self.set_checksum(pseudo_header.add_bytes(self.as_bytes()).checksum());
    }
}

impl<T: AsRef<[u8]>> fmt::Display for IcmpHeader<T> {
    /// Type and code; for echo messages identifier and sequence.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.message_type() {
            ECHO_REQUEST | ECHO_REQUEST_V6 => "request",
            ECHO_REPLY | ECHO_REPLY_V6 => "reply",
            other => return write!(formatter, "ICMP type {other} code {}", self.code()),
        };
        let (identifier, sequence) = (self.identifier(), self.sequence());
        write!(formatter, "ICMP echo {name} id {identifier} sequence {sequence}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_round_trip() {
        let mut bytes = [0u8; 9];
        let mut icmp = IcmpHeader::new_checked(&mut bytes).unwrap();
        icmp.set_message_type(ECHO_REQUEST);
        icmp.set_identifier(0x0102);
        icmp.set_sequence(0x0304);
        icmp.fill_checksum(Sum::new());
        assert_eq!((icmp.rest(), icmp.payload()), (0x0102_0304, &[0][..]));
        assert_eq!(icmp.to_string(), "ICMP echo request id 258 sequence 772");
        assert_eq!(Sum::new().add_bytes(icmp.as_bytes()).checksum(), 0);
        icmp.set_message_type(3);
        icmp.set_code(1);
        icmp.set_rest(7);
        assert_eq!(icmp.to_string(), "ICMP type 3 code 1");
        assert_eq!(icmp.sequence(), 7);
    }

    #[test]
    fn incomplete_headers_are_refused() {
        assert!(IcmpHeader::new_checked([0; 7]).is_err());
    }
}
