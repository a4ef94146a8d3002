//! Columns: one value of each packet of a batch, filled and compared for sets of them.

use crate::condition::Relation;
use crate::evaluate::Packet;

/// Packets that are asked about at once.
pub const BATCH_PACKETS_MAX: usize = 64;

/// As many lanes are compared one by one sooner than all of them at once.
const FEW: u32 = 4;

/// A value of every packet.
pub(super) type Column = [u32; BATCH_PACKETS_MAX];

/// From `low` to `span` more than it, looking at the bits of `mask`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    mask: u32,
    low: u32,
    span: u32,
}

impl Range {
    /// What bits under `mask` stand in `relation` to `constant`.
    pub(super) fn of(mask: u32, relation: Relation, constant: u32) -> Self {
        let from = |low: u32| Self { mask, low, span: u32::MAX - low };
        match (relation, constant) {
            (Relation::Equal, _) => Self { mask, low: constant, span: 0 },
            (Relation::GreaterEqual, _) => from(constant),
            // Nothing is: no bit is 1.
            (Relation::Greater, u32::MAX) => Self { mask: 0, low: 1, span: 0 },
            (Relation::Greater, _) => from(constant + 1),
        }
    }
}

/// Numbers of the bits that are set.
pub(super) struct Lanes(pub u64);

impl Iterator for Lanes {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        // Never more; the mask spares a look at the bounds.
        let lane = self.0.trailing_zeros() as usize & (BATCH_PACKETS_MAX - 1);
        self.0 &= self.0 - 1;
        Some(lane)
    }
}

/// Fills `lanes` from their packets; returns those that have no value.
#[inline]
pub(super) fn each<'a>(
    lanes: u64,
    packets: &[Packet<'a>],
    column: &mut Column,
    value: impl Fn(&Packet<'a>) -> Option<u32>,
) -> u64 {
    if lanes.count_ones() as usize != packets.len() {
        return each_lane(lanes, column, |lane| packets.get(lane).and_then(&value));
    }
    let mut failed = 0;
    for (lane, (packet, cell)) in packets.iter().zip(column).enumerate() {
        match value(packet) {
            Some(value) => *cell = value,
            None => failed |= 1 << lane,
        }
    }
    failed
}

/// Fills `lanes`; returns those that have no value.
#[inline]
pub(super) fn each_lane(
    lanes: u64,
    column: &mut Column,
    value: impl Fn(usize) -> Option<u32>,
) -> u64 {
    let mut failed = 0;
    for lane in Lanes(lanes) {
        match value(lane) {
            Some(value) => column[lane] = value,
            None => failed |= 1 << lane,
        }
    }
    failed
}

/// Lanes whose bits are within the range; what it says of others than `lanes` means nothing.
pub(super) fn within(column: &Column, lanes: u64, range: Range) -> u64 {
    let Range { mask, low, span } = range;
    if lanes.count_ones() <= FEW {
        let is_within = |lane: &usize| (column[*lane] & mask).wrapping_sub(low) <= span;
        return Lanes(lanes).filter(is_within).fold(0, |answers, lane| answers | 1 << lane);
    }
    let mut answers = [0; BATCH_PACKETS_MAX];
    // Without a span there is a shorter way, which most tests take.
    if span == 0 {
        for (answer, value) in answers.iter_mut().zip(column) {
            *answer = u8::from(value & mask == low);
        }
    } else {
        for (answer, value) in answers.iter_mut().zip(column) {
            *answer = u8::from((value & mask).wrapping_sub(low) <= span);
        }
    }
    bits(&answers)
}

pub(super) fn compared(left: &Column, mask: u32, relation: Relation, right: &Column) -> u64 {
    let mut answers = [0; BATCH_PACKETS_MAX];
    for (answer, (left, right)) in answers.iter_mut().zip(left.iter().zip(right)) {
        *answer = u8::from(relation.holds(left & mask, *right));
    }
    bits(&answers)
}

/// Zeros and ones as bits, the first one lowest.
fn bits(answers: &[u8; BATCH_PACKETS_MAX]) -> u64 {
    let (eights, _) = answers.as_chunks::<8>();
    let mut bits = 0;
    for (place, eight) in eights.iter().enumerate() {
        // Moves the lowest bit of byte N to bit 56 + N.
        let gathered = u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        bits |= gathered << (8 * place);
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_gathered_in_order() {
        for lane in 0..BATCH_PACKETS_MAX {
            let mut answers = [0; BATCH_PACKETS_MAX];
            answers[lane] = 1;
            assert_eq!(bits(&answers), 1 << lane);
        }
        assert_eq!(bits(&[1; BATCH_PACKETS_MAX]), u64::MAX);
    }
}
