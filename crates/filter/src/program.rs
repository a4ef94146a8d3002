//! Classic BPF: a filter as instructions that libpcap and the kernel run.
//!
//! The machine has an accumulator A, an index register X and 16 words of memory M, 0 to 15
//! (linux/Documentation/networking/filter.rst, McCanne and Jacobson 1993). Jumps lead forward only, by up to
//! 255 instructions if they ask something.

mod emit;
#[cfg(test)]
mod tests;
mod text;

use std::fmt;

use crate::graph::Graph;

/// One instruction, as in `struct sock_filter` of include/uapi/linux/filter.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Instruction {
    /// What is done.
    pub code: u16,
    /// Instructions passed over if the answer is yes,
    pub jt: u8,
    /// and if it is no.
    pub jf: u8,
    /// A constant, offset or jump.
    pub k: u32,
}

impl Instruction {
    pub(crate) fn new(code: u16, k: u32) -> Self {
        Self { code, jt: 0, jf: 0, k }
    }
}

/// What a matching packet's verdict is: so many bytes of it are kept, all that the kernel may hand over.
pub const KEEP_BYTES: u32 = 262_144;

/// Instructions that the kernel takes at most (`BPF_MAXINSNS`).
pub const KERNEL_INSTRUCTIONS_MAX: usize = 4_096;

/// Words of memory of the machine (`BPF_MEMWORDS`).
pub(crate) const MEMORY_WORDS: u32 = 16;

/// A filter's instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program(pub Vec<Instruction>);

impl Program {
    /// `None` if an expression needs more words of memory than the machine has.
    pub(crate) fn of(graph: &Graph) -> Option<Self> {
        emit::emit(graph).map(Self)
    }
}

impl fmt::Display for Program {
    /// One instruction a line, in the notation of `tcpdump -d`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, instruction) in self.0.iter().enumerate() {
            writeln!(f, "({place:03}) {}", text::text(place, instruction))?;
        }
        Ok(())
    }
}

// Classes, sizes, modes and operations of include/uapi/linux/bpf_common.h.
pub(crate) const LD: u16 = 0x00;
pub(crate) const LDX: u16 = 0x01;
pub(crate) const ST: u16 = 0x02;
pub(crate) const STX: u16 = 0x03;
pub(crate) const ALU: u16 = 0x04;
pub(crate) const JMP: u16 = 0x05;
pub(crate) const RET: u16 = 0x06;
pub(crate) const MISC: u16 = 0x07;
pub(crate) const W: u16 = 0x00;
pub(crate) const H: u16 = 0x08;
pub(crate) const B: u16 = 0x10;
pub(crate) const IMM: u16 = 0x00;
pub(crate) const ABS: u16 = 0x20;
pub(crate) const IND: u16 = 0x40;
pub(crate) const MEM: u16 = 0x60;
pub(crate) const LEN: u16 = 0x80;
pub(crate) const MSH: u16 = 0xa0;
pub(crate) const X: u16 = 0x08;
pub(crate) const JA: u16 = 0x00;
pub(crate) const JEQ: u16 = 0x10;
pub(crate) const JGT: u16 = 0x20;
pub(crate) const JGE: u16 = 0x30;
pub(crate) const JSET: u16 = 0x40;
pub(crate) const TAX: u16 = 0x00;
