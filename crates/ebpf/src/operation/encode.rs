//! From what an instruction does to its bytes.

use sys::bpf::Instruction;

use super::{
    ALU, ALU64, ATOMIC, Arithmetic, ByteOrder, CALL, EXIT, FETCH, IN_REGISTER, JMP, JMP32, KERNEL,
    LDX, MEMORY, NEGATE, ORDER, Operand, Operation, Register, ST, STX, Size, WIDE, Width,
};

/// The one or two slots of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slots {
    /// The first one.
    pub first: Instruction,
    /// The second one, of a constant of 64 bits.
    pub second: Option<Instruction>,
}

impl Operation {
    /// Its slots.
    pub fn encode(&self) -> Slots {
        match *self {
            Self::Wide { destination, constant } => {
                wide(destination, 0, constant as u32, (constant >> 32) as u32)
            }
            Self::Map { destination, place } => wide(destination, Instruction::MAP, place, 0),
            Self::MapValue { destination, place, offset } => {
                wide(destination, Instruction::MAP_VALUE, place, offset)
            }
            _ => Slots { first: self.single(), second: None },
        }
    }

    fn single(&self) -> Instruction {
        match *self {
            Self::Arithmetic { width, operator, destination, source } => {
                arithmetic(width, operator, destination, source)
            }
            Self::Negate { width, register } => {
                Instruction::new(class(width) | NEGATE, register as u8, 0, 0, 0)
            }
            Self::Order { order, size, register } => {
                let order = if order == ByteOrder::Big { IN_REGISTER } else { 0 };
                Instruction::new(ALU | ORDER | order, register as u8, 0, 0, bits(size))
            }
            Self::Load { size, destination, base, offset } => {
                let code = LDX | MEMORY | size as u8;
                Instruction::new(code, destination as u8, base as u8, offset, 0)
            }
            Self::Store { size, base, offset, source } => {
                Instruction::new(STX | MEMORY | size as u8, base as u8, source as u8, offset, 0)
            }
            Self::StoreConstant { size, base, offset, constant } => {
                Instruction::new(ST | MEMORY | size as u8, base as u8, 0, offset, constant)
            }
            Self::Atomic { size, operator, fetches, base, offset, source } => {
                let fetch = if fetches || operator.always_fetches() { FETCH } else { 0 };
                let code = STX | ATOMIC | size as u8;
                let constant = i32::from(operator as u8 | fetch);
                Instruction::new(code, base as u8, source as u8, offset, constant)
            }
            Self::Jump { distance } => Instruction::new(JMP, 0, 0, distance, 0),
            Self::JumpIf { width, comparison, left, right, distance } => {
                let class = if width == Width::Bits32 { JMP32 } else { JMP };
                let (mode, source, constant) = operand(right);
                let code = class | mode | comparison as u8;
                Instruction::new(code, left as u8, source, distance, constant)
            }
            Self::Call { helper } => Instruction::new(JMP | CALL, 0, 0, 0, helper.0),
            Self::CallKernel { function } => Instruction::new(JMP | CALL, 0, KERNEL, 0, function),
            // The others have two slots.
            Self::Exit | Self::Wide { .. } | Self::Map { .. } | Self::MapValue { .. } => {
                Instruction::new(JMP | EXIT, 0, 0, 0, 0)
            }
        }
    }
}

fn arithmetic(
    width: Width,
    operator: Arithmetic,
    destination: Register,
    source: Operand,
) -> Instruction {
    let (mode, register, constant) = operand(source);
    let code = class(width) | mode | operator as u8;
    Instruction::new(code, destination as u8, register, 0, constant)
}

fn class(width: Width) -> u8 {
    if width == Width::Bits32 { ALU } else { ALU64 }
}

fn operand(operand: Operand) -> (u8, u8, i32) {
    match operand {
        Operand::Register(register) => (IN_REGISTER, register as u8, 0),
        Operand::Constant(constant) => (0, 0, constant),
    }
}

/// Bits of a value that is put in an order.
fn bits(size: Size) -> i32 {
    match size {
        Size::Byte => 8,
        Size::Half => 16,
        Size::Word => 32,
        Size::Double => 64,
    }
}

fn wide(destination: Register, source: u8, low: u32, high: u32) -> Slots {
    Slots {
        first: Instruction::new(WIDE, destination as u8, source, 0, low.cast_signed()),
        second: Some(Instruction::new(0, 0, 0, 0, high.cast_signed())),
    }
}
