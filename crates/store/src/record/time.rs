//! Times of a capture: the unit that a file uses, and its conversion to nanoseconds.
//!
//! A file counts *ticks* of 10^-n or 2^-n seconds (pcapng option `if_tsresol`, n up to 127) since
//! the Unix epoch plus an offset of whole, maybe negative, seconds (`if_tsoffset`). The conversion
//! is prepared once per interface, so that the usual units cost one multiplication per packet.
//! Times before 1970 become 0, times after 2554 become `u64::MAX`.

use std::fmt;

const NS_PER_SECOND: u64 = 1_000_000_000;

/// The length of a tick, as pcapng's option `if_tsresol` encodes it: the high bit chooses powers of
/// two over powers of ten, the other seven are the negative exponent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TimeResolution(u8);

impl TimeResolution {
    /// 10^-6 s, the default of both formats.
    pub const MICROSECONDS: Self = Self(6);
    /// 10^-9 s.
    pub const NANOSECONDS: Self = Self(9);

    /// From the option's byte; each of the 256 values means something.
    pub const fn from_raw(raw: u8) -> Self {
        Self(raw)
    }

    /// The option's byte.
    pub const fn raw(self) -> u8 {
        self.0
    }

    /// Whether ticks are a power of two, rather than of ten, of a second.
    pub const fn is_binary(self) -> bool {
        self.0 & 0x80 != 0
    }

    /// The n of 10^-n or 2^-n seconds.
    pub const fn exponent(self) -> u8 {
        self.0 & 0x7f
    }
}

impl fmt::Display for TimeResolution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base = if self.is_binary() { 2 } else { 10 };
        write!(f, "{base}^-{} s", self.exponent())
    }
}

/// How ticks become nanoseconds before the offset is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// Nanoseconds in a tick: 10^-9 s and coarser.
    Multiply(u64),
    /// Ticks in a nanosecond: finer powers of ten.
    Divide(u64),
    /// Powers of two: ticks × 10^9 ÷ 2^n.
    Binary(u32),
    /// So fine that 64 bits of ticks are less than a nanosecond.
    Vanishing,
}

/// A prepared conversion between a file's ticks and nanoseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeScale {
    unit: Unit,
    offset_s: i64,
}

impl TimeScale {
    /// Ticks are nanoseconds since the epoch.
    pub const NANOSECONDS: Self = Self { unit: Unit::Multiply(1), offset_s: 0 };

    /// `offset_s` is added to each time on reading and taken away on writing.
    pub fn new(resolution: TimeResolution, offset_s: i64) -> Self {
        let exponent = u32::from(resolution.exponent());
        let unit = match (resolution.is_binary(), exponent) {
            (true, _) => Unit::Binary(exponent),
            (false, 0..=9) => Unit::Multiply(10_u64.pow(9 - exponent)),
            (false, _) => match 10_u64.checked_pow(exponent - 9) {
                Some(divisor) => Unit::Divide(divisor),
                None => Unit::Vanishing,
            },
        };
        Self { unit, offset_s }
    }

    /// Nanoseconds since the epoch, rounded down.
    #[inline]
    pub fn to_ns(self, ticks: u64) -> u64 {
        match self.unit {
            Unit::Multiply(factor) if self.offset_s == 0 => ticks.saturating_mul(factor),
            _ => self.to_ns_general(ticks),
        }
    }

    fn to_ns_general(self, ticks: u64) -> u64 {
        let wide = u128::from(ticks);
        // At most 2^64 × 10^9 < 2^94, which leaves room for the offset's 2^63 × 10^9 < 2^93.
        let ns = match self.unit {
            Unit::Multiply(factor) => wide * u128::from(factor),
            Unit::Divide(divisor) => wide / u128::from(divisor),
            Unit::Binary(shift) => (wide * u128::from(NS_PER_SECOND)) >> shift,
            Unit::Vanishing => 0,
        };
        let shifted = ns as i128 + i128::from(self.offset_s) * i128::from(NS_PER_SECOND);
        u64::try_from(shifted.max(0)).unwrap_or(u64::MAX)
    }

    /// Ticks for a time, such that reading them gives the same time again, or the last one before
    /// it that the unit can express. None if 64 bits of this unit, counted from this offset, do
    /// not reach it; the time 0, which means unknown, then has no place either.
    #[inline]
    pub fn to_ticks(self, time_ns: u64) -> Option<u64> {
        match self.unit {
            Unit::Multiply(1) if self.offset_s == 0 => Some(time_ns),
            _ => self.to_ticks_general(time_ns),
        }
    }

    fn to_ticks_general(self, time_ns: u64) -> Option<u64> {
        let offset = i128::from(self.offset_s) * i128::from(NS_PER_SECOND);
        let ns = u128::try_from(i128::from(time_ns) - offset).ok()?;
        let ticks = match self.unit {
            Unit::Multiply(factor) => ns / u128::from(factor),
            Unit::Divide(divisor) => ns.checked_mul(u128::from(divisor))?,
            // Finer than a nanosecond: round up, so that rounding down on reading finds it again.
            Unit::Binary(shift @ 30..=64) => {
                ns.checked_mul(1 << shift)?.div_ceil(u128::from(NS_PER_SECOND))
            }
            Unit::Binary(shift @ 0..30) => ns.checked_mul(1 << shift)? / u128::from(NS_PER_SECOND),
            Unit::Binary(_) | Unit::Vanishing => return (ns == 0).then_some(0),
        };
        u64::try_from(ticks).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW_NS: u64 = 1_700_000_000_123_456_789;

    fn to_ns(raw: u8, offset_s: i64, ticks: u64) -> u64 {
        TimeScale::new(TimeResolution::from_raw(raw), offset_s).to_ns(ticks)
    }

    #[test]
    fn the_usual_units_are_exact() {
        assert_eq!(to_ns(0, 0, 1_700_000_000), 1_700_000_000 * NS_PER_SECOND);
        assert_eq!(to_ns(6, 0, 1_700_000_000_123_456), 1_700_000_000_123_456_000);
        assert_eq!(to_ns(9, 0, NOW_NS), NOW_NS);
        assert_eq!(to_ns(10, 0, NOW_NS), NOW_NS / 10);
        assert_eq!(to_ns(12, 0, 1_999), 1);
        assert_eq!(to_ns(0x80 | 1, 0, 3), 1_500_000_000);
        assert_eq!(to_ns(0x80 | 32, 0, 3 << 31), 1_500_000_000);
    }

    #[test]
    fn offsets_are_signed_and_never_wrap() {
        assert_eq!(to_ns(9, -1, 1_500_000_000), 500_000_000);
        assert_eq!(to_ns(9, -2, 1_500_000_000), 0);
        assert_eq!(to_ns(6, 100, 1), 100_000_001_000);
        assert_eq!(to_ns(0, i64::MAX, u64::MAX), u64::MAX);
        assert_eq!(to_ns(0, i64::MIN, u64::MAX), u64::MAX);
        assert_eq!(to_ns(0, i64::MIN, 0), 0);
    }

    #[test]
    fn absurd_exponents_neither_overflow_nor_divide_by_zero() {
        assert_eq!(to_ns(28, 0, u64::MAX), 1);
        assert_eq!(to_ns(29, 0, u64::MAX), 0);
        assert_eq!(to_ns(127, 0, u64::MAX), 0);
        assert_eq!(to_ns(0xff, 0, u64::MAX), 0);
        assert_eq!(to_ns(0x80, 0, u64::MAX), u64::MAX);
        let fine = TimeScale::new(TimeResolution::from_raw(0x80 | 40), 0);
        assert_eq!(fine.to_ticks(NOW_NS), None);
    }

    proptest! {
        #[test]
        fn every_unit_converts_without_panic(raw: u8, offset: i64, ticks: u64, time_ns: u64) {
            let scale = TimeScale::new(TimeResolution::from_raw(raw), offset);
            scale.to_ns(ticks);
            if let Some(ticks) = scale.to_ticks(time_ns) {
                prop_assert!(scale.to_ns(ticks) <= time_ns);
            }
        }

        #[test]
        fn units_as_fine_as_a_nanosecond_give_the_time_back(
            raw in prop_oneof![9_u8..=9, 0x80_u8 | 30..=0x80 | 33],
            offset in -2_000_000_000_i64..1_600_000_000,
            time_ns in 1_600_000_000_000_000_000_u64..1_900_000_000_000_000_000,
        ) {
            let scale = TimeScale::new(TimeResolution::from_raw(raw), offset);
            if let Some(ticks) = scale.to_ticks(time_ns) {
                prop_assert_eq!(scale.to_ns(ticks), time_ns);
            }
        }

        #[test]
        fn coarser_units_lose_less_than_a_tick(
            exponent in 0_u8..9,
            time_ns in 0_u64..1_900_000_000_000_000_000,
        ) {
            let scale = TimeScale::new(TimeResolution::from_raw(exponent), 0);
            let back = scale.to_ns(scale.to_ticks(time_ns).unwrap());
            prop_assert!(back <= time_ns && time_ns - back < 10_u64.pow(9 - u32::from(exponent)));
        }
    }
}
