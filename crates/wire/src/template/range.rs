//! The values of a changing field, a batch at a time.
//!
//! A value depends on nothing but the number of its frame, so that any worker
//! can produce any part of the sequence. With `index` counted from 0:
//!
//! - step: `first + step * (index mod count)`;
//! - random: `first + high_half(bits(index) * (last - first + 1))`, where
//!   `bits(index) = finalise(key + (index + 1) * GOLDEN)` is the output number
//!   `index` of the SplitMix64 generator (Steele, Lea and Flood 2014) and `key`
//!   comes from the seed and the field's place in the template.
//!
//! Vocabulary: *narrow* values have up to 32 bits, *wide* ones up to 128;
//! `advance` is the distance in frames from one frame of this worker to its next.
//!
//! Limits: the product method favours some values by at most one part in 2^32
//! over the span (narrow) or 2^64 (wide).

use super::BATCH_FRAMES;

/// Increment of SplitMix64: 2^64 divided by the golden ratio, odd.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64's output function.
#[inline(always)]
pub(crate) const fn finalise(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// The random bits of frame `index`.
#[inline(always)]
const fn random_bits(key: u64, index: u64) -> u64 {
    finalise(key.wrapping_add(index.wrapping_add(1).wrapping_mul(GOLDEN)))
}

/// The key of field number `place` under `seed`.
pub(crate) const fn field_key(seed: u64, place: u64) -> u64 {
    finalise(seed ^ finalise(place.wrapping_add(1).wrapping_mul(GOLDEN)))
}

/// Values of up to 32 bits.
#[derive(Clone, Debug)]
pub(crate) enum NarrowRange {
    Step { first: u32, step: u32, count: u64, position: u64, advance: u64 },
    Random { first: u32, span: u64, key: u64, index: u64, advance: u64 },
}

impl NarrowRange {
    /// `first <= last` and `step >= 1` are the caller's duty.
    pub(crate) fn step(first: u32, last: u32, step: u64) -> Self {
        let count = u64::from(last - first) / step + 1;
        // A step beyond the span leaves one value, whatever the step.
        let step = if count == 1 { 0 } else { step as u32 };
        Self::Step { first, step, count, position: 0, advance: 1 % count }
    }

    pub(crate) fn random(first: u32, last: u32, key: u64) -> Self {
        Self::Random { first, span: u64::from(last - first) + 1, key, index: 0, advance: 1 }
    }

    /// The next value is that of frame `index`, the one after it of
    /// `index + advance`.
    pub(crate) fn seek(&mut self, to_index: u64, by: u64) {
        match self {
            Self::Step { count, position, advance, .. } => {
                *position = to_index % *count;
                *advance = by % *count;
            }
            Self::Random { index, advance, .. } => {
                *index = to_index;
                *advance = by;
            }
        }
    }

    /// The next `frames` values, and moves on by as many. Values beyond
    /// `frames` are unspecified: whole batches are what vectorises.
    #[inline]
    pub(crate) fn next_batch(&mut self, frames: usize, values: &mut [u32; BATCH_FRAMES]) {
        let frames = frames as u64;
        match self {
            Self::Step { first, step, count, position, advance } => {
                if *position + (BATCH_FRAMES as u64 - 1) * *advance < *count {
                    let start = first.wrapping_add((*position as u32).wrapping_mul(*step));
                    let increment = (*advance as u32).wrapping_mul(*step);
                    for (lane, value) in values.iter_mut().enumerate() {
                        *value = start.wrapping_add(increment.wrapping_mul(lane as u32));
                    }
                } else {
                    let mut at = *position;
                    for value in values.iter_mut() {
                        *value = first.wrapping_add((at as u32).wrapping_mul(*step));
                        at += *advance;
                        at -= if at >= *count { *count } else { 0 };
                    }
                }
                *position += frames * *advance;
                if *position >= *count {
                    *position %= *count;
                }
            }
            Self::Random { first, span, key, index, advance } => {
                let mut at = *index;
                for value in values.iter_mut() {
                    let bits = random_bits(*key, at) >> 32;
                    *value = first.wrapping_add((bits * *span >> 32) as u32);
                    at = at.wrapping_add(*advance);
                }
                *index = index.wrapping_add(frames.wrapping_mul(*advance));
            }
        }
    }
}

/// Values of up to 128 bits.
#[derive(Clone, Debug)]
pub(crate) enum WideRange {
    /// `last_position` is the number of values less one, which fits where the
    /// number of all 2^128 addresses would not.
    Step { first: u128, step: u64, last_position: u128, position: u128, advance: u128 },
    /// `span` is last less first.
    Random { first: u128, span: u128, key: u64, index: u64, advance: u64 },
}

impl WideRange {
    /// `first <= last` and `step >= 1` are the caller's duty.
    pub(crate) fn step(first: u128, last: u128, step: u64) -> Self {
        let last_position = (last - first) / u128::from(step);
        Self::Step { first, step, last_position, position: 0, advance: 1 }
    }

    pub(crate) fn random(first: u128, last: u128, key: u64) -> Self {
        Self::Random { first, span: last - first, key, index: 0, advance: 1 }
    }

    /// See [`NarrowRange::seek`].
    pub(crate) fn seek(&mut self, to_index: u64, by: u64) {
        match self {
            Self::Step { last_position, position, advance, .. } => {
                *position = remainder(to_index.into(), *last_position);
                *advance = remainder(by.into(), *last_position);
            }
            Self::Random { index, advance, .. } => {
                *index = to_index;
                *advance = by;
            }
        }
    }

    /// See [`NarrowRange::next_batch`].
    #[inline]
    pub(crate) fn next_batch(&mut self, frames: usize, values: &mut [u128; BATCH_FRAMES]) {
        match self {
            Self::Step { first, step, last_position, position, advance } => {
                // Neither position nor advance exceeds 64 bits, so these sums
                // stay far below 2^128; the products lie in the range.
                let step = u128::from(*step);
                for (lane, value) in (0u128..).zip(values.iter_mut().take(frames)) {
                    let mut at = *position + lane * *advance;
                    if at > *last_position {
                        at = remainder(at, *last_position);
                    }
                    *value = *first + at * step;
                }
                *position = remainder(*position + frames as u128 * *advance, *last_position);
            }
            Self::Random { first, span, key, index, advance } => {
                for value in values.iter_mut().take(frames) {
                    *value = *first + random_below(*key, *index, *span);
                    *index = index.wrapping_add(*advance);
                }
            }
        }
    }
}

/// `value` modulo `last + 1`, also where that is 2^128.
#[inline]
fn remainder(value: u128, last: u128) -> u128 {
    if value <= last { value } else { value % (last + 1) }
}

/// A random number from 0 to `span`, both included.
#[inline]
fn random_below(key: u64, index: u64, span: u128) -> u128 {
    let low = random_bits(key, index);
    if span < u128::from(u64::MAX) {
        return u128::from(low) * (span + 1) >> 64;
    }
    let high = random_bits(finalise(key), index);
    let bits = u128::from(high) << 64 | u128::from(low);
    match span.checked_add(1) {
        Some(count) => high_half(bits, count),
        None => bits,
    }
}

/// The upper 128 bits of the 256-bit product, by halves.
fn high_half(left: u128, right: u128) -> u128 {
    let halves = |value: u128| (value >> 64, value & u128::from(u64::MAX));
    let ((left_high, left_low), (right_high, right_low)) = (halves(left), halves(right));
    let low = left_low * right_low >> 64;
    let (first_high, first_low) = halves(left_high * right_low);
    let (second_high, second_low) = halves(left_low * right_high);
    let carry = (low + first_low + second_low) >> 64;
    left_high * right_high + first_high + second_high + carry
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn narrow(range: &mut NarrowRange, batches: &[usize]) -> Vec<u32> {
        let mut values = [0; BATCH_FRAMES];
        let mut all = Vec::new();
        for &frames in batches {
            range.next_batch(frames, &mut values);
            all.extend(&values[..frames]);
        }
        all
    }

    fn wide(range: &mut WideRange, batches: &[usize]) -> Vec<u128> {
        let mut values = [0; BATCH_FRAMES];
        let mut all = Vec::new();
        for &frames in batches {
            range.next_batch(frames, &mut values);
            all.extend(&values[..frames]);
        }
        all
    }

    #[test]
    fn first_outputs_are_those_of_splitmix64() {
        // The published test vector for seed 1234567.
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973];
        assert_eq!([random_bits(1_234_567, 0), random_bits(1_234_567, 1)], expected);
    }

    #[test]
    fn steps_wrap_round_after_the_last_reachable_value() {
        assert_eq!(narrow(&mut NarrowRange::step(10, 20, 4), &[3, 4]), [10, 14, 18, 10, 14, 18, 10]);
        assert_eq!(wide(&mut WideRange::step(10, 20, 4), &[3, 4]), [10, 14, 18, 10, 14, 18, 10]);
        assert_eq!(narrow(&mut NarrowRange::step(5, 5, u64::MAX), &[2]), [5, 5]);
        let top = narrow(&mut NarrowRange::step(u32::MAX - 1, u32::MAX, 1), &[3]);
        assert_eq!(top, [u32::MAX - 1, u32::MAX, u32::MAX - 1]);
    }

    #[test]
    fn whole_spaces_are_possible() {
        let mut all = WideRange::step(0, u128::MAX, 1);
        all.seek(u64::MAX, 3);
        let next = u128::from(u64::MAX) + 3;
        assert_eq!(wide(&mut all, &[2]), [u128::from(u64::MAX), next]);
        assert_eq!(narrow(&mut NarrowRange::step(0, u32::MAX, 1), &[2, 1]), [0, 1, 2]);
        wide(&mut WideRange::random(0, u128::MAX, 1), &[64]);
    }

    #[test]
    fn random_values_reach_both_ends() {
        let batches = [64; 8];
        let values = narrow(&mut NarrowRange::random(3, 6, 9), &batches);
        let other = wide(&mut WideRange::random(3, 6, 9), &batches);
        for expected in 3..=6u32 {
            let count = values.iter().filter(|&&value| value == expected).count();
            // 512 draws of 4 values: 128 expected, standard deviation 10.
            assert!((78..178).contains(&count), "{expected}: {count}");
            assert!(other.contains(&u128::from(expected)));
        }
        assert!(values.iter().all(|value| (3..=6).contains(value)));
    }

    #[test]
    fn high_half_of_known_products() {
        assert_eq!(high_half(u128::MAX, u128::MAX), u128::MAX - 1);
        assert_eq!(high_half(1 << 127, 6), 3);
        assert_eq!(high_half(u128::MAX, 1), 0);
    }

    proptest! {
        #[test]
        fn workers_interleave_to_the_whole(
            a: u32, b: u32, step in 1..2000u64, random: bool, workers in 1..5u64, start: u32,
        ) {
            let (first, last) = (a.min(b), a.max(b));
            let range = if random {
                NarrowRange::random(first, last, 77)
            } else {
                NarrowRange::step(first, last, step)
            };
            let wide_range = if random {
                WideRange::random(first.into(), last.into(), 77)
            } else {
                WideRange::step(first.into(), last.into(), step)
            };
            let start = u64::from(start);
            let mut whole = range.clone();
            whole.seek(start, 1);
            let whole = narrow(&mut whole, &[60, 60]);
            let mut wide_whole = wide_range.clone();
            wide_whole.seek(start, 1);
            let wide_whole = wide(&mut wide_whole, &[60, 60]);
            prop_assert!(whole.iter().all(|value| (first..=last).contains(value)));
            for worker in 0..workers {
                let mut part = range.clone();
                part.seek(start + worker, workers);
                let part = narrow(&mut part, &[7, 11]);
                let mut wide_part = wide_range.clone();
                wide_part.seek(start + worker, workers);
                let wide_part = wide(&mut wide_part, &[7, 11]);
                for at in 0..18 {
                    let frame = worker as usize + at * workers as usize;
                    prop_assert_eq!(part[at], whole[frame]);
                    prop_assert_eq!(wide_part[at], wide_whole[frame]);
                }
            }
            if !random {
                let count = u64::from(last - first) / step + 1;
                for (frame, &value) in (start..).zip(&whole) {
                    prop_assert_eq!(u64::from(value), u64::from(first) + step * (frame % count));
                }
            }
        }
    }
}
