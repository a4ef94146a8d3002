//! Log-linear histograms of 64-bit values, in memory that this process reads.
//!
//! A value below 32 has a bucket of its own; above, each power of two has 32. Bucket `32 s + (value >> s)`
//! counts a value whose highest six bits remain when `s` others are shifted out.

use sys::bpf::SharedArray;

use crate::assembler::Assembler;
use crate::operation::Register::{R1, R2, R3, R4, R5};
use crate::operation::{Arithmetic, Comparison, Register, Size};

/// Linear steps within each power of two, as bits.
pub const STEP_BITS: u32 = 5;
/// Buckets in use.
pub const BUCKETS: usize = (64 - STEP_BITS as usize + 1) << STEP_BITS;
/// Buckets that there is room for: a mask of the index suffices the verifier.
const ROOM: usize = BUCKETS.next_power_of_two();

// Words in front of the buckets. The sum has 128 bits; of the smallest value the complement is kept, so that
// memory full of zeros is an empty histogram.
const SUM_LOW: usize = 0;
const SUM_HIGH: usize = 1;
const MIN_COMPLEMENT: usize = 2;
const MAX: usize = 3;
const FIRST_BUCKET: usize = 4;

/// Words that one takes.
pub const WORDS: usize = FIRST_BUCKET + ROOM;

/// What a histogram holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Values {
    /// Values of each bucket.
    pub buckets: Vec<u64>,
    /// Of all values.
    pub sum: u128,
    /// The smallest; [`u64::MAX`] if there is none.
    pub min: u64,
    /// The largest; 0 if there is none.
    pub max: u64,
}

/// Reads the one that begins at a word of a value.
pub fn read(shared: &SharedArray, value: usize, first_word: usize) -> Values {
    let word = |place: usize| shared.get(value, first_word + place);
    Values {
        buckets: (0..BUCKETS).map(|bucket| word(FIRST_BUCKET + bucket)).collect(),
        sum: u128::from(word(SUM_HIGH)) << 64 | u128::from(word(SUM_LOW)),
        min: !word(MIN_COMPLEMENT),
        max: word(MAX),
    }
}

/// Counts the value of R1 in the histogram at `base` plus `offset` bytes, `base` being neither of R1 to R5.
/// The word at `zero` bytes from `base` is 0. Loses R1 to R5.
///
/// One writer at a time: there is no atomic addition.
pub fn record(assembler: &mut Assembler, base: Register, offset: i16, zero: i16) {
    let at = |word: usize| offset + (word * 8) as i16;
    assembler.note("its sum, smallest and largest");
    let carried = assembler.label("carried");
    assembler.load(Size::Double, R2, base, at(SUM_LOW));
    assembler.compute(Arithmetic::Add, R2, R1);
    assembler.store(Size::Double, base, at(SUM_LOW), R2);
    assembler.jump_if(R2, Comparison::GreaterEqual, R1, carried);
    add_one(assembler, base, at(SUM_HIGH), R2);
    assembler.place(carried);
    assembler.copy(R2, R1);
    assembler.compute(Arithmetic::Xor, R2, -1);
    keep_larger(assembler, base, at(MIN_COMPLEMENT), R2, R3);
    keep_larger(assembler, base, at(MAX), R1, R3);
    assembler.note("its bucket");
    // A shift that began as a constant would be followed by the verifier along 64 ways.
    assembler.load(Size::Double, R2, base, zero);
    for bits in [32, 16, 8, 4, 2, 1] {
        let small = assembler.label("small");
        assembler.copy(R3, R1);
        assembler.compute(Arithmetic::ShiftRight, R3, STEP_BITS.cast_signed() + bits);
        assembler.jump_if(R3, Comparison::Equal, 0, small);
        assembler.compute(Arithmetic::ShiftRight, R1, bits);
        assembler.compute(Arithmetic::Add, R2, bits);
        assembler.place(small);
    }
    assembler.compute(Arithmetic::ShiftLeft, R2, STEP_BITS.cast_signed());
    assembler.compute(Arithmetic::Add, R2, R1);
    assembler.compute(Arithmetic::And, R2, ROOM as i32 - 1);
    assembler.compute(Arithmetic::ShiftLeft, R2, 3);
    assembler.copy(R4, base);
    assembler.compute(Arithmetic::Add, R4, R2);
    add_one(assembler, R4, at(FIRST_BUCKET), R5);
}

/// `*(base + offset) += 1`, by way of `scratch`.
pub(crate) fn add_one(assembler: &mut Assembler, base: Register, offset: i16, scratch: Register) {
    assembler.load(Size::Double, scratch, base, offset);
    assembler.compute(Arithmetic::Add, scratch, 1);
    assembler.store(Size::Double, base, offset, scratch);
}

/// `*(base + offset) = max(itself, value)`, by way of `scratch`.
pub(crate) fn keep_larger(
    assembler: &mut Assembler,
    base: Register,
    offset: i16,
    value: Register,
    scratch: Register,
) {
    let kept = assembler.label("kept");
    assembler.load(Size::Double, scratch, base, offset);
    assembler.jump_if(scratch, Comparison::GreaterEqual, value, kept);
    assembler.store(Size::Double, base, offset, value);
    assembler.place(kept);
}
