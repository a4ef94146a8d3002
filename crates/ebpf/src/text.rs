//! Instructions in the notation of `bpftool prog dump xlated`, which is that of the verifier's log.

use std::fmt;

use crate::operation::{
    Arithmetic, Atomic, ByteOrder, Comparison, Operand, Operation, Register, Size, Width,
};

impl fmt::Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", *self as u8)
    }
}

/// A register as an operation of this width names it.
struct Part(Width, Register);

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = if self.0 == Width::Bits32 { 'w' } else { 'r' };
        write!(f, "{letter}{}", self.1 as u8)
    }
}

fn operand(width: Width, operand: Operand) -> String {
    match operand {
        Operand::Register(register) => Part(width, register).to_string(),
        Operand::Constant(constant) => constant.to_string(),
    }
}

/// A constant that is compared or combined bit by bit.
fn bits(width: Width, of: Operand) -> String {
    match of {
        Operand::Constant(constant) => format!("0x{constant:x}"),
        Operand::Register(_) => operand(width, of),
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Arithmetic { width, operator, destination, source } => {
                let to = Part(width, destination);
                write!(f, "{to} {} {}", symbol(operator), operand(width, source))
            }
            Self::Negate { width, register } => {
                let register = Part(width, register);
                write!(f, "{register} = -{register}")
            }
            Self::Order { order, size, register } => {
                let name = if order == ByteOrder::Big { "be" } else { "le" };
                write!(f, "{register} = {name}{} {register}", size_bits(size))
            }
            Self::Wide { destination, constant } => write!(f, "{destination} = 0x{constant:x}"),
            Self::Map { destination, place } => write!(f, "{destination} = map[{place}]"),
            Self::MapValue { destination, place, offset } => {
                write!(f, "{destination} = map[{place}][0]+{offset}")
            }
            Self::Load { size, destination, base, offset } => {
                write!(f, "{destination} = *({} *)({base} {offset:+})", size_type(size))
            }
            Self::Store { size, base, offset, source } => {
                write!(f, "*({} *)({base} {offset:+}) = {source}", size_type(size))
            }
            Self::StoreConstant { size, base, offset, constant } => {
                write!(f, "*({} *)({base} {offset:+}) = {constant}", size_type(size))
            }
            Self::Atomic { .. } => atomic(self, f),
            Self::Jump { distance } => write!(f, "goto pc{distance:+}"),
            Self::JumpIf { width, comparison, left, right, distance } => {
                let (left, right) = (Part(width, left), bits(width, right));
                write!(f, "if {left} {} {right} goto pc{distance:+}", sign(comparison))
            }
            Self::Call { helper } => match helper.name() {
                Some(name) => write!(f, "call {name}#{}", helper.0),
                None => write!(f, "call unknown#{}", helper.0),
            },
            Self::CallKernel { function } => write!(f, "call kernel-function#{function}"),
            Self::Exit => f.write_str("exit"),
        }
    }
}

fn atomic(operation: &Operation, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Operation::Atomic { size, operator, fetches, base, offset, source } = *operation else {
        return Ok(());
    };
    let bits = if size == Size::Double { "64" } else { "" };
    let name = match operator {
        Atomic::Exchange => {
            return write!(f, "{source} = atomic{bits}_xchg({base} {offset:+}, {source})");
        }
        Atomic::CompareExchange => {
            return write!(f, "r0 = atomic{bits}_cmpxchg({base} {offset:+}, r0, {source})");
        }
        Atomic::Add => ("add", "+="),
        Atomic::Or => ("or", "|="),
        Atomic::And => ("and", "&="),
        Atomic::Xor => ("xor", "^="),
    };
    if fetches {
        let name = name.0;
        return write!(f, "{source} = atomic{bits}_fetch_{name}({base} {offset:+}, {source})");
    }
    write!(f, "lock *({} *)({base} {offset:+}) {} {source}", size_type(size), name.1)
}

fn symbol(operator: Arithmetic) -> &'static str {
    match operator {
        Arithmetic::Add => "+=",
        Arithmetic::Sub => "-=",
        Arithmetic::Mul => "*=",
        Arithmetic::Div => "/=",
        Arithmetic::Or => "|=",
        Arithmetic::And => "&=",
        Arithmetic::ShiftLeft => "<<=",
        Arithmetic::ShiftRight => ">>=",
        Arithmetic::Mod => "%=",
        Arithmetic::Xor => "^=",
        Arithmetic::Move => "=",
        Arithmetic::ShiftRightSigned => "s>>=",
    }
}

fn sign(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Equal => "==",
        Comparison::Greater => ">",
        Comparison::GreaterEqual => ">=",
        Comparison::AnyBit => "&",
        Comparison::NotEqual => "!=",
        Comparison::GreaterSigned => "s>",
        Comparison::GreaterEqualSigned => "s>=",
        Comparison::Less => "<",
        Comparison::LessEqual => "<=",
        Comparison::LessSigned => "s<",
        Comparison::LessEqualSigned => "s<=",
    }
}

fn size_bits(size: Size) -> u32 {
    match size {
        Size::Byte => 8,
        Size::Half => 16,
        Size::Word => 32,
        Size::Double => 64,
    }
}

fn size_type(size: Size) -> &'static str {
    match size {
        Size::Byte => "u8",
        Size::Half => "u16",
        Size::Word => "u32",
        Size::Double => "u64",
    }
}
