//! The TCP header, RFC 9293 section 3.1.

use std::fmt;
use std::ops::{BitOr, Range};

use crate::bytes::{get_rest, get_u8, get_u16, get_u32, set_u8, set_u16, set_u32};
use crate::checksum::Sum;
use crate::view::{HeaderError, header_view, require};

const SOURCE_PORT: Range<usize> = 0..2;
const DESTINATION_PORT: Range<usize> = 2..4;
const SEQUENCE: Range<usize> = 4..8;
const ACKNOWLEDGMENT: Range<usize> = 8..12;
const DATA_OFFSET: usize = 12;
const FLAGS: usize = 13;
const WINDOW: Range<usize> = 14..16;
const CHECKSUM: Range<usize> = 16..18;
const URGENT: Range<usize> = 18..20;

/// Length without options, in bytes.
pub const TCP_BYTES: usize = 20;

/// The control bits, RFC 9293 section 3.1: a set of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TcpFlags(u8);

impl TcpFlags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgment number is meaningful.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer is meaningful.
    pub const URG: Self = Self(0x20);
    /// ECN echo, RFC 3168.
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced, RFC 3168.
    pub const CWR: Self = Self(0x80);

    /// Each bit with its name, lowest first.
    pub const NAMES: [(Self, &'static str); 8] = [
        (Self::FIN, "FIN"),
        (Self::SYN, "SYN"),
        (Self::RST, "RST"),
        (Self::PSH, "PSH"),
        (Self::ACK, "ACK"),
        (Self::URG, "URG"),
        (Self::ECE, "ECE"),
        (Self::CWR, "CWR"),
    ];

    /// The set as it stands in the header.
    #[inline]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The set of these bits.
    #[inline]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// Whether all bits of `other` are set.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for TcpFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Display for TcpFlags {
    /// The names of the bits that are set, with `|` between them; `none` for none.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (_, name) in Self::NAMES.into_iter().filter(|(flag, _)| self.contains(*flag)) {
            write!(formatter, "{separator}{name}")?;
            separator = "|";
        }
        if self.0 == 0 { formatter.write_str("none") } else { Ok(()) }
    }
}

header_view! {
    /// View of a TCP header with the payload behind it.
    TcpHeader
}

impl<T: AsRef<[u8]>> TcpHeader<T> {
    /// The view, if header and options are complete.
    ///
    /// # Errors
    ///
    /// Too few bytes, or a data offset below 5.
    pub fn new_checked(bytes: T) -> Result<Self, HeaderError> {
        require(bytes.as_ref(), TCP_BYTES, "TCP")?;
        let view = Self(bytes);
        let header_bytes = view.header_bytes();
        if header_bytes < TCP_BYTES {
            let value = header_bytes as u32 / 4;
            return Err(HeaderError::Invalid { header: "TCP", field: "data offset", value });
        }
        require(view.as_bytes(), header_bytes, "TCP")?;
        Ok(view)
    }

    /// Source port.
    pub fn source_port(&self) -> u16 {
        get_u16(self.as_bytes(), SOURCE_PORT)
    }

    /// Destination port.
    pub fn destination_port(&self) -> u16 {
        get_u16(self.as_bytes(), DESTINATION_PORT)
    }

    /// Sequence number.
    pub fn sequence(&self) -> u32 {
        get_u32(self.as_bytes(), SEQUENCE)
    }

    /// Acknowledgment number.
    pub fn acknowledgment(&self) -> u32 {
        get_u32(self.as_bytes(), ACKNOWLEDGMENT)
    }

    /// Length with options, from the data offset.
    pub fn header_bytes(&self) -> usize {
        usize::from(get_u8(self.as_bytes(), DATA_OFFSET) >> 4) * 4
    }

    /// Control bits.
    pub fn flags(&self) -> TcpFlags {
        TcpFlags(get_u8(self.as_bytes(), FLAGS))
    }

    /// Receive window, unscaled.
    pub fn window(&self) -> u16 {
        get_u16(self.as_bytes(), WINDOW)
    }

    /// Checksum over pseudo header, header and payload.
    pub fn checksum(&self) -> u16 {
        get_u16(self.as_bytes(), CHECKSUM)
    }

    /// Urgent pointer.
    pub fn urgent(&self) -> u16 {
        get_u16(self.as_bytes(), URGENT)
    }

    /// Options with their padding.
    pub fn options(&self) -> &[u8] {
        self.as_bytes().get(TCP_BYTES..self.header_bytes()).unwrap_or_default()
    }

    /// What follows the header.
    pub fn payload(&self) -> &[u8] {
        get_rest(self.as_bytes(), self.header_bytes())
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> TcpHeader<T> {
    /// Sets the source port.
    pub fn set_source_port(&mut self, port: u16) {
        set_u16(self.0.as_mut(), SOURCE_PORT, port);
    }

    /// Sets the destination port.
    pub fn set_destination_port(&mut self, port: u16) {
        set_u16(self.0.as_mut(), DESTINATION_PORT, port);
    }

    /// Sets the sequence number.
    pub fn set_sequence(&mut self, sequence: u32) {
        set_u32(self.0.as_mut(), SEQUENCE, sequence);
    }

    /// Sets the acknowledgment number.
    pub fn set_acknowledgment(&mut self, acknowledgment: u32) {
        set_u32(self.0.as_mut(), ACKNOWLEDGMENT, acknowledgment);
    }

    /// Sets the control bits.
    pub fn set_flags(&mut self, flags: TcpFlags) {
        set_u8(self.0.as_mut(), FLAGS, flags.0);
    }

    /// Sets the receive window.
    pub fn set_window(&mut self, window: u16) {
        set_u16(self.0.as_mut(), WINDOW, window);
    }

    /// Sets the checksum field.
    pub fn set_checksum(&mut self, checksum: u16) {
        set_u16(self.0.as_mut(), CHECKSUM, checksum);
    }

    /// Sets the urgent pointer.
    pub fn set_urgent(&mut self, urgent: u16) {
        set_u16(self.0.as_mut(), URGENT, urgent);
    }

    /// Computes the checksum over the whole buffer and the pseudo header, whose
    /// length must be that of the buffer, and sets it.
    pub fn fill_checksum(&mut self, pseudo_header: Sum) {
        self.set_checksum(0);
        self.set_checksum(pseudo_header.add_bytes(self.as_bytes()).checksum());
    }
}

impl<T: AsRef<[u8]>> fmt::Display for TcpHeader<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (source, destination) = (self.source_port(), self.destination_port());
        let (flags, sequence) = (self.flags(), self.sequence());
        write!(formatter, "TCP {source} > {destination} {flags} sequence {sequence}")?;
        if flags.contains(TcpFlags::ACK) {
            write!(formatter, " acknowledgment {}", self.acknowledgment())?;
        }
        write!(formatter, " window {}", self.window())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_round_trip() {
        let mut bytes = [0u8; 26];
        bytes[DATA_OFFSET] = 6 << 4;
        let mut tcp = TcpHeader::new_checked(&mut bytes).unwrap();
        tcp.set_source_port(1024);
        tcp.set_destination_port(80);
        tcp.set_sequence(0x0102_0304);
        tcp.set_acknowledgment(7);
        tcp.set_flags(TcpFlags::SYN | TcpFlags::ACK);
        tcp.set_window(512);
        tcp.set_urgent(9);
        tcp.fill_checksum(Sum::new());
        assert_eq!((tcp.source_port(), tcp.destination_port(), tcp.urgent()), (1024, 80, 9));
        assert_eq!((tcp.options().len(), tcp.payload().len()), (4, 2));
        assert_eq!(Sum::new().add_bytes(tcp.as_bytes()).checksum(), 0);
        let text = "TCP 1024 > 80 SYN|ACK sequence 16909060 acknowledgment 7 window 512";
        assert_eq!(tcp.to_string(), text);
    }

    #[test]
    fn incomplete_headers_are_refused() {
        assert!(matches!(TcpHeader::new_checked([0; 19]), Err(HeaderError::TooShort { .. })));
        let mut bytes = [0u8; 20];
        assert!(matches!(TcpHeader::new_checked(bytes), Err(HeaderError::Invalid { .. })));
        bytes[DATA_OFFSET] = 0x60;
        assert!(matches!(TcpHeader::new_checked(bytes), Err(HeaderError::TooShort { .. })));
    }

    #[test]
    fn flags_have_names() {
        assert_eq!(TcpFlags::default().to_string(), "none");
        assert_eq!(TcpFlags::from_bits(0xff).to_string(), "FIN|SYN|RST|PSH|ACK|URG|ECE|CWR");
    }
}
