//! The lock of the streams: one for all, since a frame holds it for some tens of nanoseconds. Programs are not
//! interrupted by others of their CPU, so that who holds it goes on, unless the machine is a guest whose
//! host takes the CPU away. So nobody waits for long, and who gave up is counted.

use super::Maps;
use super::state::{WORD_BYTES, common};
use crate::assembler::{Assembler, Label};
use crate::operation::Register::{R0, R1, R2, R3};
use crate::operation::{Arithmetic, Atomic, Comparison, Operation, Size};

/// Attempts, about a tenth of a millisecond.
const ATTEMPTS: i32 = 4_000;

/// Takes the lock, or goes to `otherwise`. Loses R0 to R3.
pub(super) fn take(assembler: &mut Assembler, maps: &Maps, otherwise: Label) {
    let taken = assembler.label("locked");
    assembler.note("the lock");
    assembler.map_value(R1, maps.common, (common::LOCK * WORD_BYTES) as u32);
    assembler.set(R3, ATTEMPTS);
    let again = assembler.here("attempt");
    assembler.set(R0, 0);
    assembler.set(R2, 1);
    exchange(assembler, Atomic::CompareExchange);
    assembler.jump_if(R0, Comparison::Equal, 0, taken);
    assembler.compute(Arithmetic::Add, R3, -1);
    assembler.jump_if(R3, Comparison::NotEqual, 0, again);
    assembler.jump(otherwise);
    assembler.place(taken);
}

/// Gives it back. Loses R1 and R2.
pub(super) fn release(assembler: &mut Assembler, maps: &Maps) {
    assembler.note("the lock is free");
    assembler.map_value(R1, maps.common, (common::LOCK * WORD_BYTES) as u32);
    assembler.set(R2, 0);
    // What was written before is seen by whoever takes it next.
    exchange(assembler, Atomic::Exchange);
}

fn exchange(assembler: &mut Assembler, operator: Atomic) {
    let (size, fetches) = (Size::Double, true);
    assembler.push(Operation::Atomic { size, operator, fetches, base: R1, offset: 0, source: R2 });
}
