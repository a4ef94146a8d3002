//! A 48-bit Ethernet address and its text forms.

use std::fmt;
use std::str::FromStr;

/// An IEEE 802 MAC address, first byte on the wire first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// ff:ff:ff:ff:ff:ff.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// The address as a number: the first byte is the most significant of 48 bits.
    pub const fn to_u64(self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }

    /// The address of the low 48 bits of `value`.
    pub const fn from_u64(value: u64) -> Self {
        let [_, _, a, b, c, d, e, f] = value.to_be_bytes();
        Self([a, b, c, d, e, f])
    }

    /// Whether the group bit (the lowest of the first byte) is set; true for broadcast.
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// Whether the address is assigned locally rather than by a manufacturer.
    pub const fn is_local(self) -> bool {
        self.0[0] & 2 != 0
    }
}

impl From<[u8; 6]> for MacAddress {
    fn from(bytes: [u8; 6]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, f] = self.0;
        write!(formatter, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
    }
}

/// Text that is not a MAC address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a MAC address: expected six hexadecimal bytes such as 02:00:00:00:00:01")]
pub struct MacAddressError(String);

impl FromStr for MacAddress {
    type Err = MacAddressError;

    /// Six bytes of one or two hexadecimal digits, all separated by `:` or all by `-`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let separator = if text.contains(':') { ':' } else { '-' };
        let mut bytes = [0; 6];
        let mut parts = text.split(separator);
        for byte in &mut bytes {
            *byte = parts.next().and_then(hex_byte).ok_or_else(|| MacAddressError(text.into()))?;
        }
        match parts.next() {
            None => Ok(Self(bytes)),
            Some(_) => Err(MacAddressError(text.into())),
        }
    }
}

fn hex_byte(text: &str) -> Option<u8> {
    let digits_only = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !digits_only || !(1..=2).contains(&text.len()) {
        return None;
    }
    u8::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_forms_round_trip() {
        let address = MacAddress([0x02, 0, 0xab, 0xcd, 0xef, 0x01]);
        assert_eq!(address.to_string(), "02:00:ab:cd:ef:01");
        assert_eq!("02:00:ab:cd:ef:01".parse(), Ok(address));
        assert_eq!("02-00-AB-CD-EF-01".parse(), Ok(address));
        assert_eq!("2:0:ab:cd:ef:1".parse(), Ok(address));
        assert_eq!(MacAddress::from_u64(address.to_u64()), address);
    }

    #[test]
    fn other_text_is_refused() {
        for text in ["", "02", "02:00:00:00:00", "02:00:00:00:00:00:00", "02:00:00:00:00:0g"] {
            assert!(text.parse::<MacAddress>().is_err(), "{text}");
        }
        assert!("02:00:00:00:00:+1".parse::<MacAddress>().is_err());
        assert!("002:00:00:00:00:01".parse::<MacAddress>().is_err());
    }

    #[test]
    fn kinds_of_address() {
        assert!(MacAddress::BROADCAST.is_multicast());
        assert!(MacAddress([0x02, 0, 0, 0, 0, 1]).is_local());
        assert!(!MacAddress([0x00, 0x1b, 0x21, 0, 0, 1]).is_local());
    }
}
