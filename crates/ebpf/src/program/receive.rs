//! The program that receives: it filters, counts, follows stamps and measures times, and gives the frame back to
//! the host or drops it. The figures are those of the user plane's meter (crates/engine, `meter`) for frames
//! whose checksums are not known: none is verified here, and stamps of damaged frames are read.
//!
//! What each CPU counts, histograms among it, it counts by itself. A stream may come by several queues, so
//! its memory is under a lock, unless the caller knows that one CPU receives at a time.

mod find;
mod lock;
mod measure;
mod replay;
mod sequence;
mod state;

pub use state::{Figures, QUEUES_MAX, STREAMS_MAX, State, StreamFigures};

use filter::Program;

use crate::assembler::{Assembler, Label, MapPlace};
use crate::classic::from_classic;
use crate::operation::Register::{R0, R1, R2, R3, R6, R10};
use crate::operation::{Arithmetic, Atomic, Comparison, Helper, Operation, Size};
use crate::part::histogram::add_one;
use crate::part::{self, Packet, PartError, RX_QUEUE};
use crate::{Code, Verdict};
use state::{WORD_BYTES, common, lane};

// Places on the stack. The filter uses it before.
const NUMBER: i16 = -8;
const SENT: i16 = -16;
const STREAM: i16 = -24;
const ARRIVAL: i16 = -32;
const QUEUE: i16 = -40;

/// What is to be done with frames.
#[derive(Debug, Clone)]
pub struct Job {
    /// Frames that are wanted; all without it.
    pub filter: Option<Program>,
    /// How many of them; all without it.
    pub count: Option<u64>,
    /// What becomes of those that were counted.
    pub counted: Verdict,
    /// What becomes of all others.
    pub others: Verdict,
    /// Whether the program never runs on two CPUs at a time: then streams need no lock.
    pub is_alone: bool,
}

/// The maps of the program.
struct Maps {
    lanes: MapPlace,
    streams: MapPlace,
    common: MapPlace,
}

impl Job {
    /// The program, for the memory of `state`; it takes frames of several buffers, too.
    ///
    /// # Errors
    /// [`PartError`] for an invalid filter, or one that is too long.
    pub fn code(&self, state: &State) -> Result<Code, PartError> {
        let mut program = Assembler::new();
        let maps = Maps {
            lanes: program.declare_map("cpus"),
            streams: program.declare_map("streams"),
            common: program.declare_map("common"),
        };
        let [accept, reject, beyond, stamped, unstamped] =
            ["match", "no_match", "beyond_count", "stamped", "unstamped"]
                .map(|name| program.label(name));
        let packet = part::begin(&mut program, true);
        if let Some(filter) = &self.filter {
            from_classic(&mut program, filter, &packet, accept, reject)?;
        }
        program.place(accept);
        if let Some(count) = self.count {
            take(&mut program, &maps, count, beyond);
        }
        own_lane(&mut program, &maps, &packet, state, unstamped);
        count(&mut program, &packet);
        measure::arrival(&mut program, &maps);
        find::find(&mut program, stamped, unstamped);
        program.place(stamped);
        add_one(&mut program, R6, word(lane::STAMPED), R1);
        sequence::see(&mut program, &maps, !self.is_alone);
        measure::latency(&mut program);
        program.place(unstamped);
        part::end(&mut program, self.counted);
        // The verifier refuses what cannot be reached.
        if self.filter.is_some() {
            self.end_other(&mut program, &maps, &packet, state, (reject, lane::FILTERED));
        }
        if self.count.is_some() {
            self.end_other(&mut program, &maps, &packet, state, (beyond, lane::BEYOND_COUNT));
        }
        Ok(program.finish()?)
    }

    /// Counts a frame that is not wanted.
    fn end_other(
        &self,
        program: &mut Assembler,
        maps: &Maps,
        packet: &Packet,
        state: &State,
        (label, counter): (Label, usize),
    ) {
        let end = program.label("end");
        program.place(label);
        own_lane(program, maps, packet, state, end);
        add_one(program, R6, word(counter), R1);
        program.place(end);
        part::end(program, self.others);
    }
}

/// Goes to `beyond` if so many frames were taken before.
fn take(program: &mut Assembler, maps: &Maps, count: u64, beyond: Label) {
    program.note("whether it is one of those that are wanted");
    program.map_value(R1, maps.common, (common::TAKEN * WORD_BYTES) as u32);
    program.set(R2, 1);
    let (size, operator, fetches) = (Size::Double, Atomic::Add, true);
    program.push(Operation::Atomic { size, operator, fetches, base: R1, offset: 0, source: R2 });
    program.set_wide(R3, count);
    program.jump_if(R2, Comparison::GreaterEqual, R3, beyond);
}

/// R6, that was the context, becomes the memory of this CPU; the receive queue goes to the stack.
fn own_lane(
    program: &mut Assembler,
    maps: &Maps,
    packet: &Packet,
    state: &State,
    otherwise: Label,
) {
    program.note("memory of this CPU");
    program.load(Size::Word, R1, packet.context, RX_QUEUE);
    program.store(Size::Double, R10, QUEUE, R1);
    program.call(Helper::CPU);
    program.jump_if(R0, Comparison::GreaterEqual, state.cpus() as i32, otherwise);
    program.compute(Arithmetic::Mul, R0, (lane::WORDS * WORD_BYTES) as i32);
    program.map_value(R6, maps.lanes, 0);
    program.compute(Arithmetic::Add, R6, R0);
}

fn count(program: &mut Assembler, packet: &Packet) {
    add_one(program, R6, word(lane::PACKETS), R1);
    if let Some(length) = packet.length {
        program.load(Size::Double, R1, R6, word(lane::BYTES));
        program.compute(Arithmetic::Add, R1, length);
        program.store(Size::Double, R6, word(lane::BYTES), R1);
    }
}

/// Where a word is, in bytes.
const fn word(place: usize) -> i16 {
    (place * WORD_BYTES) as i16
}
