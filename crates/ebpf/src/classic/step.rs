//! Instructions of classic BPF, by what they do.

use filter::{Instruction, Program};

use super::{ClassicError, FRAME_BYTES_MAX};
use crate::operation::{Arithmetic, Comparison, Size};

/// The second operand of arithmetic and tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Constant(u32),
    Index,
}

/// What becomes of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Accept,
    Reject,
    /// It is accepted unless A is 0.
    ByA,
}

/// What an instruction does with A, the index X and the words of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// A gets bytes of the frame.
    Load {
        size: Size,
        offset: u32,
    },
    /// A gets bytes of the frame that lie X further on.
    LoadIndexed {
        size: Size,
        offset: u32,
    },
    /// What no frame has, or nobody knows: it ends the filter.
    Never,
    Constant(u32),
    Length,
    /// The number of the interface.
    Interface,
    Memory(u32),
    IndexConstant(u32),
    IndexLength,
    IndexMemory(u32),
    /// X gets the length of the IPv4 header at an offset.
    IndexHeader(u32),
    Store(u32),
    StoreIndex(u32),
    Compute(Arithmetic, Source),
    Negate,
    ToIndex,
    FromIndex,
    Jump(usize),
    Test {
        comparison: Comparison,
        source: Source,
        yes: usize,
        no: usize,
    },
    Return(Answer),
}

/// Words of memory (`BPF_MEMWORDS`).
const WORDS: u32 = 16;
/// From here on offsets mean facts about a frame (`SKF_AD_OFF`): its direction is one, its interface another.
const PACKET_TYPE: u32 = 0xffff_f004;
const INTERFACE: u32 = 0xffff_f008;

/// Whether a filter asks for the length of frames.
pub fn uses_length(program: &Program) -> bool {
    const LENGTH: [u16; 2] = [0x80, 0x81];
    program.0.iter().any(|instruction| LENGTH.contains(&instruction.code))
}

/// The steps of a program, each checked by itself.
pub(super) fn steps(program: &Program) -> Result<Vec<Step>, ClassicError> {
    if program.0.is_empty() {
        return Err(ClassicError::Empty);
    }
    let length = program.0.len();
    let step = |(place, instruction): (usize, &Instruction)| {
        let Instruction { code, k, .. } = *instruction;
        let step = step(place, instruction).ok_or(ClassicError::Unknown { place, code, k })?;
        let leaves = match step {
            Step::Jump(target) => target >= length,
            Step::Test { yes, no, .. } => yes.max(no) >= length,
            Step::Return(_) => false,
            _ => place + 1 == length,
        };
        if leaves { Err(ClassicError::Outside { place }) } else { Ok(step) }
    };
    program.0.iter().enumerate().map(step).collect()
}

fn step(place: usize, instruction: &Instruction) -> Option<Step> {
    let Instruction { code, jt, jf, k } = *instruction;
    let word = (k < WORDS).then_some(k);
    Some(match code {
        0x00 => Step::Constant(k),
        // Facts are whole whatever size is asked for (convert_bpf_extensions, net/core/filter.c).
        0x20 | 0x28 | 0x30 if k == INTERFACE => Step::Interface,
        // XDP sees received frames; to whom they are addressed is not known here.
        0x20 | 0x28 | 0x30 if k == PACKET_TYPE => Step::Constant(0),
        0x20 | 0x28 | 0x30 => {
            let size = size(code);
            within(k, size, Step::Load { size, offset: k })
        }
        0x40 | 0x48 | 0x50 => {
            let size = size(code);
            within(k, size, Step::LoadIndexed { size, offset: k })
        }
        0x60 => Step::Memory(word?),
        0x80 => Step::Length,
        0x01 => Step::IndexConstant(k),
        0x61 => Step::IndexMemory(word?),
        0x81 => Step::IndexLength,
        0xb1 => within(k, Size::Byte, Step::IndexHeader(k)),
        0x02 => Step::Store(word?),
        0x03 => Step::StoreIndex(word?),
        0x84 => Step::Negate,
        0x06 => Step::Return(if k == 0 { Answer::Reject } else { Answer::Accept }),
        0x16 => Step::Return(Answer::ByA),
        0x07 => Step::ToIndex,
        0x87 => Step::FromIndex,
        0x05 => Step::Jump(place.checked_add(1)?.checked_add(k as usize)?),
        _ if code & 0x07 == 0x04 => return compute(code, k),
        _ if code & 0x07 == 0x05 => {
            let comparison = match code & 0xf0 {
                0x10 => Comparison::Equal,
                0x20 => Comparison::Greater,
                0x30 => Comparison::GreaterEqual,
                0x40 => Comparison::AnyBit,
                _ => return None,
            };
            let target = |jump: u8| place + 1 + usize::from(jump);
            Step::Test { comparison, source: source(code, k), yes: target(jt), no: target(jf) }
        }
        _ => return None,
    })
}

fn compute(code: u16, k: u32) -> Option<Step> {
    let operator = match code & 0xf0 {
        0x00 => Arithmetic::Add,
        0x10 => Arithmetic::Sub,
        0x20 => Arithmetic::Mul,
        0x30 => Arithmetic::Div,
        0x40 => Arithmetic::Or,
        0x50 => Arithmetic::And,
        0x60 => Arithmetic::ShiftLeft,
        0x70 => Arithmetic::ShiftRight,
        0x90 => Arithmetic::Mod,
        0xa0 => Arithmetic::Xor,
        _ => return None,
    };
    let source = source(code, k);
    let is_valid = match (operator, source) {
        (Arithmetic::Div | Arithmetic::Mod, Source::Constant(k)) => k != 0,
        (Arithmetic::ShiftLeft | Arithmetic::ShiftRight, Source::Constant(k)) => k < 32,
        _ => true,
    };
    (is_valid && code & 0xff07 == 0x04).then_some(Step::Compute(operator, source))
}

fn source(code: u16, k: u32) -> Source {
    if code & 0x08 == 0 { Source::Constant(k) } else { Source::Index }
}

fn size(code: u16) -> Size {
    match code & 0x18 {
        0x08 => Size::Half,
        0x10 => Size::Byte,
        _ => Size::Word,
    }
}

/// `step`, if a frame can have these bytes.
fn within(offset: u32, size: Size, step: Step) -> Step {
    let fits = offset.checked_add(bytes(size)).is_some_and(|end| end <= FRAME_BYTES_MAX);
    if fits { step } else { Step::Never }
}

pub(super) fn bytes(size: Size) -> u32 {
    match size {
        Size::Byte => 1,
        Size::Half => 2,
        Size::Word => 4,
        Size::Double => 8,
    }
}

impl Step {
    pub(super) fn asks_length(&self) -> bool {
        matches!(self, Self::Length | Self::IndexLength)
    }

    /// Whether it gives X another value.
    pub(super) fn sets_index(&self) -> bool {
        matches!(
            self,
            Self::IndexConstant(_)
                | Self::IndexLength
                | Self::IndexMemory(_)
                | Self::IndexHeader(_)
                | Self::ToIndex
        )
    }

    /// Bytes that a frame must have for it.
    pub(super) fn needs(&self) -> u32 {
        match *self {
            Self::Load { size, offset } => offset + bytes(size),
            Self::IndexHeader(offset) => offset + 1,
            Self::Never => u32::MAX,
            _ => 0,
        }
    }

    /// Bytes that a frame must have behind X for it.
    pub(super) fn needs_indexed(&self) -> u32 {
        match *self {
            Self::LoadIndexed { size, offset } => offset + bytes(size),
            _ => 0,
        }
    }

    /// Whether control does not go on to the next step.
    pub(super) fn ends(&self) -> bool {
        matches!(self, Self::Jump(_) | Self::Test { .. } | Self::Return(_))
    }
}
