//! The IPv6 header, RFC 8200 section 3, and its extension headers, section 4.

mod extension;

use std::fmt;
use std::net::Ipv6Addr;
use std::ops::Range;

pub use extension::{Extension, Extensions, FragmentField};

use crate::bytes::{get_array, get_rest, get_u8, get_u16, get_u32};
use crate::bytes::{set_array, set_u8, set_u16, set_u32};
use crate::checksum::{Sum, pseudo_header_v6};
use crate::view::{HeaderError, header_view, require};

const VERSION_CLASS_LABEL: Range<usize> = 0..4;
const PAYLOAD_BYTES: Range<usize> = 4..6;
const NEXT_HEADER: usize = 6;
const HOP_LIMIT: usize = 7;
const SOURCE: Range<usize> = 8..24;
const DESTINATION: Range<usize> = 24..40;

const TRAFFIC_CLASS: u32 = 0x0ff0_0000;
const FLOW_LABEL: u32 = 0x000f_ffff;

/// Length of the fixed header, in bytes.
pub const IPV6_BYTES: usize = 40;

header_view! {
    /// View of an IPv6 packet.
    Ipv6Header
}

impl<T: AsRef<[u8]>> Ipv6Header<T> {
    /// The view, if the fixed header is complete.
    ///
    /// # Errors
    ///
    /// Fewer than 40 bytes, or another version than 6.
    pub fn new_checked(bytes: T) -> Result<Self, HeaderError> {
        require(bytes.as_ref(), IPV6_BYTES, "IPv6")?;
        let version = u32::from(get_u8(bytes.as_ref(), 0) >> 4);
        if version != 6 {
            let field = "version";
            return Err(HeaderError::Invalid { header: "IPv6", field, value: version });
        }
        Ok(Self(bytes))
    }

    /// Traffic class: DSCP (6 bits, RFC 2474) and ECN (2 bits, RFC 3168).
    pub fn traffic_class(&self) -> u8 {
        (get_u32(self.as_bytes(), VERSION_CLASS_LABEL) >> 20) as u8
    }

    /// Flow label, 20 bits.
    pub fn flow_label(&self) -> u32 {
        get_u32(self.as_bytes(), VERSION_CLASS_LABEL) & FLOW_LABEL
    }

    /// Length of what follows the fixed header; 0 for a jumbogram (RFC 2675).
    pub fn payload_bytes(&self) -> u16 {
        get_u16(self.as_bytes(), PAYLOAD_BYTES)
    }

    /// Number of the header that follows: an extension or the protocol.
    pub fn next_header(&self) -> u8 {
        get_u8(self.as_bytes(), NEXT_HEADER)
    }

    /// Hop limit.
    pub fn hop_limit(&self) -> u8 {
        get_u8(self.as_bytes(), HOP_LIMIT)
    }

    /// Source address.
    pub fn source(&self) -> Ipv6Addr {
        get_array(self.as_bytes(), SOURCE).into()
    }

    /// Destination address; with a routing header not always the final one.
    pub fn destination(&self) -> Ipv6Addr {
        get_array(self.as_bytes(), DESTINATION).into()
    }

    /// What follows the fixed header, to the end by the payload length or of
    /// the buffer.
    pub fn payload(&self) -> &[u8] {
        let rest = get_rest(self.as_bytes(), IPV6_BYTES);
        rest.get(..usize::from(self.payload_bytes())).unwrap_or(rest)
    }

    /// The extension headers in their order.
    pub fn extensions(&self) -> Extensions<'_> {
        Extensions::new(self.next_header(), self.payload())
    }

    /// Sum of the pseudo header for `protocol` with `length_bytes` of transport
    /// header and payload.
    pub fn pseudo_header(&self, protocol: u8, length_bytes: u32) -> Sum {
        let (source, destination) = (self.source().octets(), self.destination().octets());
        pseudo_header_v6(source, destination, protocol, length_bytes)
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Ipv6Header<T> {
    /// The view of a new header; all fields but the version are 0.
    ///
    /// # Errors
    ///
    /// Fewer than 40 bytes.
    pub fn new_zeroed(mut bytes: T) -> Result<Self, HeaderError> {
        require(bytes.as_ref(), IPV6_BYTES, "IPv6")?;
        set_array(bytes.as_mut(), 0..IPV6_BYTES, [0; IPV6_BYTES]);
        set_u8(bytes.as_mut(), 0, 6 << 4);
        Ok(Self(bytes))
    }

    /// Sets the traffic class.
    pub fn set_traffic_class(&mut self, class: u8) {
        self.set_bits(TRAFFIC_CLASS, u32::from(class) << 20);
    }

    /// Sets the flow label from the low 20 bits.
    pub fn set_flow_label(&mut self, label: u32) {
        self.set_bits(FLOW_LABEL, label);
    }

    /// Sets the length of what follows the fixed header.
    pub fn set_payload_bytes(&mut self, bytes: u16) {
        set_u16(self.0.as_mut(), PAYLOAD_BYTES, bytes);
    }

    /// Sets the number of the header that follows.
    pub fn set_next_header(&mut self, number: u8) {
        set_u8(self.0.as_mut(), NEXT_HEADER, number);
    }

    /// Sets the hop limit.
    pub fn set_hop_limit(&mut self, limit: u8) {
        set_u8(self.0.as_mut(), HOP_LIMIT, limit);
    }

    /// Sets the source address.
    pub fn set_source(&mut self, address: Ipv6Addr) {
        set_array(self.0.as_mut(), SOURCE, address.octets());
    }

    /// Sets the destination address.
    pub fn set_destination(&mut self, address: Ipv6Addr) {
        set_array(self.0.as_mut(), DESTINATION, address.octets());
    }

    fn set_bits(&mut self, mask: u32, bits: u32) {
        let field = get_u32(self.as_bytes(), VERSION_CLASS_LABEL) & !mask | bits & mask;
        set_u32(self.0.as_mut(), VERSION_CLASS_LABEL, field);
    }
}

impl<T: AsRef<[u8]>> fmt::Display for Ipv6Header<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (source, destination) = (self.source(), self.destination());
        let (next, limit) = (self.next_header(), self.hop_limit());
        write!(formatter, "IPv6 {source} > {destination} next {next} hop limit {limit}")?;
        write!(formatter, " length {}", self.payload_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_round_trip() {
        let mut bytes = [0xff; 44];
        let mut ip = Ipv6Header::new_zeroed(&mut bytes).unwrap();
        ip.set_traffic_class(0xb8);
        ip.set_flow_label(0xfff1_2345);
        ip.set_payload_bytes(3);
        ip.set_next_header(17);
        ip.set_hop_limit(64);
        ip.set_source("2001:2::1".parse().unwrap());
        ip.set_destination("2001:2::2".parse().unwrap());
        let ip = Ipv6Header::new_checked(bytes).unwrap();
        assert_eq!((ip.traffic_class(), ip.flow_label()), (0xb8, 0x12345));
        assert_eq!(ip.payload(), [0xff; 3]);
        assert_eq!(ip.extensions().count(), 0);
        assert_eq!(ip.to_string(), "IPv6 2001:2::1 > 2001:2::2 next 17 hop limit 64 length 3");
    }

    #[test]
    fn other_bytes_are_refused() {
        assert!(matches!(Ipv6Header::new_checked([0; 39]), Err(HeaderError::TooShort { .. })));
        assert!(matches!(Ipv6Header::new_checked([0x45; 40]), Err(HeaderError::Invalid { .. })));
    }
}
