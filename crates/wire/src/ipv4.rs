//! The IPv4 header, RFC 791 section 3.1.

use std::fmt;
use std::net::Ipv4Addr;
use std::ops::Range;

use crate::bytes::{get_array, get_u8, get_u16, set_array, set_u8, set_u16};
use crate::checksum::{Sum, checksum, pseudo_header_v4};
use crate::view::{HeaderError, header_view, require};

const VERSION_AND_LENGTH: usize = 0;
const TOS: usize = 1;
const TOTAL_BYTES: Range<usize> = 2..4;
const ID: Range<usize> = 4..6;
const FRAGMENT: Range<usize> = 6..8;
const TTL: usize = 8;
const PROTOCOL: usize = 9;
const CHECKSUM: Range<usize> = 10..12;
const SOURCE: Range<usize> = 12..16;
const DESTINATION: Range<usize> = 16..20;

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const FRAGMENT_OFFSET: u16 = 0x1fff;

/// Length without options, in bytes.
pub const IPV4_BYTES: usize = 20;

header_view! {
    /// View of an IPv4 packet.
    Ipv4Header
}

impl<T: AsRef<[u8]>> Ipv4Header<T> {
    /// The view, if header and options are complete.
    ///
    /// # Errors
    ///
    /// Too few bytes, another version than 4, or a header length below 20 bytes.
    pub fn new_checked(bytes: T) -> Result<Self, HeaderError> {
        require(bytes.as_ref(), IPV4_BYTES, "IPv4")?;
        let view = Self(bytes);
        let invalid = |field, value| HeaderError::Invalid { header: "IPv4", field, value };
        let first = get_u8(view.as_bytes(), VERSION_AND_LENGTH);
        if first >> 4 != 4 {
            return Err(invalid("version", u32::from(first >> 4)));
        }
        if view.header_bytes() < IPV4_BYTES {
            return Err(invalid("header length in words", u32::from(first & 0x0f)));
        }
        require(view.as_bytes(), view.header_bytes(), "IPv4")?;
        Ok(view)
    }

    /// Length with options.
    pub fn header_bytes(&self) -> usize {
        usize::from(get_u8(self.as_bytes(), VERSION_AND_LENGTH) & 0x0f) * 4
    }

    /// The former type of service byte: DSCP (6 bits, RFC 2474) and ECN (2 bits, RFC 3168).
    pub fn tos(&self) -> u8 {
        get_u8(self.as_bytes(), TOS)
    }

    /// Length of header and payload.
    pub fn total_bytes(&self) -> u16 {
        get_u16(self.as_bytes(), TOTAL_BYTES)
    }

    /// Identification, by which fragments find each other.
    pub fn id(&self) -> u16 {
        get_u16(self.as_bytes(), ID)
    }

    /// The flag «don't fragment».
    pub fn dont_fragment(&self) -> bool {
        get_u16(self.as_bytes(), FRAGMENT) & DONT_FRAGMENT != 0
    }

    /// The flag «more fragments».
    pub fn more_fragments(&self) -> bool {
        get_u16(self.as_bytes(), FRAGMENT) & MORE_FRAGMENTS != 0
    }

    /// Where in the whole payload this fragment begins, in bytes.
    pub fn fragment_offset_bytes(&self) -> usize {
        usize::from(get_u16(self.as_bytes(), FRAGMENT) & FRAGMENT_OFFSET) * 8
    }

    /// Time to live.
    pub fn ttl(&self) -> u8 {
        get_u8(self.as_bytes(), TTL)
    }

    /// Protocol of the payload.
    pub fn protocol(&self) -> u8 {
        get_u8(self.as_bytes(), PROTOCOL)
    }

    /// Checksum of the header.
    pub fn checksum(&self) -> u16 {
        get_u16(self.as_bytes(), CHECKSUM)
    }

    /// Whether the checksum matches the header.
    pub fn is_checksum_valid(&self) -> bool {
        self.as_bytes().get(..self.header_bytes()).is_some_and(|header| checksum(header) == 0)
    }

    /// Source address.
    pub fn source(&self) -> Ipv4Addr {
        get_array(self.as_bytes(), SOURCE).into()
    }

    /// Destination address.
    pub fn destination(&self) -> Ipv4Addr {
        get_array(self.as_bytes(), DESTINATION).into()
    }

    /// Options with their padding.
    pub fn options(&self) -> &[u8] {
        self.as_bytes().get(IPV4_BYTES..self.header_bytes()).unwrap_or_default()
    }

    /// What follows the header, to the end by the total length or of the buffer.
    pub fn payload(&self) -> &[u8] {
        let end = usize::from(self.total_bytes()).min(self.as_bytes().len());
        self.as_bytes().get(self.header_bytes()..end).unwrap_or_default()
    }

    /// Sum of the pseudo header for a transport header and payload of `length_bytes`.
    pub fn pseudo_header(&self, length_bytes: u16) -> Sum {
        let (source, destination) = (self.source().octets(), self.destination().octets());
        pseudo_header_v4(source, destination, self.protocol(), length_bytes)
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Ipv4Header<T> {
    /// The view of a new header without options; all fields but version and
    /// header length are 0.
    ///
    /// # Errors
    ///
    /// Fewer than 20 bytes.
    pub fn new_zeroed(mut bytes: T) -> Result<Self, HeaderError> {
        require(bytes.as_ref(), IPV4_BYTES, "IPv4")?;
        set_array(bytes.as_mut(), 0..IPV4_BYTES, [0; IPV4_BYTES]);
        set_u8(bytes.as_mut(), VERSION_AND_LENGTH, 0x45);
        Ok(Self(bytes))
    }

    /// Sets the former type of service byte.
    pub fn set_tos(&mut self, tos: u8) {
        set_u8(self.0.as_mut(), TOS, tos);
    }

    /// Sets the length of header and payload.
    pub fn set_total_bytes(&mut self, bytes: u16) {
        set_u16(self.0.as_mut(), TOTAL_BYTES, bytes);
    }

    /// Sets the identification.
    pub fn set_id(&mut self, id: u16) {
        set_u16(self.0.as_mut(), ID, id);
    }

    /// Sets the flag «don't fragment».
    pub fn set_dont_fragment(&mut self, value: bool) {
        self.set_fragment(DONT_FRAGMENT, if value { DONT_FRAGMENT } else { 0 });
    }

    /// Sets the flag «more fragments».
    pub fn set_more_fragments(&mut self, value: bool) {
        self.set_fragment(MORE_FRAGMENTS, if value { MORE_FRAGMENTS } else { 0 });
    }

    /// Sets where the fragment begins; the offset is rounded down to 8 bytes.
    pub fn set_fragment_offset_bytes(&mut self, offset_bytes: u16) {
        self.set_fragment(FRAGMENT_OFFSET, offset_bytes / 8);
    }

    /// Sets the time to live.
    pub fn set_ttl(&mut self, ttl: u8) {
        set_u8(self.0.as_mut(), TTL, ttl);
    }

    /// Sets the protocol of the payload.
    pub fn set_protocol(&mut self, protocol: u8) {
        set_u8(self.0.as_mut(), PROTOCOL, protocol);
    }

    /// Sets the checksum field.
    pub fn set_checksum(&mut self, checksum: u16) {
        set_u16(self.0.as_mut(), CHECKSUM, checksum);
    }

    /// Sets the source address.
    pub fn set_source(&mut self, address: Ipv4Addr) {
        set_array(self.0.as_mut(), SOURCE, address.octets());
    }

    /// Sets the destination address.
    pub fn set_destination(&mut self, address: Ipv4Addr) {
        set_array(self.0.as_mut(), DESTINATION, address.octets());
    }

    /// Computes the checksum over the header and sets it.
    pub fn fill_checksum(&mut self) {
        self.set_checksum(0);
        let header = self.as_bytes().get(..self.header_bytes()).unwrap_or_default();
        self.set_checksum(checksum(header));
    }

    fn set_fragment(&mut self, mask: u16, bits: u16) {
        let field = get_u16(self.as_bytes(), FRAGMENT) & !mask | bits & mask;
        set_u16(self.0.as_mut(), FRAGMENT, field);
    }
}

impl<T: AsRef<[u8]>> fmt::Display for Ipv4Header<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (source, destination) = (self.source(), self.destination());
        let (protocol, ttl) = (self.protocol(), self.ttl());
        write!(formatter, "IPv4 {source} > {destination} protocol {protocol} ttl {ttl}")?;
        write!(formatter, " length {}", self.total_bytes())?;
        if self.more_fragments() || self.fragment_offset_bytes() > 0 {
            write!(formatter, " fragment {} at {}", self.id(), self.fragment_offset_bytes())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_round_trip() {
        let mut bytes = [0xff; 26];
        let mut ip = Ipv4Header::new_zeroed(&mut bytes).unwrap();
        ip.set_tos(0xb8);
        ip.set_total_bytes(24);
        ip.set_id(77);
        ip.set_dont_fragment(true);
        ip.set_ttl(64);
        ip.set_protocol(17);
        ip.set_source(Ipv4Addr::new(10, 0, 0, 1));
        ip.set_destination(Ipv4Addr::new(10, 0, 0, 2));
        ip.fill_checksum();
        assert!(ip.is_checksum_valid());
        assert_eq!((ip.tos(), ip.dont_fragment(), ip.more_fragments()), (0xb8, true, false));
        assert_eq!((ip.options().len(), ip.payload()), (0, &[0xff; 4][..]));
        assert_eq!(ip.to_string(), "IPv4 10.0.0.1 > 10.0.0.2 protocol 17 ttl 64 length 24");
        ip.set_more_fragments(true);
        ip.set_fragment_offset_bytes(1480);
        ip.set_dont_fragment(false);
        assert!(ip.to_string().ends_with(" fragment 77 at 1480"), "{ip}");
        assert!(!ip.is_checksum_valid());
        assert!(ip.more_fragments() && !ip.dont_fragment());
    }

    #[test]
    fn other_bytes_are_refused() {
        assert!(matches!(Ipv4Header::new_checked([0; 19]), Err(HeaderError::TooShort { .. })));
        for (first, field) in [(0x65, "version"), (0x44, "header length in words")] {
            let mut bytes = [0; 20];
            bytes[0] = first;
            match Ipv4Header::new_checked(bytes) {
                Err(HeaderError::Invalid { field: named, .. }) => assert_eq!(named, field),
                other => panic!("{other:?}"),
            }
        }
        let mut bytes = [0; 20];
        bytes[0] = 0x46;
        assert!(matches!(Ipv4Header::new_checked(bytes), Err(HeaderError::TooShort { .. })));
    }
}
