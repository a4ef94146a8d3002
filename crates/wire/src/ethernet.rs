//! The Ethernet header, IEEE 802.3 clause 3.2, without preamble and FCS.

use std::fmt;
use std::ops::Range;

use crate::MacAddress;
use crate::bytes::{get_array, get_rest, get_u16, set_array, set_u16};
use crate::view::{HeaderError, header_view, require};

const DESTINATION: Range<usize> = 0..6;
const SOURCE: Range<usize> = 6..12;
const ETHERTYPE: Range<usize> = 12..14;

/// Length of the header, in bytes.
pub const ETHERNET_BYTES: usize = 14;

header_view! {
    /// View of an Ethernet frame.
    EthernetHeader
}

impl<T: AsRef<[u8]>> EthernetHeader<T> {
    /// The view, if the header is complete.
    ///
    /// # Errors
    ///
    /// Fewer than 14 bytes.
    pub fn new_checked(bytes: T) -> Result<Self, HeaderError> {
        require(bytes.as_ref(), ETHERNET_BYTES, "Ethernet")?;
        Ok(Self(bytes))
    }

    /// Destination address.
    pub fn destination(&self) -> MacAddress {
        MacAddress(get_array(self.as_bytes(), DESTINATION))
    }

    /// Source address.
    pub fn source(&self) -> MacAddress {
        MacAddress(get_array(self.as_bytes(), SOURCE))
    }

    /// EtherType of what follows; below 0x0600 the length of an 802.3 frame.
    pub fn ethertype(&self) -> u16 {
        get_u16(self.as_bytes(), ETHERTYPE)
    }

    /// What follows the header, with padding.
    pub fn payload(&self) -> &[u8] {
        get_rest(self.as_bytes(), ETHERNET_BYTES)
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> EthernetHeader<T> {
    /// Sets the destination address.
    pub fn set_destination(&mut self, address: MacAddress) {
        set_array(self.0.as_mut(), DESTINATION, address.0);
    }

    /// Sets the source address.
    pub fn set_source(&mut self, address: MacAddress) {
        set_array(self.0.as_mut(), SOURCE, address.0);
    }

    /// Sets the EtherType.
    pub fn set_ethertype(&mut self, ethertype: u16) {
        set_u16(self.0.as_mut(), ETHERTYPE, ethertype);
    }

    /// Exchanges source and destination address, as a reflector does.
    pub fn swap_addresses(&mut self) {
        let (source, destination) = (self.source(), self.destination());
        self.set_source(destination);
        self.set_destination(source);
    }
}

impl<T: AsRef<[u8]>> fmt::Display for EthernetHeader<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (source, destination) = (self.source(), self.destination());
        write!(formatter, "Ethernet {source} > {destination} type 0x{:04x}", self.ethertype())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_round_trip() {
        let mut bytes = [0u8; 16];
        let mut ethernet = EthernetHeader::new_checked(&mut bytes).unwrap();
        ethernet.set_destination(MacAddress([1, 2, 3, 4, 5, 6]));
        ethernet.set_source(MacAddress([7, 8, 9, 10, 11, 12]));
        ethernet.set_ethertype(0x86dd);
        assert_eq!(ethernet.payload(), [0, 0]);
        let text = "Ethernet 07:08:09:0a:0b:0c > 01:02:03:04:05:06 type 0x86dd";
        assert_eq!(ethernet.to_string(), text);
        ethernet.swap_addresses();
        assert_eq!(bytes, [7, 8, 9, 10, 11, 12, 1, 2, 3, 4, 5, 6, 0x86, 0xdd, 0, 0]);
    }

    #[test]
    fn incomplete_headers_are_refused() {
        let error = EthernetHeader::new_checked([0; 13]).unwrap_err();
        assert!(error.to_string().contains("needs 14 bytes, 13 are there"), "{error}");
    }
}
