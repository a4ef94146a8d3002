//! Counting frames and bytes, by each CPU in a place of its own.

use sys::bpf::{Map, MapSpec, SharedArray, possible_cpus};

use super::Packet;
use crate::assembler::{Assembler, MapPlace};
use crate::operation::Register::{R0, R1, R2};
use crate::operation::{Arithmetic, Comparison, Helper, Size};

/// Words that a CPU has to itself: a line of the cache and the one that is fetched along with it.
const WORDS_PER_CPU: u32 = 16;
const WORD_BYTES: u32 = 8;
/// Of each counter there are two: frames and bytes.
const WORDS_PER_COUNTER: u32 = 2;
/// Counters that there is room for.
const COUNTERS: u32 = WORDS_PER_CPU / WORDS_PER_COUNTER;

/// Up to eight counters of frames and bytes that a program adds to and this process reads without a call.
#[derive(Debug)]
pub struct Counters {
    map: Map,
    shared: SharedArray,
    cpus: u32,
}

impl Counters {
    /// All of them 0.
    ///
    /// # Errors
    /// As [`Map::create`].
    pub fn create(name: &str) -> sys::Result<Self> {
        let cpus = possible_cpus()? as u32;
        let map = Map::create(&MapSpec::mappable(name, cpus * WORDS_PER_CPU * WORD_BYTES, 1))?;
        Ok(Self { shared: SharedArray::of(&map)?, map, cpus })
    }

    /// The map, for loading the program.
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// CPUs that count.
    pub fn cpus(&self) -> u32 {
        self.cpus
    }

    /// Frames and bytes of a counter, of all CPUs. While they count, the two may be a frame apart.
    pub fn read(&self, counter: u32) -> (u64, u64) {
        let sum = |which: u32| {
            let word = |cpu: u32| cpu * WORDS_PER_CPU + counter * WORDS_PER_COUNTER + which;
            (0..self.cpus).map(|cpu| self.shared.get(0, word(cpu) as usize)).sum()
        };
        if counter < COUNTERS { (sum(0), sum(1)) } else { (0, 0) }
    }
}

/// Adds the frame to a counter of `map`, the place of a map of [`Counters`]; its bytes only if the program
/// began with the length.
pub fn count(
    assembler: &mut Assembler,
    packet: &Packet,
    map: MapPlace,
    counters: &Counters,
    counter: u32,
) {
    debug_assert!(counter < COUNTERS);
    let counter = counter.min(COUNTERS - 1);
    assembler.note(format!("counter {counter}"));
    let counted = assembler.label("counted");
    assembler.call(Helper::CPU);
    assembler.jump_if(R0, Comparison::GreaterEqual, counters.cpus.cast_signed(), counted);
    let stride = (WORDS_PER_CPU * WORD_BYTES).cast_signed();
    assembler.compute(Arithmetic::Mul, R0, stride);
    assembler.map_value(R1, map, counter * WORDS_PER_COUNTER * WORD_BYTES);
    assembler.compute(Arithmetic::Add, R1, R0);
    // A program is not interrupted by another one on the same CPU: no atomic addition is needed.
    assembler.load(Size::Double, R2, R1, 0);
    assembler.compute(Arithmetic::Add, R2, 1);
    assembler.store(Size::Double, R1, 0, R2);
    if let Some(length) = packet.length {
        assembler.load(Size::Double, R2, R1, WORD_BYTES as i16);
        assembler.compute(Arithmetic::Add, R2, length);
        assembler.store(Size::Double, R1, WORD_BYTES as i16, R2);
    }
    assembler.place(counted);
}
