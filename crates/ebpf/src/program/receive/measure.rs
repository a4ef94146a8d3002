//! Times: of arrival, between arrivals, and since a frame was sent.
//!
//! Gaps are those between frames of one receive queue: the kernel serves a queue on one CPU at a time, and a
//! later moment perhaps on another one.

use super::state::{QUEUES_MAX, WORD_BYTES, common, lane};
use super::{ARRIVAL, Maps, QUEUE, SENT, word};
use crate::assembler::Assembler;
use crate::operation::Register::{R0, R1, R2, R6, R10};
use crate::operation::{Arithmetic, Comparison, Helper, Size};
use crate::part::histogram;

/// Takes the time of arrival; R6 is the CPU's lane, the queue lies on the stack. Loses R0 to R5.
pub(super) fn arrival(assembler: &mut Assembler, maps: &Maps) {
    let [backward, gap, done] = ["backward", "gap", "arrived"].map(|name| assembler.label(name));
    assembler.note("time of arrival");
    assembler.call(Helper::TIME_NS);
    assembler.map_value(R1, maps.common, byte(common::OFFSET));
    assembler.load(Size::Double, R1, R1, 0);
    assembler.compute(Arithmetic::Add, R0, R1);
    assembler.store(Size::Double, R10, ARRIVAL, R0);
    assembler.load(Size::Double, R1, R10, QUEUE);
    assembler.compute(Arithmetic::And, R1, QUEUES_MAX as i32 - 1);
    assembler.compute(Arithmetic::Mul, R1, (common::QUEUE_WORDS * WORD_BYTES) as i32);
    assembler.map_value(R2, maps.common, byte(common::QUEUES));
    assembler.compute(Arithmetic::Add, R2, R1);
    assembler.load(Size::Double, R1, R2, word(common::LAST));
    assembler.jump_if(R1, Comparison::Greater, R0, backward);
    assembler.store(Size::Double, R2, word(common::LAST), R0);
    assembler.jump_if(R1, Comparison::NotEqual, 0, gap);
    assembler.store(Size::Double, R2, word(common::FIRST), R0);
    assembler.jump(done);
    assembler.place(backward);
    histogram::add_one(assembler, R6, word(lane::BACKWARD), R1);
    assembler.jump(done);
    assembler.place(gap);
    assembler.compute(Arithmetic::Sub, R0, R1);
    assembler.copy(R1, R0);
    histogram::record(assembler, R6, word(lane::INTER_ARRIVAL), word(lane::ZERO));
    assembler.place(done);
}

/// Counts the time since a stamped frame was sent, if its stamp has one. Loses R0 to R5.
pub(super) fn latency(assembler: &mut Assembler) {
    let [negative, done] = ["negative", "measured"].map(|name| assembler.label(name));
    assembler.note("latency");
    assembler.load(Size::Double, R2, R10, SENT);
    assembler.jump_if(R2, Comparison::Equal, 0, done);
    assembler.load(Size::Double, R1, R10, ARRIVAL);
    assembler.jump_if(R2, Comparison::Greater, R1, negative);
    assembler.compute(Arithmetic::Sub, R1, R2);
    histogram::record(assembler, R6, word(lane::LATENCY), word(lane::ZERO));
    assembler.jump(done);
    assembler.place(negative);
    histogram::add_one(assembler, R6, word(lane::NEGATIVE), R1);
    assembler.place(done);
}

fn byte(word: usize) -> u32 {
    (word * WORD_BYTES) as u32
}
