//! The ARP packet for IPv4 over Ethernet, RFC 826.
//!
//! Limits: other hardware and protocol addresses are refused; `parse` measures
//! them, though.

use std::fmt;
use std::net::Ipv4Addr;
use std::ops::Range;

use crate::bytes::{get_array, get_u16, set_array, set_u16};
use crate::view::{HeaderError, header_view, require};
use crate::{MacAddress, ethertype};

const HARDWARE_TYPE: Range<usize> = 0..2;
const PROTOCOL_TYPE: Range<usize> = 2..4;
const ADDRESS_BYTES: Range<usize> = 4..6;
const OPERATION: Range<usize> = 6..8;
const SENDER_MAC: Range<usize> = 8..14;
const SENDER: Range<usize> = 14..18;
const TARGET_MAC: Range<usize> = 18..24;
const TARGET: Range<usize> = 24..28;

/// Length of the packet, in bytes.
pub const ARP_BYTES: usize = 28;

/// Operation: who has this address?
pub const REQUEST: u16 = 1;
/// Operation: I have.
pub const REPLY: u16 = 2;

/// Hardware type of Ethernet.
const HARDWARE_ETHERNET: u16 = 1;
/// 6 bytes of MAC address, 4 of IPv4 address.
const MAC_AND_IPV4: u16 = 0x0604;

header_view! {
    /// View of an ARP packet for IPv4 over Ethernet.
    ArpHeader
}

impl<T: AsRef<[u8]>> ArpHeader<T> {
    /// The view, if the packet is complete.
    ///
    /// # Errors
    ///
    /// Fewer than 28 bytes, or ARP for anything but IPv4 over Ethernet.
    pub fn new_checked(bytes: T) -> Result<Self, HeaderError> {
        require(bytes.as_ref(), ARP_BYTES, "ARP")?;
        let view = Self(bytes);
        let fixed = [
            ("hardware type", HARDWARE_TYPE, HARDWARE_ETHERNET),
            ("protocol type", PROTOCOL_TYPE, ethertype::IPV4),
            ("address lengths", ADDRESS_BYTES, MAC_AND_IPV4),
        ];
        for (field, range, expected) in fixed {
            let value = get_u16(view.as_bytes(), range);
            if value != expected {
                let value = u32::from(value);
                return Err(HeaderError::Invalid { header: "ARP", field, value });
            }
        }
        Ok(view)
    }

    /// [`REQUEST`], [`REPLY`] or another operation.
    pub fn operation(&self) -> u16 {
        get_u16(self.as_bytes(), OPERATION)
    }

    /// MAC address of the sender.
    pub fn sender_mac(&self) -> MacAddress {
        MacAddress(get_array(self.as_bytes(), SENDER_MAC))
    }

    /// IPv4 address of the sender.
    pub fn sender(&self) -> Ipv4Addr {
        get_array(self.as_bytes(), SENDER).into()
    }

    /// MAC address of the target; without meaning in a request.
    pub fn target_mac(&self) -> MacAddress {
        MacAddress(get_array(self.as_bytes(), TARGET_MAC))
    }

    /// IPv4 address of the target.
    pub fn target(&self) -> Ipv4Addr {
        get_array(self.as_bytes(), TARGET).into()
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> ArpHeader<T> {
    /// The view of a new packet for IPv4 over Ethernet; all its other fields are 0.
    ///
    /// # Errors
    ///
    /// Fewer than 28 bytes.
    pub fn new_zeroed(mut bytes: T) -> Result<Self, HeaderError> {
        require(bytes.as_ref(), ARP_BYTES, "ARP")?;
        let buffer = bytes.as_mut();
        set_array(buffer, 0..ARP_BYTES, [0; ARP_BYTES]);
        set_u16(buffer, HARDWARE_TYPE, HARDWARE_ETHERNET);
        set_u16(buffer, PROTOCOL_TYPE, ethertype::IPV4);
        set_u16(buffer, ADDRESS_BYTES, MAC_AND_IPV4);
        Ok(Self(bytes))
    }

    /// Sets the operation.
    pub fn set_operation(&mut self, operation: u16) {
        set_u16(self.0.as_mut(), OPERATION, operation);
    }

    /// Sets the MAC address of the sender.
    pub fn set_sender_mac(&mut self, address: MacAddress) {
        set_array(self.0.as_mut(), SENDER_MAC, address.0);
    }

    /// Sets the IPv4 address of the sender.
    pub fn set_sender(&mut self, address: Ipv4Addr) {
        set_array(self.0.as_mut(), SENDER, address.octets());
    }

    /// Sets the MAC address of the target.
    pub fn set_target_mac(&mut self, address: MacAddress) {
        set_array(self.0.as_mut(), TARGET_MAC, address.0);
    }

    /// Sets the IPv4 address of the target.
    pub fn set_target(&mut self, address: Ipv4Addr) {
        set_array(self.0.as_mut(), TARGET, address.octets());
    }
}

impl<T: AsRef<[u8]>> fmt::Display for ArpHeader<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sender, target) = (self.sender(), self.target());
        match self.operation() {
            REQUEST => write!(formatter, "ARP who has {target}? tell {sender}"),
            REPLY => write!(formatter, "ARP {sender} is at {}", self.sender_mac()),
            other => write!(formatter, "ARP operation {other} {sender} > {target}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_round_trip() {
        let mut bytes = [0xff; ARP_BYTES];
        let mut arp = ArpHeader::new_zeroed(&mut bytes).unwrap();
        arp.set_operation(REPLY);
        arp.set_sender_mac(MacAddress([2, 0, 0, 0, 0, 1]));
        arp.set_sender(Ipv4Addr::new(10, 0, 0, 1));
        arp.set_target_mac(MacAddress([2, 0, 0, 0, 0, 2]));
        arp.set_target(Ipv4Addr::new(10, 0, 0, 2));
        let mut arp = ArpHeader::new_checked(bytes).unwrap();
        assert_eq!(arp.sender_mac(), MacAddress([2, 0, 0, 0, 0, 1]));
        assert_eq!(arp.target_mac(), MacAddress([2, 0, 0, 0, 0, 2]));
        assert_eq!(arp.to_string(), "ARP 10.0.0.1 is at 02:00:00:00:00:01");
        arp.set_operation(REQUEST);
        assert_eq!(arp.to_string(), "ARP who has 10.0.0.2? tell 10.0.0.1");
    }

    #[test]
    fn other_address_kinds_are_refused() {
        assert!(matches!(ArpHeader::new_checked([0; 27]), Err(HeaderError::TooShort { .. })));
        let error = ArpHeader::new_checked([0; 28]).unwrap_err();
        assert!(error.to_string().contains("hardware type is 0"), "{error}");
    }
}
