//! Loss, reordering and duplicates of numbered streams, as the user plane's sequences define them
//! (crates/engine, `sequence`): the same steps on the same words.
//!
//! Registers: R7 is the stream's memory, R1 the number, R2 the time in the stamp, R3 the number that is
//! expected, then the highest; R4 how many frames a possible beginning has.

use super::lock;
use super::replay::replay;
use super::state::{STREAMS_MAX, WORD_BYTES, common, lane, stream};
use super::{Maps, NUMBER, SENT, STREAM, word};
use crate::assembler::{Assembler, Label};
use crate::operation::Register::{R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10};
use crate::operation::{Arithmetic, Comparison, Register, Size};
use crate::part::histogram::{add_one, keep_larger};
use Arithmetic::{Add, And, Mul, Or, ShiftLeft, ShiftRight, Sub, Xor};
use Comparison::{AnyBit, Equal, Greater, GreaterEqual, LessEqual, NotEqual};
use Size::Double;

/// Numbers that are remembered.
const WINDOW: i32 = 1 << 20;
/// Numbers with which a sender begins, at most.
const RESTART_BELOW: i32 = 64;
/// Frames of a possible beginning.
const BEGINNING_FRAMES: i32 = 2 * RESTART_BELOW;
/// What is kept in case that a possible beginning is none of the present run's.
const KEPT: [(usize, usize); 6] = [
    (stream::LOWEST, stream::KEPT_LOWEST),
    (stream::UNIQUE, stream::KEPT_UNIQUE),
    (stream::REORDERED, stream::KEPT_REORDERED),
    (stream::EXTENT, stream::KEPT_EXTENT),
    (stream::DUPLICATE, stream::KEPT_DUPLICATE),
    (stream::BEYOND_WINDOW, stream::KEPT_BEYOND_WINDOW),
];
/// Words that are set to 0 in a row.
const BLOCK_WORDS: i32 = 64;

/// Shows a stamped frame to its stream. Loses R0 to R5 and R7 to R9.
pub(super) fn see(assembler: &mut Assembler, maps: &Maps, locks: bool) {
    let [seen, untracked, contended, tracked] =
        ["seen", "untracked", "contended", "tracked"].map(|name| assembler.label(name));
    if locks {
        lock::take(assembler, maps, contended);
    }
    find_stream(assembler, maps, tracked, untracked);
    assembler.place(tracked);
    place(assembler, seen);
    assembler.place(seen);
    if locks {
        lock::release(assembler, maps);
    }
    let done = assembler.label("sequenced");
    assembler.jump(done);
    assembler.place(untracked);
    if locks {
        lock::release(assembler, maps);
    }
    add_one(assembler, R6, word(lane::UNTRACKED), R1);
    if locks {
        assembler.jump(done);
        assembler.place(contended);
        add_one(assembler, R6, word(lane::CONTENDED), R1);
    }
    assembler.place(done);
}

/// R7 becomes the memory of the stream, which is given some when it is new.
fn find_stream(assembler: &mut Assembler, maps: &Maps, tracked: Label, untracked: Label) {
    let known = assembler.label("known_stream");
    assembler.note("memory of the stream");
    assembler.load(Double, R1, R10, STREAM);
    assembler.copy(R2, R1);
    assembler.compute(And, R2, 0xffff);
    assembler.compute(ShiftLeft, R2, 1);
    assembler.map_value(R3, maps.common, (common::PLACES * WORD_BYTES) as u32);
    assembler.compute(Add, R3, R2);
    assembler.load(Size::Half, R4, R3, 0);
    assembler.jump_if(R4, NotEqual, 0, known);
    assembler.map_value(R5, maps.common, (common::STREAMS * WORD_BYTES) as u32);
    assembler.load(Double, R4, R5, 0);
    assembler.jump_if(R4, GreaterEqual, STREAMS_MAX as i32, untracked);
    assembler.compute(Add, R4, 1);
    assembler.store(Double, R5, 0, R4);
    assembler.store(Size::Half, R3, 0, R4);
    assembler.place(known);
    assembler.compute(Add, R4, -1);
    assembler.jump_if(R4, GreaterEqual, STREAMS_MAX as i32, untracked);
    assembler.compute(Mul, R4, (stream::WORDS * WORD_BYTES) as i32);
    assembler.map_value(R7, maps.streams, 0);
    assembler.compute(Add, R7, R4);
    assembler.store(Double, R7, word(stream::NUMBER), R1);
    assembler.jump(tracked);
}

fn place(assembler: &mut Assembler, seen: Label) {
    let [unexpected, advance, newest, high] =
        ["unexpected", "advance", "newest", "high_number"].map(|name| assembler.label(name));
    add_one(assembler, R7, word(stream::RECEIVED), R0);
    assembler.load(Double, R1, R10, NUMBER);
    assembler.load(Double, R2, R10, SENT);
    assembler.load(Double, R3, R7, word(stream::EXPECTED));
    assembler.jump_if(R3, NotEqual, R1, unexpected);
    assembler.place(advance);
    assembler.note("the highest number so far");
    seen_word(assembler, R4, R1);
    bit(assembler, R5, R1);
    assembler.load(Double, R0, R4, word(stream::SEEN));
    assembler.compute(Or, R0, R5);
    assembler.store(Double, R4, word(stream::SEEN), R0);
    add_one(assembler, R7, word(stream::UNIQUE), R0);
    assembler.jump_if(R1, GreaterEqual, RESTART_BELOW, high);
    or(assembler, stream::LOW, R5);
    assembler.place(high);
    assembler.compute(Add, R1, 1);
    assembler.store(Double, R7, word(stream::EXPECTED), R1);
    assembler.place(newest);
    keep_larger(assembler, R7, word(stream::NEWEST), R2, R0);
    assembler.jump(seen);
    assembler.place(unexpected);
    self::unexpected(assembler, advance, newest, seen);
}

/// `to = address of the memory's word with the bit of number`, less that of the first such word.
fn seen_word(assembler: &mut Assembler, to: Register, number: Register) {
    assembler.copy(to, number);
    assembler.compute(ShiftRight, to, 6);
    assembler.compute(And, to, stream::SEEN_WORDS as i32 - 1);
    assembler.compute(ShiftLeft, to, 3);
    assembler.compute(Add, to, R7);
}

/// `to = 1 << number % 64`
pub(super) fn bit(assembler: &mut Assembler, to: Register, number: Register) {
    assembler.set(to, 1);
    assembler.compute(ShiftLeft, to, number);
}

/// `word |= bits`, by way of R0.
pub(super) fn or(assembler: &mut Assembler, which: usize, bits: Register) {
    assembler.load(Double, R0, R7, word(which));
    assembler.compute(Or, R0, bits);
    assembler.store(Double, R7, word(which), R0);
}

fn unexpected(assembler: &mut Assembler, advance: Label, newest: Label, seen: Label) {
    let [first, ordinary, late, ahead, restart] =
        ["first", "ordinary", "late", "ahead", "restart"].map(|name| assembler.label(name));
    assembler.jump_if(R3, Equal, 0, first);
    assembler.compute(Add, R3, -1);
    beginning(assembler);
    assembler.jump_if(R1, GreaterEqual, RESTART_BELOW, ordinary);
    assembler.jump_if(R1, Greater, R3, ordinary);
    kept_or(assembler, R5, stream::KEPT_NEWEST, stream::NEWEST);
    assembler.jump_if(R2, LessEqual, R5, ordinary);

    assembler.note("a low number with a new time");
    kept_or(assembler, R5, stream::KEPT_LOW, stream::LOW);
    assembler.jump_if(R5, Equal, 0, restart);
    bit(assembler, R0, R1);
    assembler.jump_if(R5, AnyBit, R0, restart);
    keep(assembler);
    log(assembler);
    push(assembler);
    assembler.jump(late);

    assembler.place(ordinary);
    assembler.store_constant(Double, R7, word(stream::BEGINNING), 0);
    assembler.jump_if(R1, Greater, R3, ahead);
    assembler.place(late);
    self::late(assembler, newest);

    assembler.place(first);
    assembler.note("the first number");
    assembler.store(Double, R7, word(stream::LOWEST), R1);
    assembler.jump(advance);

    assembler.place(ahead);
    forget(assembler);
    assembler.load(Double, R1, R10, NUMBER);
    assembler.load(Double, R2, R10, SENT);
    assembler.jump(advance);

    assembler.place(restart);
    self::restart(assembler, seen);
}

/// R4 becomes the length of a possible beginning, unless the highest number changed since.
pub(super) fn beginning(assembler: &mut Assembler) {
    let valid = assembler.label("same_highest");
    assembler.load(Double, R4, R7, word(stream::BEGINNING));
    assembler.load(Double, R0, R7, word(stream::KEPT_HIGHEST));
    assembler.jump_if(R0, Equal, R3, valid);
    assembler.set(R4, 0);
    assembler.store(Double, R7, word(stream::BEGINNING), R4);
    assembler.place(valid);
}

/// `to` becomes what was kept at a possible beginning, or without one what is.
pub(super) fn kept_or(assembler: &mut Assembler, to: Register, kept: usize, present: usize) {
    let chosen = assembler.label("chosen");
    assembler.load(Double, to, R7, word(kept));
    assembler.jump_if(R4, NotEqual, 0, chosen);
    assembler.load(Double, to, R7, word(present));
    assembler.place(chosen);
}

/// Keeps what is, if a possible beginning begins. R5 holds the low numbers.
pub(super) fn keep(assembler: &mut Assembler) {
    let kept = assembler.label("kept");
    assembler.jump_if(R4, NotEqual, 0, kept);
    assembler.store(Double, R7, word(stream::KEPT_HIGHEST), R3);
    assembler.store(Double, R7, word(stream::KEPT_LOW), R5);
    for (present, kept) in KEPT.into_iter().chain([(stream::NEWEST, stream::KEPT_NEWEST)]) {
        assembler.load(Double, R0, R7, word(present));
        assembler.store(Double, R7, word(kept), R0);
    }
    assembler.place(kept);
}

/// Puts the frame into the log. Loses R0 and R5.
fn log(assembler: &mut Assembler) {
    assembler.load(Double, R0, R7, word(stream::LOGGED));
    log_place(assembler, R5, R0);
    assembler.store(Double, R5, word(stream::LOG), R1);
    assembler.store(Double, R5, word(stream::LOG + 1), R2);
    assembler.compute(Add, R0, 1);
    assembler.store(Double, R7, word(stream::LOGGED), R0);
}

/// `to = address of frame in the log`, less that of the first one.
pub(super) fn log_place(assembler: &mut Assembler, to: Register, frame: Register) {
    assembler.copy(to, frame);
    assembler.compute(And, to, stream::LOG_FRAMES as i32 - 1);
    assembler.compute(ShiftLeft, to, 4);
    assembler.compute(Add, to, R7);
}

/// The frame, the last of the log, belongs to the possible beginning, unless that is too long.
pub(super) fn push(assembler: &mut Assembler) {
    let short = assembler.label("short");
    assembler.compute(Add, R4, 1);
    assembler.jump_if(R4, Comparison::Less, BEGINNING_FRAMES, short);
    assembler.set(R4, 0);
    assembler.place(short);
    assembler.store(Double, R7, word(stream::BEGINNING), R4);
}

/// A number that is not above the highest.
fn late(assembler: &mut Assembler, newest: Label) {
    let [high, beyond, duplicate] =
        ["late_high", "beyond_window", "duplicate"].map(|name| assembler.label(name));
    assembler.note("a late number");
    bit(assembler, R5, R1);
    assembler.jump_if(R1, GreaterEqual, RESTART_BELOW, high);
    or(assembler, stream::LOW, R5);
    assembler.place(high);
    assembler.compute(Sub, R3, R1);
    assembler.jump_if(R3, GreaterEqual, WINDOW, beyond);
    seen_word(assembler, R4, R1);
    assembler.load(Double, R0, R4, word(stream::SEEN));
    assembler.jump_if(R0, AnyBit, R5, duplicate);
    assembler.compute(Or, R0, R5);
    assembler.store(Double, R4, word(stream::SEEN), R0);
    reordered(assembler);
    assembler.jump(newest);
    for (label, which) in [(beyond, stream::BEYOND_WINDOW), (duplicate, stream::DUPLICATE)] {
        assembler.place(label);
        add_one(assembler, R7, word(which), R0);
        assembler.jump(newest);
    }
}

/// A late number that was not seen; R3 is how far it is behind.
pub(super) fn reordered(assembler: &mut Assembler) {
    let lowest = assembler.label("lowest");
    add_one(assembler, R7, word(stream::UNIQUE), R0);
    add_one(assembler, R7, word(stream::REORDERED), R0);
    keep_larger(assembler, R7, word(stream::EXTENT), R3, R0);
    assembler.load(Double, R0, R7, word(stream::LOWEST));
    assembler.jump_if(R0, LessEqual, R1, lowest);
    assembler.store(Double, R7, word(stream::LOWEST), R1);
    assembler.place(lowest);
}

/// Clears the bits of the numbers above R3 up to R1, which reuse those of numbers a window ago. Loses
/// R0 to R5, R8 and R9.
fn forget(assembler: &mut Assembler) {
    let [within, several, done] =
        ["within", "several_words", "forgotten"].map(|n| assembler.label(n));
    assembler.note("numbers that were skipped");
    assembler.compute(Add, R3, 1);
    assembler.copy(R0, R1);
    assembler.compute(Sub, R0, R3);
    assembler.jump_if(R0, Comparison::Less, WINDOW, within);
    assembler.copy(R3, R1);
    assembler.compute(Add, R3, 1 - WINDOW);
    assembler.place(within);
    // R4 and R5 keep the bits below the first number and above the last one.
    bit(assembler, R4, R3);
    assembler.compute(Add, R4, -1);
    assembler.set(R5, -2);
    assembler.compute(ShiftLeft, R5, R1);
    seen_word(assembler, R8, R3);
    seen_word(assembler, R9, R1);
    assembler.compute(ShiftRight, R3, 6);
    assembler.compute(ShiftRight, R1, 6);
    assembler.compute(Sub, R1, R3);
    assembler.jump_if(R1, NotEqual, 0, several);
    assembler.compute(Or, R4, R5);
    and_seen(assembler, R8, R4);
    assembler.jump(done);
    assembler.place(several);
    and_seen(assembler, R8, R4);
    and_seen(assembler, R9, R5);
    // Masks keep the verifier from telling one way to a loop from another.
    assembler.compute(Add, R3, 1);
    assembler.compute(And, R3, stream::SEEN_WORDS as i32 - 1);
    assembler.compute(Add, R1, -1);
    assembler.compute(And, R1, stream::SEEN_WORDS as i32 - 1);
    assembler.note("words up to a whole block");
    assembler.copy(R4, R3);
    assembler.compute(Xor, R4, -1);
    assembler.compute(Add, R4, 1);
    assembler.compute(And, R4, BLOCK_WORDS - 1);
    let fewer = assembler.label("fewer");
    assembler.jump_if(R4, LessEqual, R1, fewer);
    assembler.copy(R4, R1);
    assembler.compute(And, R4, BLOCK_WORDS - 1);
    assembler.place(fewer);
    assembler.compute(Sub, R1, R4);
    assembler.compute(And, R1, stream::SEEN_WORDS as i32 - 1);
    clear_words(assembler);
    assembler.note("blocks");
    assembler.copy(R4, R1);
    assembler.compute(ShiftRight, R4, 6);
    clear_blocks(assembler);
    assembler.note("the rest");
    assembler.copy(R4, R1);
    assembler.compute(And, R4, BLOCK_WORDS - 1);
    clear_words(assembler);
    assembler.place(done);
}

fn and_seen(assembler: &mut Assembler, address: Register, bits: Register) {
    assembler.load(Double, R0, address, word(stream::SEEN));
    assembler.compute(And, R0, bits);
    assembler.store(Double, address, word(stream::SEEN), R0);
}

/// Clears R4 words from word R3 on, R3 going behind them.
fn clear_words(assembler: &mut Assembler) {
    let done = assembler.label("cleared");
    let next = assembler.here("clear_word");
    assembler.jump_if(R4, Equal, 0, done);
    assembler.copy(R5, R3);
    assembler.compute(ShiftLeft, R5, 3);
    assembler.compute(Add, R5, R7);
    assembler.store_constant(Double, R5, word(stream::SEEN), 0);
    assembler.compute(Add, R3, 1);
    assembler.compute(And, R3, stream::SEEN_WORDS as i32 - 1);
    assembler.compute(Add, R4, -1);
    assembler.jump(next);
    assembler.place(done);
}

/// Clears R4 blocks of words from word R3 on, with which a block begins.
fn clear_blocks(assembler: &mut Assembler) {
    let done = assembler.label("blocks_cleared");
    let next = assembler.here("clear_block");
    assembler.jump_if(R4, Equal, 0, done);
    assembler.copy(R5, R3);
    assembler.compute(And, R5, stream::SEEN_WORDS as i32 - BLOCK_WORDS);
    assembler.compute(ShiftLeft, R5, 3);
    assembler.compute(Add, R5, R7);
    for place in 0..BLOCK_WORDS as usize {
        assembler.store_constant(Double, R5, word(stream::SEEN + place), 0);
    }
    assembler.compute(Add, R3, BLOCK_WORDS);
    assembler.compute(And, R3, stream::SEEN_WORDS as i32 - 1);
    assembler.compute(Add, R4, -1);
    assembler.jump(next);
    assembler.place(done);
}

/// Another run, which began with the frames of the possible beginning if there are any.
fn restart(assembler: &mut Assembler, seen: Label) {
    assembler.note("the sender began again");
    assembler.load(Double, R8, R7, word(stream::LOGGED));
    log(assembler);
    end_run(assembler);
    assembler.set(R3, 0);
    assembler.set(R4, stream::SEEN_WORDS as i32 / BLOCK_WORDS);
    clear_blocks(assembler);
    replay(assembler);
    assembler.jump(seen);
}

/// Ends the present run in front of the R4 frames of the possible beginning; R8, the place of the frame in the
/// log, becomes that of the first one of the next run.
pub(super) fn end_run(assembler: &mut Assembler) {
    let none = assembler.label("no_beginning");
    assembler.jump_if(R4, Equal, 0, none);
    for (present, kept) in KEPT {
        assembler.load(Double, R0, R7, word(kept));
        assembler.store(Double, R7, word(present), R0);
    }
    assembler.place(none);
    assembler.compute(Sub, R8, R4);
    assembler.compute(And, R8, stream::LOG_FRAMES as i32 - 1);
    assembler.load(Double, R0, R7, word(stream::EXPECTED));
    for which in [stream::LOWEST, stream::UNIQUE] {
        assembler.load(Double, R3, R7, word(which));
        assembler.compute(Sub, R0, R3);
    }
    assembler.load(Double, R3, R7, word(stream::LOST_BEFORE));
    assembler.compute(Add, R3, R0);
    assembler.store(Double, R7, word(stream::LOST_BEFORE), R3);
    add_one(assembler, R7, word(stream::RESTARTS), R0);
    assembler.store_constant(Double, R7, word(stream::BEGINNING), 0);
    assembler.store_constant(Double, R7, word(stream::EXPECTED), 0);
}
