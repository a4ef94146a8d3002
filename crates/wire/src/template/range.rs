//! The values of a changing field, a batch at a time.
//!
//! A value depends on nothing but the number of its frame, as [`Field::value`] says, so
//! that any worker can produce any part of the sequence. Here the same values come without
//! a division per value: a step's offset is carried on and wraps by a masked subtraction.
//!
//! Vocabulary: *narrow* values have up to 64 bits, *wide* ones up to 128; `advance` is the
//! distance in frames from one frame of this worker to its next.
//!
//! Limits: frames are numbered below 2^64; a narrow range of steps spans at most 2^62; wide ranges compute every value
//! anew with 128-bit arithmetic, several times slower.

use super::field::distance;
use super::{BATCH_FRAMES, Field, FieldValue};
use crate::random;

/// Offsets that are carried on side by side, for want of a dependency between them.
const LANES: usize = 8;

/// A number of the width in which a column is computed.
pub(super) trait Number: Copy {
    fn truncate(value: u64) -> Self;
    fn plus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn less(self, other: Self) -> u64;
}

macro_rules! number {
    ($type:ty) => {
        impl Number for $type {
            #[inline(always)]
            fn truncate(value: u64) -> Self {
                value as Self
            }

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }

            #[inline(always)]
            fn less(self, other: Self) -> u64 {
                self.wrapping_sub(other).into()
            }
        }
    };
}
number!(u32);
number!(u64);

/// Values of up to 64 bits.
#[derive(Clone, Debug)]
pub(super) enum NarrowRange {
    Step(Steps),
    Random(Draws),
}

/// Values in steps.
#[derive(Clone, Debug)]
pub(super) struct Steps {
    first: u64,
    step: u64,
    count: u64,
    /// Product of step and count: at most 2^62.
    span: i64,
    /// Next value less the first, below the span.
    offset: i64,
    /// From one value to the next, below the span.
    advance: i64,
    /// From one value to the one after [`LANES`] more, below the span.
    advance_lanes: i64,
}

/// Random values.
#[derive(Clone, Debug)]
pub(super) struct Draws {
    first: u64,
    distance: u64,
    key: u64,
    index: u64,
    advance: u64,
}

impl NarrowRange {
    /// The low 64 bits of the values of `field`, whose order was checked; `None` if they
    /// need more.
    pub fn of<T: FieldValue>(field: &Field<T>, key: u64) -> Option<Self> {
        let low = |value: T| value.to_number() as u64;
        let (first, last, step) = match *field {
            Field::Fixed(value) => (value, value, 1),
            Field::Step { first, last, step } => (first, last, step.max(1)),
            Field::Random { first, last } => (first, last, 1),
        };
        if first.to_number() >> 64 != last.to_number() >> 64 {
            return None;
        }
        let (distance, first) = (distance(first, last) as u64, low(first));
        if let Field::Random { .. } = field {
            return Some(Self::Random(Draws { first, distance, key, index: 0, advance: 1 }));
        }
        // A step beyond the distance leaves one value, whatever the step.
        let (step, distance) = if step > distance { (1, 0) } else { (step, distance) };
        let count = (distance / step).checked_add(1)?;
        let span = step.checked_mul(count).filter(|&span| span <= 1 << 62)? as i64;
        let steps = Steps { first, step, count, span, offset: 0, advance: 0, advance_lanes: 0 };
        Some(Self::Step(steps))
    }

    /// The next value is that of frame `index`, the one after it of `index + advance`.
    pub fn seek(&mut self, index: u64, advance: u64) {
        match self {
            Self::Step(steps) => {
                let offset = |frames: u64| (frames % steps.count * steps.step) as i64;
                steps.offset = offset(index);
                let by = advance % steps.count;
                steps.advance = offset(by);
                // Not a product of 64 bits: a stride may be as long as the sequence.
                let lanes = u128::from(by) * LANES as u128 % u128::from(steps.count);
                steps.advance_lanes = offset(lanes as u64);
            }
            Self::Random(draws) => (draws.index, draws.advance) = (index, advance),
        }
    }

    /// The next `frames` values, and moves on by as many. Values beyond `frames` are
    /// unspecified: whole batches are what vectorises.
    #[inline]
    pub fn next_batch<T: Number>(&mut self, frames: usize, values: &mut [T; BATCH_FRAMES]) {
        match self {
            Self::Step(steps) => steps.next_batch(frames, values),
            Self::Random(draws) => draws.next_batch(frames, values),
        }
    }
}

impl Steps {
    #[inline]
    fn next_batch<T: Number>(&mut self, frames: usize, values: &mut [T; BATCH_FRAMES]) {
        let furthest = self.advance.saturating_mul(BATCH_FRAMES as i64 - 1);
        if furthest.saturating_add(self.offset) < self.span {
            let start = T::truncate(self.first.wrapping_add(self.offset as u64));
            let advance = T::truncate(self.advance as u64);
            for (lane, value) in (0..).zip(values.iter_mut()) {
                *value = start.plus(advance.times(T::truncate(lane)));
            }
            // The span is left by at most one value.
            let next = self.offset + self.advance * frames as i64;
            self.offset = if next >= self.span { next - self.span } else { next };
        } else {
            let next = self.wrapping_batch(values);
            let first = T::truncate(self.first);
            self.offset = values.get(frames).map_or(next, |value| value.less(first) as i64);
        }
    }

    /// All values of a batch in which the range ends, and the offset after them.
    fn wrapping_batch<T: Number>(&self, values: &mut [T; BATCH_FRAMES]) -> i64 {
        let span = self.span;
        let wrap = |offset: i64| {
            let beyond = offset - span;
            beyond + (beyond >> 63 & span)
        };
        let mut lanes = [self.offset; LANES];
        let mut offset = self.offset;
        for lane in &mut lanes {
            *lane = offset;
            offset = wrap(offset + self.advance);
        }
        let (blocks, _) = values.as_chunks_mut::<LANES>();
        for block in blocks {
            for (value, lane) in block.iter_mut().zip(&mut lanes) {
                *value = T::truncate(self.first.wrapping_add(*lane as u64));
                *lane = wrap(*lane + self.advance_lanes);
            }
        }
        lanes[0]
    }
}

impl Draws {
    #[inline]
    fn next_batch<T: Number>(&mut self, frames: usize, values: &mut [T; BATCH_FRAMES]) {
        let mut index = self.index;
        for value in values.iter_mut().take(frames) {
            let offset = random::at_most(self.key, index, self.distance);
            *value = T::truncate(self.first.wrapping_add(offset));
            index = index.wrapping_add(self.advance);
        }
        self.index = index;
    }
}

/// Values of up to 128 bits.
#[derive(Clone, Debug)]
pub(super) enum WideRange {
    /// `last_position` is the number of values less one, which fits where the number of
    /// all 2^128 addresses would not.
    Step {
        first: u128,
        step: u64,
        last_position: u128,
        position: u128,
        advance: u128,
    },
    Random {
        first: u128,
        distance: u128,
        key: u64,
        index: u64,
        advance: u64,
    },
}

impl WideRange {
    /// The values of `field`, whose order was checked.
    pub fn of<T: FieldValue>(field: &Field<T>, key: u64) -> Self {
        let (first, last) = field.bounds();
        let (first, distance) = (first.to_number(), distance(first, last));
        match *field {
            Field::Random { .. } => Self::Random { first, distance, key, index: 0, advance: 1 },
            Field::Fixed(_) => Self::step(first, distance, 1),
            Field::Step { step, .. } => Self::step(first, distance, step.max(1)),
        }
    }

    fn step(first: u128, distance: u128, step: u64) -> Self {
        let last_position = distance / u128::from(step);
        Self::Step { first, step, last_position, position: 0, advance: 1 }
    }

    /// See [`NarrowRange::seek`].
    pub fn seek(&mut self, to_index: u64, by: u64) {
        match self {
            Self::Step { last_position, position, advance, .. } => {
                *position = remainder(to_index.into(), *last_position);
                *advance = remainder(by.into(), *last_position);
            }
            Self::Random { index, advance, .. } => (*index, *advance) = (to_index, by),
        }
    }

    /// See [`NarrowRange::next_batch`].
    pub fn next_batch(&mut self, frames: usize, values: &mut [u128; BATCH_FRAMES]) {
        match self {
            Self::Step { first, step, last_position, position, advance } => {
                // Neither position nor advance exceeds 64 bits, so these sums stay far
                // below 2^128; the products lie in the range.
                let step = u128::from(*step);
                for (lane, value) in (0u128..).zip(values.iter_mut().take(frames)) {
                    let at = remainder(*position + lane * *advance, *last_position);
                    *value = *first + at * step;
                }
                *position = remainder(*position + frames as u128 * *advance, *last_position);
            }
            Self::Random { first, distance, key, index, advance } => {
                for value in values.iter_mut().take(frames) {
                    *value = *first + random::at_most_wide(*key, *index, *distance);
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::Ipv6Addr;

    const KEY: u64 = 77;

    fn field(first: u128, last: u128, step: u64, random: bool) -> Field<Ipv6Addr> {
        let (first, last) = (Ipv6Addr::from(first), Ipv6Addr::from(last));
        if random { Field::Random { first, last } } else { Field::Step { first, last, step } }
    }

    /// Values by all ways that can hold them, from `index` on in batches of these sizes.
    fn check(field: &Field<Ipv6Addr>, index: u64, advance: u64, batches: &[usize]) {
        let frames: usize = batches.iter().sum();
        let at = |frame: u64| index.wrapping_add(advance.wrapping_mul(frame));
        let expected: Vec<u128> =
            (0..frames as u64).map(|frame| field.value(KEY, at(frame)).into()).collect();
        let mut wide = WideRange::of(field, KEY);
        wide.seek(index, advance);
        let mut values = [0; BATCH_FRAMES];
        let mut all: Vec<u128> = Vec::new();
        for &frames in batches {
            wide.next_batch(frames, &mut values);
            all.extend(&values[..frames]);
        }
        assert_eq!(all, expected, "wide {field}");
        let Some(mut narrow) = NarrowRange::of(field, KEY) else { return };
        narrow.seek(index, advance);
        let mut narrow_32 = narrow.clone();
        let (mut values, mut values_32) = ([0u64; BATCH_FRAMES], [0u32; BATCH_FRAMES]);
        let (mut all, mut all_32): (Vec<u64>, Vec<u32>) = (Vec::new(), Vec::new());
        for &frames in batches {
            narrow.next_batch(frames, &mut values);
            all.extend_from_slice(&values[..frames]);
            narrow_32.next_batch(frames, &mut values_32);
            all_32.extend_from_slice(&values_32[..frames]);
        }
        let low: Vec<u64> = expected.iter().map(|&value| value as u64).collect();
        assert_eq!(all, low, "64 bits of {field}");
        if field.bounds().1.to_bits() <= u32::MAX.into() {
            let low: Vec<u32> = expected.iter().map(|&value| value as u32).collect();
            assert_eq!(all_32, low, "32 bits of {field}");
        }
    }

    #[test]
    fn whole_spaces_are_possible() {
        for random in [false, true] {
            for last in [0, u32::MAX.into(), (1 << 62) - 1, u64::MAX.into(), u128::MAX] {
                for step in [1, 2, 1 << 31, 1 << 61, u64::MAX] {
                    let field = field(0, last, step, random);
                    check(&field, 0, 1, &[64, 3, 64]);
                    check(&field, u64::MAX - 3, 3, &[2]);
                    check(&field, u64::MAX / 2, u64::MAX / 200, &[64, 1]);
                }
            }
        }
    }

    #[test]
    fn ranges_that_end_within_a_batch() {
        for last in 0..200 {
            for step in 1..7 {
                check(&field(0, last, step, false), 11, 1, &[64, 64, 5, 1, 64]);
                check(&field(0, last, step, false), 11, 5, &[64, 64, 5, 1, 64]);
            }
        }
    }

    proptest! {
        #[test]
        fn batches_are_what_the_field_says(
            a: u128, b: u128, shift in 0..128u32, step: u64, step_shift in 0..64u32,
            random: bool, index: u64, advance: u64, small: bool,
            batches in proptest::collection::vec(0..=64usize, 1..5),
        ) {
            let (a, b) = (a >> shift, b >> shift);
            let step = (step >> step_shift).max(1);
            let field = field(a.min(b), a.max(b), step, random);
            let (index, advance) = if small { (index >> 40, advance % 9) } else { (index / 2, advance >> 10) };
            check(&field, index, advance, &batches);
        }
    }
}
