//! The MPLS label stack entry, RFC 3032 section 2.1.

use std::fmt;
use std::ops::Range;

use crate::bytes::{get_rest, get_u32, set_u32};
use crate::view::{HeaderError, header_view, require};

const ENTRY: Range<usize> = 0..4;

/// Length of an entry, in bytes.
pub const MPLS_BYTES: usize = 4;

header_view! {
    /// View of one label stack entry.
    MplsHeader
}

impl<T: AsRef<[u8]>> MplsHeader<T> {
    /// The view, if the entry is complete.
    ///
    /// # Errors
    ///
    /// Fewer than 4 bytes.
    pub fn new_checked(bytes: T) -> Result<Self, HeaderError> {
        require(bytes.as_ref(), MPLS_BYTES, "MPLS")?;
        Ok(Self(bytes))
    }

    /// Label, 0 to 1048575.
    pub fn label(&self) -> u32 {
        self.entry() >> 12
    }

    /// Traffic class, 0 to 7 (RFC 5462).
    pub fn traffic_class(&self) -> u8 {
        (self.entry() >> 9 & 7) as u8
    }

    /// Whether this is the last entry of the stack.
    pub fn is_bottom(&self) -> bool {
        self.entry() & 0x100 != 0
    }

    /// Time to live.
    pub fn ttl(&self) -> u8 {
        self.entry() as u8
    }

    /// What follows: the next entry or, behind the bottom, the labelled packet.
    pub fn payload(&self) -> &[u8] {
        get_rest(self.as_bytes(), MPLS_BYTES)
    }

    fn entry(&self) -> u32 {
        get_u32(self.as_bytes(), ENTRY)
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> MplsHeader<T> {
    /// Sets the label from the low 20 bits.
    pub fn set_label(&mut self, label: u32) {
        self.set_bits(0xffff_f000, label << 12);
    }

    /// Sets the traffic class from the low 3 bits.
    pub fn set_traffic_class(&mut self, class: u8) {
        self.set_bits(0x0e00, u32::from(class) << 9);
    }

    /// Sets whether this is the last entry of the stack.
    pub fn set_bottom(&mut self, bottom: bool) {
        self.set_bits(0x0100, u32::from(bottom) << 8);
    }

    /// Sets the time to live.
    pub fn set_ttl(&mut self, ttl: u8) {
        self.set_bits(0x00ff, u32::from(ttl));
    }

    fn set_bits(&mut self, mask: u32, bits: u32) {
        let entry = self.entry() & !mask | bits & mask;
        set_u32(self.0.as_mut(), ENTRY, entry);
    }
}

impl<T: AsRef<[u8]>> fmt::Display for MplsHeader<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "MPLS label {} class {}", self.label(), self.traffic_class())?;
        write!(formatter, " ttl {}", self.ttl())?;
        if self.is_bottom() { formatter.write_str(" bottom") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_round_trip() {
        let mut bytes = [0xff; 5];
        let mut mpls = MplsHeader::new_checked(&mut bytes).unwrap();
        mpls.set_label(0x12345);
        mpls.set_traffic_class(0xfa);
        mpls.set_bottom(true);
        mpls.set_ttl(64);
        assert_eq!(mpls.to_string(), "MPLS label 74565 class 2 ttl 64 bottom");
        assert_eq!(mpls.payload(), [0xff]);
        mpls.set_bottom(false);
        assert!(!mpls.is_bottom());
        assert_eq!(bytes, [0x12, 0x34, 0x54, 64, 0xff]);
    }

    #[test]
    fn incomplete_headers_are_refused() {
        assert!(MplsHeader::new_checked([0; 3]).is_err());
    }
}
