//! How one header field changes from frame to frame, and how people write it.
//!
//! | text | meaning |
//! |---|---|
//! | `10.0.0.1` | this value in every frame |
//! | `10.0.0.1-10.0.0.254` | first to last, both included, then from the first again |
//! | `1000-2000/5` | the same in steps of 5: 1000, 1005, … |
//! | `10.0.0.0/24` | the host addresses of a prefix: 10.0.0.1 to 10.0.0.254 |
//! | `random:1024-65535` | at random, both included |
//! | `random:10.0.0.0/24` | a random host address of a prefix |
//!
//! Integers may be written in hexadecimal (`0x1f4`); steps are plain integers
//! for every type. In ranges of MAC addresses the bytes are separated by `:`.
//!
//! Limits: ranges go upwards; a step and `random:` exclude each other.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use crate::{MacAddress, random};

/// One field over the frames of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field<T> {
    /// The same value in every frame.
    Fixed(T),
    /// `first`, `first + step`, … up to at most `last`, then `first` again.
    Step {
        /// First value.
        first: T,
        /// Largest possible value.
        last: T,
        /// Distance of two values, at least 1.
        step: u64,
    },
    /// Uniformly distributed between `first` and `last`, both included.
    Random {
        /// Smallest value.
        first: T,
        /// Largest value.
        last: T,
    },
}

/// A type that a [`Field`] can hold: an unsigned number with a text form.
pub trait FieldValue: Copy + Ord + fmt::Display {
    /// What a value looks like, for error messages.
    const EXPECTED: &'static str;

    /// Number of bits of an address that can be written as prefix; 0 if the
    /// type has no prefixes.
    const PREFIX_BITS: u32;

    /// The value of `text`.
    fn parse(text: &str) -> Option<Self>;

    /// The value as a number.
    fn to_number(self) -> u128;

    /// The value of a number that is known to fit.
    fn from_number(number: u128) -> Self;

    /// First and last host address of the prefix of `length` bits around `self`.
    fn hosts(self, _length: u32) -> Option<(Self, Self)> {
        None
    }
}

/// Decimal digits, or hexadecimal ones after `0x`; no sign.
fn parse_integer(text: &str) -> Option<u64> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    if digits.starts_with('+') {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()
}

macro_rules! integer_field_value {
    ($type:ty, $expected:literal) => {
        impl FieldValue for $type {
            const EXPECTED: &'static str = $expected;
            const PREFIX_BITS: u32 = 0;

            fn parse(text: &str) -> Option<Self> {
                Self::try_from(parse_integer(text)?).ok()
            }

            fn to_number(self) -> u128 {
                u128::from(self)
            }

            fn from_number(number: u128) -> Self {
                number as Self
            }
        }
    };
}

integer_field_value!(u16, "a number from 0 to 65535");
integer_field_value!(u32, "a number from 0 to 4294967295");

impl FieldValue for MacAddress {
    const EXPECTED: &'static str = "a MAC address such as 02:00:00:00:00:01";
    const PREFIX_BITS: u32 = 0;

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn to_number(self) -> u128 {
        self.to_u64().into()
    }

    fn from_number(number: u128) -> Self {
        Self::from_u64(number as u64)
    }
}

impl FieldValue for Ipv4Addr {
    const EXPECTED: &'static str = "an IPv4 address such as 10.0.0.1";
    const PREFIX_BITS: u32 = 32;

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn to_number(self) -> u128 {
        u32::from(self).into()
    }

    fn from_number(number: u128) -> Self {
        Self::from(number as u32)
    }

    /// Without network and broadcast address, except for /31 (RFC 3021) and /32.
    fn hosts(self, length: u32) -> Option<(Self, Self)> {
        let mask = u32::MAX.checked_shr(length).unwrap_or(0);
        let (network, last) = (u32::from(self) & !mask, u32::from(self) | mask);
        Some(match length {
            0..=30 => (Self::from(network + 1), Self::from(last - 1)),
            31 | 32 => (Self::from(network), Self::from(last)),
            _ => return None,
        })
    }
}

impl FieldValue for Ipv6Addr {
    const EXPECTED: &'static str = "an IPv6 address such as 2001:db8::1";
    const PREFIX_BITS: u32 = 128;

    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn to_number(self) -> u128 {
        self.into()
    }

    fn from_number(number: u128) -> Self {
        Self::from(number)
    }

    /// Without the subnet-router anycast address (RFC 4291 section 2.6.1),
    /// except for /127 (RFC 6164) and /128.
    fn hosts(self, length: u32) -> Option<(Self, Self)> {
        let mask = u128::MAX.checked_shr(length).unwrap_or(0);
        let (network, last) = (u128::from(self) & !mask, u128::from(self) | mask);
        Some(match length {
            0..=126 => (Self::from(network + 1), Self::from(last)),
            127 | 128 => (Self::from(network), Self::from(last)),
            _ => return None,
        })
    }
}

impl<T: FieldValue> Field<T> {
    /// From `first` to `last` in steps of one.
    pub const fn stepping(first: T, last: T) -> Self {
        Self::Step { first, last, step: 1 }
    }

    /// Smallest and largest value that a frame can have.
    pub fn bounds(&self) -> (T, T) {
        match *self {
            Self::Fixed(value) => (value, value),
            Self::Step { first, last, step } => {
                let span = distance(first, last);
                let rest = span.checked_rem(step.into()).unwrap_or(0);
                (first, T::from_number(first.to_number() + span - rest))
            }
            Self::Random { first, last } => (first, last),
        }
    }

    /// Value of frame `index`, counted from 0. `key` matters for random fields only: that
    /// of a template's field is [`Place::key`](super::Place::key).
    pub fn value(&self, key: u64, index: u64) -> T {
        match *self {
            Self::Fixed(value) => value,
            Self::Step { first, last, step } => {
                let (span, step) = (distance(first, last), u128::from(step.max(1)));
                let index = match (span / step).checked_add(1) {
                    Some(count) => u128::from(index) % count,
                    None => u128::from(index),
                };
                T::from_number(first.to_number() + index * step)
            }
            Self::Random { first, last } => {
                let offset = random::at_most_wide(key, index, distance(first, last));
                T::from_number(first.to_number() + offset)
            }
        }
    }
}

/// `last` less `first`, 0 if they are in the wrong order.
pub(super) fn distance<T: FieldValue>(first: T, last: T) -> u128 {
    last.to_number().saturating_sub(first.to_number())
}

impl<T> From<T> for Field<T> {
    fn from(value: T) -> Self {
        Self::Fixed(value)
    }
}

impl<T: FieldValue> fmt::Display for Field<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(value) => write!(formatter, "{value}"),
            Self::Step { first, last, step: 1 } => write!(formatter, "{first}-{last}"),
            Self::Step { first, last, step } => write!(formatter, "{first}-{last}/{step}"),
            Self::Random { first, last } => write!(formatter, "random:{first}-{last}"),
        }
    }
}

/// Text that is not a [`Field`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// No value, range or prefix.
    #[error(
        "{text:?} is not a value: expected {expected}, a range FIRST-LAST, FIRST-LAST/STEP or random:FIRST-LAST"
    )]
    Value {
        /// The part that was not understood.
        text: String,
        /// What a value looks like.
        expected: &'static str,
    },
    /// A range downwards.
    #[error("{text:?} goes downwards: expected a range whose first value is not above its last")]
    Downwards {
        /// The range.
        text: String,
    },
    /// Not a positive integer behind the slash of a range.
    #[error("{text:?} is not a step: expected a number from 1 on")]
    Step {
        /// The part behind the slash.
        text: String,
    },
    /// Not a prefix length behind the slash of an address.
    #[error("{text:?} is not a prefix length: expected a number from 0 to {bits}")]
    PrefixLength {
        /// The part behind the slash.
        text: String,
        /// Largest possible length.
        bits: u32,
    },
    /// `random:` without a range or with a step.
    #[error(
        "{text:?} is no random range: expected random:FIRST-LAST, or random:PREFIX for addresses"
    )]
    Random {
        /// The whole text.
        text: String,
    },
}

impl<T: FieldValue> FromStr for Field<T> {
    type Err = FieldError;

    fn from_str(text: &str) -> Result<Self, FieldError> {
        let text = text.trim();
        let Some(range) = text.strip_prefix("random:") else { return parse_steps(text) };
        match parse_steps(range)? {
            Self::Step { first, last, step: 1 } => Ok(Self::Random { first, last }),
            _ => Err(FieldError::Random { text: text.into() }),
        }
    }
}

/// Everything but `random:`.
fn parse_steps<T: FieldValue>(text: &str) -> Result<Field<T>, FieldError> {
    if let Some(value) = T::parse(text) {
        return Ok(Field::Fixed(value));
    }
    let (values, slash) = match text.split_once('/') {
        Some((values, behind)) => (values, Some(behind)),
        None => (text, None),
    };
    if let Some((first, last)) = values.split_once('-') {
        let (first, last) = (parse_value::<T>(first)?, parse_value::<T>(last)?);
        let step = slash.map_or(Ok(1), parse_step)?;
        if first > last {
            return Err(FieldError::Downwards { text: values.into() });
        }
        return Ok(Field::Step { first, last, step });
    }
    match slash {
        Some(length) if T::PREFIX_BITS > 0 => {
            let error = || FieldError::PrefixLength { text: length.into(), bits: T::PREFIX_BITS };
            let hosts = |bits| parse_value::<T>(values).map(|address| address.hosts(bits));
            let bits = length.parse().map_err(|_| error())?;
            let (first, last) = hosts(bits)?.ok_or_else(error)?;
            Ok(Field::Step { first, last, step: 1 })
        }
        _ => Err(FieldError::Value { text: text.into(), expected: T::EXPECTED }),
    }
}

fn parse_value<T: FieldValue>(text: &str) -> Result<T, FieldError> {
    let text = text.trim();
    T::parse(text).ok_or_else(|| FieldError::Value { text: text.into(), expected: T::EXPECTED })
}

fn parse_step(text: &str) -> Result<u64, FieldError> {
    match parse_integer(text.trim()) {
        Some(step) if step > 0 => Ok(step),
        _ => Err(FieldError::Step { text: text.into() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn v4(text: &str) -> Field<Ipv4Addr> {
        text.parse().unwrap()
    }

    fn step<T>(first: T, last: T, step: u64) -> Field<T> {
        Field::Step { first, last, step }
    }

    #[test]
    fn values_ranges_and_prefixes() {
        let address = |last| Ipv4Addr::new(10, 0, 0, last);
        assert_eq!(v4("10.0.0.1"), Field::Fixed(address(1)));
        assert_eq!(v4("10.0.0.1-10.0.0.9"), step(address(1), address(9), 1));
        assert_eq!(v4("10.0.0.77/24"), step(address(1), address(254), 1));
        assert_eq!(v4("10.0.0.4/31"), step(address(4), address(5), 1));
        assert_eq!(v4("10.0.0.4/32"), step(address(4), address(4), 1));
        let all = step(Ipv4Addr::new(0, 0, 0, 1), Ipv4Addr::new(255, 255, 255, 254), 1);
        assert_eq!(v4("1.2.3.4/0"), all);
        let hosts = Field::Random { first: address(1), last: address(6) };
        assert_eq!(v4("random:10.0.0.0/29"), hosts);
        assert_eq!("1000-2000/5".parse(), Ok(step(1000u16, 2000, 5)));
        assert_eq!("0x10".parse(), Ok(Field::Fixed(16u16)));
        let ports = Field::Random { first: 1024u16, last: 65535 };
        assert_eq!("random:1024-65535".parse(), Ok(ports));
        let v6 = |text: &str| text.parse::<Ipv6Addr>().unwrap();
        let prefix = step(v6("2001:db8::1"), v6("2001:db8::ffff:ffff:ffff:ffff"), 1);
        assert_eq!("2001:db8::/64".parse(), Ok(prefix));
        assert_eq!("fe80::1-fe80::9/2".parse(), Ok(step(v6("fe80::1"), v6("fe80::9"), 2)));
        let mac = |last| MacAddress([2, 0, 0, 0, 0, last]);
        assert_eq!("02-00-00-00-00-01".parse(), Ok(Field::Fixed(mac(1))));
        let range = "02:00:00:00:00:01-02:00:00:00:00:09";
        assert_eq!(range.parse(), Ok(step(mac(1), mac(9), 1)));
    }

    #[test]
    fn errors_say_what_was_expected() {
        let error = |text: &str| text.parse::<Field<Ipv4Addr>>().unwrap_err().to_string();
        assert!(error("10.0.0").contains("an IPv4 address such as 10.0.0.1"));
        assert!(error("10.0.0.9-10.0.0.1").contains("downwards"));
        assert!(error("10.0.0.1-10.0.0.9/0").contains("expected a number from 1 on"));
        assert!(error("10.0.0.0/33").contains("from 0 to 32"));
        assert!(error("10.0.0.0/x").contains("from 0 to 32"));
        assert!(error("random:10.0.0.1").contains("random:FIRST-LAST"));
        assert!(error("random:10.0.0.1-10.0.0.9/2").contains("random:FIRST-LAST"));
        let error = |text: &str| text.parse::<Field<u16>>().unwrap_err().to_string();
        assert!(error("65536").contains("from 0 to 65535"));
        assert!(error("80/8").contains("from 0 to 65535"));
        assert!(error("").contains("from 0 to 65535"));
        assert!(error("+1").contains("from 0 to 65535"));
    }

    #[test]
    fn bounds_respect_the_step() {
        assert_eq!(step(10u16, 20, 4).bounds(), (10, 18));
        assert_eq!(Field::Fixed(7u16).bounds(), (7, 7));
    }

    fn field<T: FieldValue>(a: T, b: T, step: u64, kind: u8) -> Field<T> {
        let (first, last) = (a.min(b), a.max(b));
        match kind % 3 {
            0 => Field::Fixed(a),
            1 => Field::Step { first, last, step: step.max(1) },
            _ => Field::Random { first, last },
        }
    }

    proptest! {
        #[test]
        fn text_round_trips(a: u128, b: u128, step: u64, kind: u8) {
            let v4 = field(Ipv4Addr::from(a as u32), Ipv4Addr::from(b as u32), step, kind);
            prop_assert_eq!(v4.to_string().parse(), Ok(v4));
            let v6 = field(Ipv6Addr::from(a), Ipv6Addr::from(b), step, kind);
            prop_assert_eq!(v6.to_string().parse(), Ok(v6));
            let port = field(a as u16, b as u16, step, kind);
            prop_assert_eq!(port.to_string().parse(), Ok(port));
            let label = field(a as u32, b as u32, step, kind);
            prop_assert_eq!(label.to_string().parse(), Ok(label));
            let mac = |value: u128| MacAddress::from_u64(value as u64);
            let mac = field(mac(a), mac(b), step, kind);
            prop_assert_eq!(mac.to_string().parse(), Ok(mac));
        }

        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = text.parse::<Field<Ipv4Addr>>();
            let _ = text.parse::<Field<Ipv6Addr>>();
            let _ = text.parse::<Field<MacAddress>>();
            let _ = text.parse::<Field<u16>>();
        }
    }
}
