//! A run that began with frames that were taken as late ones of the run before: they are placed again.
//!
//! All of them have numbers below 64, so that what the run has seen is one word. Among them another run may
//! begin: then the replay goes back to its first frame.

use super::sequence::{beginning, bit, end_run, keep, kept_or, log_place, or, push, reordered};
use super::state::stream;
use super::word;
use crate::assembler::Assembler;
use crate::operation::Register::{R0, R1, R2, R3, R5, R7, R8, R9};
use crate::operation::{Arithmetic, Comparison, Size};
use crate::part::histogram::{add_one, keep_larger};
use Arithmetic::{Add, And, Sub};
use Comparison::{AnyBit, Equal, Greater, LessEqual};
use Size::Double;

/// Steps, twice what the longest beginning has: the verifier wants to see an end. Runs that begin over and over
/// within one beginning could take more; the frames behind the last step would be left out of the run.
const STEPS_MAX: i32 = 260;

/// Places the frames of the log from R8 on. All bits of the window are clear. Loses R0 to R5, R8 and R9.
pub(super) fn replay(assembler: &mut Assembler) {
    let [first, highest, late, duplicate, ordinary, restart, newest, done] =
        ["begin", "higher", "lower", "again", "no_low", "once_more", "newer", "replayed"]
            .map(|name| assembler.label(name));
    assembler.set(R9, STEPS_MAX);
    let next = assembler.here("replay");
    assembler.compute(Add, R9, -1);
    assembler.jump_if(R9, Equal, 0, done);
    assembler.load(Double, R0, R7, word(stream::LOGGED));
    assembler.compute(And, R0, stream::LOG_FRAMES as i32 - 1);
    assembler.jump_if(R8, Equal, R0, done);
    log_place(assembler, R5, R8);
    assembler.load(Double, R1, R5, word(stream::LOG));
    assembler.load(Double, R2, R5, word(stream::LOG + 1));
    assembler.compute(Add, R8, 1);
    assembler.compute(And, R8, stream::LOG_FRAMES as i32 - 1);
    assembler.load(Double, R3, R7, word(stream::EXPECTED));
    bit(assembler, R5, R1);
    assembler.jump_if(R3, Equal, 0, first);
    assembler.jump_if(R3, Equal, R1, highest);
    assembler.compute(Add, R3, -1);
    beginning(assembler);
    assembler.jump_if(R1, Greater, R3, ordinary);
    kept_or(assembler, R0, stream::KEPT_NEWEST, stream::NEWEST);
    assembler.jump_if(R2, LessEqual, R0, ordinary);
    kept_or(assembler, R5, stream::KEPT_LOW, stream::LOW);
    bit(assembler, R0, R1);
    assembler.jump_if(R5, AnyBit, R0, restart);
    keep(assembler);
    push(assembler);
    bit(assembler, R5, R1);
    assembler.jump(late);

    assembler.place(ordinary);
    assembler.store_constant(Double, R7, word(stream::BEGINNING), 0);
    assembler.jump_if(R1, Greater, R3, highest);
    assembler.place(late);
    assembler.compute(Sub, R3, R1);
    assembler.load(Double, R0, R7, word(stream::LOW));
    assembler.jump_if(R0, AnyBit, R5, duplicate);
    or(assembler, stream::LOW, R5);
    reordered(assembler);
    assembler.jump(newest);
    assembler.place(duplicate);
    add_one(assembler, R7, word(stream::DUPLICATE), R0);
    assembler.jump(newest);

    assembler.place(first);
    assembler.store(Double, R7, word(stream::LOWEST), R1);
    for which in [stream::UNIQUE, stream::LOW, stream::NEWEST] {
        assembler.store_constant(Double, R7, word(which), 0);
    }
    assembler.place(highest);
    or(assembler, stream::LOW, R5);
    add_one(assembler, R7, word(stream::UNIQUE), R0);
    assembler.compute(Add, R1, 1);
    assembler.store(Double, R7, word(stream::EXPECTED), R1);
    assembler.place(newest);
    keep_larger(assembler, R7, word(stream::NEWEST), R2, R0);
    assembler.jump(next);

    assembler.place(restart);
    assembler.compute(Add, R8, -1);
    end_run(assembler);
    assembler.jump(next);

    assembler.place(done);
    assembler.load(Double, R0, R7, word(stream::LOW));
    assembler.store(Double, R7, word(stream::SEEN), R0);
}
