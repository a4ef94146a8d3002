//! From bytes to what an instruction does.

use sys::bpf::Instruction;
use thiserror::Error;

use super::{
    ALU, ALU64, ATOMIC, Arithmetic, Atomic, ByteOrder, CALL, Comparison, EXIT, FETCH, Helper,
    IN_REGISTER, JMP, JMP32, KERNEL, LD, LDX, MEMORY, NEGATE, ORDER, Operand, Operation, Register,
    ST, STX, Size, WIDE, Width,
};

/// Bytes that are no instruction known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// There is no instruction at all.
    #[error("there is no instruction")]
    Empty,
    /// The second slot of a constant of 64 bits is missing, or is none.
    #[error("the second half of a constant of 64 bits is missing")]
    Half,
    /// The code, or what the code does not use.
    #[error("unknown instruction {0:?}")]
    Unknown(Instruction),
}

/// The operation at the beginning of `slots`.
///
/// # Errors
/// [`DecodeError`] for all that [`Operation::encode`] does not make.
pub fn decode(slots: &[Instruction]) -> Result<Operation, DecodeError> {
    let first = *slots.first().ok_or(DecodeError::Empty)?;
    let unknown = DecodeError::Unknown(first);
    let operation = match first.code & 0x07 {
        LD => {
            let second = slots.get(1).ok_or(DecodeError::Half)?;
            return wide(first, *second).ok_or(unknown);
        }
        LDX | ST | STX => memory(first),
        ALU => arithmetic(first, Width::Bits32),
        ALU64 => arithmetic(first, Width::Bits64),
        JMP => jump(first, Width::Bits64),
        JMP32 => jump(first, Width::Bits32),
        _ => None,
    };
    let operation = operation.ok_or(unknown)?;
    // What an operation has no use for is zero.
    if operation.encode().first == first { Ok(operation) } else { Err(unknown) }
}

fn wide(first: Instruction, second: Instruction) -> Option<Operation> {
    let destination = Register::of_number(first.destination())?;
    let (low, high) = (first.immediate.cast_unsigned(), second.immediate.cast_unsigned());
    let operation = match first.source() {
        0 => {
            let constant = u64::from(high) << 32 | u64::from(low);
            Operation::Wide { destination, constant }
        }
        Instruction::MAP => Operation::Map { destination, place: low },
        Instruction::MAP_VALUE => Operation::MapValue { destination, place: low, offset: high },
        _ => return None,
    };
    let slots = operation.encode();
    (first.code == WIDE && slots.first == first && slots.second == Some(second))
        .then_some(operation)
}

fn memory(instruction: Instruction) -> Option<Operation> {
    let Instruction { code, offset, immediate, .. } = instruction;
    let size = size(code);
    let destination = Register::of_number(instruction.destination())?;
    let source = Register::of_number(instruction.source())?;
    Some(match (code & 0x07, code & 0xe0) {
        (LDX, MEMORY) => Operation::Load { size, destination, base: source, offset },
        (ST, MEMORY) => {
            Operation::StoreConstant { size, base: destination, offset, constant: immediate }
        }
        (STX, MEMORY) => Operation::Store { size, base: destination, offset, source },
        (STX, ATOMIC) if matches!(size, Size::Word | Size::Double) => {
            let constant = u8::try_from(immediate).ok()?;
            let operator = atomic(constant & !FETCH)?;
            let fetches = constant & FETCH != 0;
            Operation::Atomic { size, operator, fetches, base: destination, offset, source }
        }
        _ => return None,
    })
}

fn arithmetic(instruction: Instruction, width: Width) -> Option<Operation> {
    let Instruction { code, immediate, .. } = instruction;
    let register = Register::of_number(instruction.destination())?;
    Some(match code & 0xf0 {
        NEGATE => Operation::Negate { width, register },
        ORDER => {
            let is_big = code & IN_REGISTER != 0;
            let order = if is_big { ByteOrder::Big } else { ByteOrder::Little };
            let size = match immediate {
                16 => Size::Half,
                32 => Size::Word,
                64 => Size::Double,
                _ => return None,
            };
            Operation::Order { order, size, register }
        }
        operator => Operation::Arithmetic {
            width,
            operator: operator_of(operator)?,
            destination: register,
            source: operand(instruction)?,
        },
    })
}

fn jump(instruction: Instruction, width: Width) -> Option<Operation> {
    let Instruction { code, offset: distance, immediate, .. } = instruction;
    Some(match (code & 0xf0, width) {
        (0, Width::Bits64) => Operation::Jump { distance },
        (CALL, Width::Bits64) if instruction.source() == KERNEL => {
            Operation::CallKernel { function: immediate }
        }
        (CALL, Width::Bits64) => Operation::Call { helper: Helper(immediate) },
        (EXIT, Width::Bits64) => Operation::Exit,
        (comparison, _) => Operation::JumpIf {
            width,
            comparison: comparison_of(comparison)?,
            left: Register::of_number(instruction.destination())?,
            right: operand(instruction)?,
            distance,
        },
    })
}

fn operand(instruction: Instruction) -> Option<Operand> {
    Some(match instruction.code & IN_REGISTER {
        0 => Operand::Constant(instruction.immediate),
        _ => Operand::Register(Register::of_number(instruction.source())?),
    })
}

fn size(code: u8) -> Size {
    match code & 0x18 {
        0x00 => Size::Word,
        0x08 => Size::Half,
        0x10 => Size::Byte,
        _ => Size::Double,
    }
}

fn operator_of(code: u8) -> Option<Arithmetic> {
    use Arithmetic::{
        Add, And, Div, Mod, Move, Mul, Or, ShiftLeft, ShiftRight, ShiftRightSigned, Sub, Xor,
    };
    [Add, Sub, Mul, Div, Or, And, ShiftLeft, ShiftRight, Mod, Xor, Move, ShiftRightSigned]
        .into_iter()
        .find(|operator| *operator as u8 == code)
}

fn comparison_of(code: u8) -> Option<Comparison> {
    use Comparison::{
        AnyBit, Equal, Greater, GreaterEqual, GreaterEqualSigned, GreaterSigned, Less, LessEqual,
        LessEqualSigned, LessSigned, NotEqual,
    };
    [
        Equal,
        Greater,
        GreaterEqual,
        AnyBit,
        NotEqual,
        GreaterSigned,
        GreaterEqualSigned,
        Less,
        LessEqual,
        LessSigned,
        LessEqualSigned,
    ]
    .into_iter()
    .find(|comparison| *comparison as u8 == code)
}

fn atomic(code: u8) -> Option<Atomic> {
    use Atomic::{Add, And, CompareExchange, Exchange, Or, Xor};
    [Add, Or, And, Xor, Exchange, CompareExchange]
        .into_iter()
        .find(|operator| *operator as u8 == code)
}
