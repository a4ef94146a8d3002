//! The VLAN tag, IEEE 802.1Q clause 9.6, from behind its tag protocol identifier.
//!
//! The identifier (0x8100, 0x88a8, 0x9100) stands in the EtherType field of the
//! header before; the tag's last field is the EtherType of what follows.

use std::fmt;
use std::ops::Range;

use crate::bytes::{get_rest, get_u16, set_u16};
use crate::view::{HeaderError, header_view, require};

const CONTROL: Range<usize> = 0..2;
const ETHERTYPE: Range<usize> = 2..4;

/// Length of a tag, in bytes.
pub const VLAN_BYTES: usize = 4;

header_view! {
    /// View of a VLAN tag behind its tag protocol identifier.
    VlanHeader
}

impl<T: AsRef<[u8]>> VlanHeader<T> {
    /// The view, if the tag is complete.
    ///
    /// # Errors
    ///
    /// Fewer than 4 bytes.
    pub fn new_checked(bytes: T) -> Result<Self, HeaderError> {
        require(bytes.as_ref(), VLAN_BYTES, "VLAN")?;
        Ok(Self(bytes))
    }

    /// Tag control information: all three fields below.
    pub fn control(&self) -> u16 {
        get_u16(self.as_bytes(), CONTROL)
    }

    /// Priority code point, 0 to 7.
    pub fn priority(&self) -> u8 {
        (self.control() >> 13) as u8
    }

    /// Drop eligible indicator.
    pub fn drop_eligible(&self) -> bool {
        self.control() & 0x1000 != 0
    }

    /// VLAN id, 0 to 4095.
    pub fn id(&self) -> u16 {
        self.control() & 0x0fff
    }

    /// EtherType of what follows.
    pub fn ethertype(&self) -> u16 {
        get_u16(self.as_bytes(), ETHERTYPE)
    }

    /// What follows the tag.
    pub fn payload(&self) -> &[u8] {
        get_rest(self.as_bytes(), VLAN_BYTES)
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> VlanHeader<T> {
    /// Sets the tag control information.
    pub fn set_control(&mut self, control: u16) {
        set_u16(self.0.as_mut(), CONTROL, control);
    }

    /// Sets the priority from the low 3 bits.
    pub fn set_priority(&mut self, priority: u8) {
        self.set_control(self.control() & 0x1fff | u16::from(priority) << 13);
    }

    /// Sets the drop eligible indicator.
    pub fn set_drop_eligible(&mut self, eligible: bool) {
        self.set_control(self.control() & 0xefff | u16::from(eligible) << 12);
    }

    /// Sets the VLAN id from the low 12 bits.
    pub fn set_id(&mut self, id: u16) {
        self.set_control(self.control() & 0xf000 | id & 0x0fff);
    }

    /// Sets the EtherType of what follows.
    pub fn set_ethertype(&mut self, ethertype: u16) {
        set_u16(self.0.as_mut(), ETHERTYPE, ethertype);
    }
}

impl<T: AsRef<[u8]>> fmt::Display for VlanHeader<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "VLAN {} priority {}", self.id(), self.priority())?;
        if self.drop_eligible() {
            formatter.write_str(" drop eligible")?;
        }
        write!(formatter, " type 0x{:04x}", self.ethertype())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_round_trip() {
        let mut bytes = [0u8; 5];
        let mut vlan = VlanHeader::new_checked(&mut bytes).unwrap();
        vlan.set_id(0xf123);
        vlan.set_priority(5);
        vlan.set_drop_eligible(true);
        vlan.set_ethertype(0x0800);
        assert_eq!(vlan.payload(), [0]);
        assert_eq!(vlan.to_string(), "VLAN 291 priority 5 drop eligible type 0x0800");
        vlan.set_drop_eligible(false);
        assert_eq!((vlan.id(), vlan.priority(), vlan.drop_eligible()), (0x123, 5, false));
        assert_eq!(bytes, [0xa1, 0x23, 8, 0, 0]);
    }

    #[test]
    fn incomplete_headers_are_refused() {
        assert!(VlanHeader::new_checked([0; 3]).is_err());
    }
}
