//! Reproducible pseudo-random numbers, not for secrets.
//!
//! Two kinds. [`Random`] is a *sequence*: the next number depends on those drawn
//! before (xoshiro256** by Blackman and Vigna, 2018, its state made by SplitMix64).
//! [`at`] is a *counter-based* function: number `index` of `key` depends on these
//! two alone, so that any worker can compute the random fields of any frame and the
//! traffic is the same whatever the number of workers (SplitMix64 by Steele, Lea and
//! Flood, 2014, whose state is a counter).
//!
//! Limits: neither is cryptographic; numbers below a bound are made by the high half
//! of a product, whose bias is at most bound / 2^64.

/// Increment of the SplitMix64 counter: 2^64 divided by the golden ratio, odd.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Separates the low half of a 128-bit number from the high one.
const LOW_HALF: u64 = 0xa076_1d64_78bd_642f;

/// Spreads `value` over all 64 bits, one to one (SplitMix64's finalizer).
#[inline]
pub const fn mix(value: u64) -> u64 {
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

/// The key of sequence number `field` under `seed`, for [`at`].
#[inline]
pub const fn key(seed: u64, field: u64) -> u64 {
    mix(seed ^ mix(field.wrapping_add(GOLDEN)))
}

/// Number `index`, counted from 0, of the sequence `key`.
#[inline]
pub const fn at(key: u64, index: u64) -> u64 {
    mix(key.wrapping_add(index.wrapping_add(1).wrapping_mul(GOLDEN)))
}

/// Number `index` of the sequence `key`, from 0 to `last` inclusive.
#[inline]
pub const fn at_most(key: u64, index: u64, last: u64) -> u64 {
    scale(at(key, index), last)
}

/// As [`at_most`], of 128 bits; equal to it where `last` fits in 64 bits.
pub const fn at_most_wide(key: u64, index: u64, last: u128) -> u128 {
    if last <= u64::MAX as u128 {
        return at_most(key, index, last as u64) as u128;
    }
    let number = (at(key, index) as u128) << 64 | at(key ^ LOW_HALF, index) as u128;
    match last.checked_add(1) {
        Some(count) => high_half(number, count),
        None => number,
    }
}

/// Maps a number of 64 bits to 0..=`last`, monotonically.
#[inline]
const fn scale(number: u64, last: u64) -> u64 {
    match last.checked_add(1) {
        Some(count) => ((number as u128 * count as u128) >> 64) as u64,
        None => number,
    }
}

/// The upper 128 bits of a product of 256.
const fn high_half(a: u128, b: u128) -> u128 {
    let low = u64::MAX as u128;
    let (a_high, a_low) = (a >> 64, a & low);
    let (b_high, b_low) = (b >> 64, b & low);
    let middle = a_high * b_low + ((a_low * b_low) >> 64);
    let other = a_low * b_high + (middle & low);
    a_high * b_high + (middle >> 64) + (other >> 64)
}

/// A sequence of random numbers.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// The sequence of `seed`; any seed will do.
    pub fn new(seed: u64) -> Self {
        Self { state: [0, 1, 2, 3].map(|index| at(seed, index)) }
    }

    /// The next number, uniform over 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let number = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        number
    }

    /// A number from 0 to `count` - 1; 0 if `count` is 0.
    #[inline]
    pub fn below(&mut self, count: u64) -> u64 {
        scale(self.next_u64(), count.saturating_sub(1))
    }

    /// A number from 0 inclusive to 1 exclusive, a multiple of 2^-53.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn counter_is_splitmix64() {
        // The first outputs of the published splitmix64.c from state 1234567.
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        for (index, expected) in expected.into_iter().enumerate() {
            assert_eq!(at(1_234_567, index as u64), expected);
        }
    }

    #[test]
    fn sequence_is_xoshiro256_starstar() {
        // The first outputs of the published algorithm from state 1, 2, 3, 4.
        let mut random = Random { state: [1, 2, 3, 4] };
        let expected = [11_520, 0, 1_509_978_240, 1_215_971_899_390_074_240];
        assert_eq!(expected.map(|_| random.next_u64()), expected);
    }

    #[test]
    fn bounds_are_reached_and_kept() {
        let mut random = Random::new(7);
        let mut seen = [0u32; 6];
        for _ in 0..6_000 {
            seen[random.below(6) as usize] += 1;
            let unit = random.unit();
            assert!((0.0..1.0).contains(&unit));
        }
        // 1000 each, standard deviation 29: eight of them away is no accident.
        assert!(seen.iter().all(|&count| (770..1_230).contains(&count)), "{seen:?}");
        assert_eq!(random.below(0), 0);
        assert_eq!(random.below(1), 0);
    }

    proptest! {
        #[test]
        fn bounded_numbers_stay_below(seed: u64, field: u64, index: u64, last: u64, wide: u128) {
            let key = key(seed, field);
            prop_assert!(at_most(key, index, last) <= last);
            prop_assert!(at_most_wide(key, index, wide) <= wide);
            prop_assert_eq!(at_most(key, index, u64::MAX), at(key, index));
            prop_assert_eq!(at_most_wide(key, index, u128::from(last)), u128::from(at_most(key, index, last)));
        }

        #[test]
        fn high_half_is_that_of_the_product(a: u128, b: u64) {
            // b × 2^64: the product's upper half is that of a × b shifted by 64.
            let (high, low) = ((a >> 64) * u128::from(b), (a & u128::from(u64::MAX)) * u128::from(b));
            prop_assert_eq!(high_half(a, u128::from(b) << 64), high + (low >> 64));
            prop_assert_eq!(high_half(a, u128::from(b)), (high + (low >> 64)) >> 64);
        }
    }
}
