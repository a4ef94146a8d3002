//! What instructions do, and how they are written in eight bytes (RFC 9669).

mod decode;
mod encode;

pub use decode::{DecodeError, decode};
pub use encode::Slots;

/// A register of the machine: R0 holds results, R1 to R5 arguments (a call loses them), R6 to R9 outlive
/// calls, R10 points behind the stack of 512 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[expect(missing_docs, reason = "they are numbers")]
pub enum Register {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    R10,
}

impl Register {
    /// All of them, in order.
    pub const ALL: [Self; 11] = [
        Self::R0,
        Self::R1,
        Self::R2,
        Self::R3,
        Self::R4,
        Self::R5,
        Self::R6,
        Self::R7,
        Self::R8,
        Self::R9,
        Self::R10,
    ];

    fn of_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

/// The second operand of arithmetic and comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operand {
    /// What a register holds.
    Register(Register),
    /// A constant; operations on 64 bits extend its sign.
    Constant(i32),
}

impl From<Register> for Operand {
    fn from(register: Register) -> Self {
        Self::Register(register)
    }
}

impl From<i32> for Operand {
    fn from(constant: i32) -> Self {
        Self::Constant(constant)
    }
}

/// How many bits of registers an operation is about. What is computed in 32 bits has 32 zeros above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "they are numbers")]
pub enum Width {
    Bits32,
    Bits64,
}

/// What is computed from the destination and an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Arithmetic {
    /// `+=`
    Add = 0x00,
    /// `-=`
    Sub = 0x10,
    /// `*=`
    Mul = 0x20,
    /// `/=` without sign; by 0 it gives 0.
    Div = 0x30,
    /// `|=`
    Or = 0x40,
    /// `&=`
    And = 0x50,
    /// `<<=`; only the lower 5 or 6 bits of the amount count.
    ShiftLeft = 0x60,
    /// `>>=` without sign; only the lower 5 or 6 bits of the amount count.
    ShiftRight = 0x70,
    /// `%=` without sign; by 0 it changes nothing.
    Mod = 0x90,
    /// `^=`
    Xor = 0xa0,
    /// `=`
    Move = 0xb0,
    /// `>>=` with sign; only the lower 5 or 6 bits of the amount count.
    ShiftRightSigned = 0xc0,
}

/// What a jump asks about two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Comparison {
    /// `==`
    Equal = 0x10,
    /// `>`
    Greater = 0x20,
    /// `>=`
    GreaterEqual = 0x30,
    /// `&`: a common bit.
    AnyBit = 0x40,
    /// `!=`
    NotEqual = 0x50,
    /// `>` with sign
    GreaterSigned = 0x60,
    /// `>=` with sign
    GreaterEqualSigned = 0x70,
    /// `<`
    Less = 0xa0,
    /// `<=`
    LessEqual = 0xb0,
    /// `<` with sign
    LessSigned = 0xc0,
    /// `<=` with sign
    LessEqualSigned = 0xd0,
}

impl Comparison {
    /// What holds exactly where this does not; `None` for [`Comparison::AnyBit`].
    pub fn opposite(self) -> Option<Self> {
        Some(match self {
            Self::Equal => Self::NotEqual,
            Self::NotEqual => Self::Equal,
            Self::Greater => Self::LessEqual,
            Self::LessEqual => Self::Greater,
            Self::GreaterEqual => Self::Less,
            Self::Less => Self::GreaterEqual,
            Self::GreaterSigned => Self::LessEqualSigned,
            Self::LessEqualSigned => Self::GreaterSigned,
            Self::GreaterEqualSigned => Self::LessSigned,
            Self::LessSigned => Self::GreaterEqualSigned,
            Self::AnyBit => return None,
        })
    }
}

/// How much is read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Size {
    /// 4 bytes
    Word = 0x00,
    /// 2 bytes
    Half = 0x08,
    /// 1 byte
    Byte = 0x10,
    /// 8 bytes
    Double = 0x18,
}

/// What is done to memory in one step that no other CPU sees the middle of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Atomic {
    /// `+=`
    Add = 0x00,
    /// `|=`
    Or = 0x40,
    /// `&=`
    And = 0x50,
    /// `^=`
    Xor = 0xa0,
    /// Takes the source's value, and the source takes the old one.
    Exchange = 0xe0,
    /// Takes the source's value if it was that of R0; R0 takes the old one.
    CompareExchange = 0xf0,
}

impl Atomic {
    /// Whether it always gives the old value back.
    pub fn always_fetches(self) -> bool {
        matches!(self, Self::Exchange | Self::CompareExchange)
    }
}

/// In which order bytes are put.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// As on the network.
    Big,
}

/// A function of the kernel that programs may call, by its number in include/uapi/linux/bpf.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Helper(pub i32);

/// The helpers that have names here.
const HELPERS: [(Helper, &str); 15] = [
    (Helper::MAP_LOOKUP, "bpf_map_lookup_elem"),
    (Helper::MAP_UPDATE, "bpf_map_update_elem"),
    (Helper::MAP_DELETE, "bpf_map_delete_elem"),
    (Helper::TIME_NS, "bpf_ktime_get_ns"),
    (Helper::RANDOM, "bpf_get_prandom_u32"),
    (Helper::CPU, "bpf_get_smp_processor_id"),
    (Helper::REDIRECT, "bpf_redirect"),
    (Helper::CHECKSUM_DIFFERENCE, "bpf_csum_diff"),
    (Helper::ADJUST_HEAD, "bpf_xdp_adjust_head"),
    (Helper::REDIRECT_MAP, "bpf_redirect_map"),
    (Helper::ADJUST_META, "bpf_xdp_adjust_meta"),
    (Helper::ADJUST_TAIL, "bpf_xdp_adjust_tail"),
    (Helper::FIB_LOOKUP, "bpf_fib_lookup"),
    (Helper::FRAME_BYTES, "bpf_xdp_get_buff_len"),
    (Helper::TIME_TAI_NS, "bpf_ktime_get_tai_ns"),
];

impl Helper {
    /// Value of a key in a map: R1 map, R2 key; R0 its address or 0.
    pub const MAP_LOOKUP: Self = Self(1);
    /// R1 map, R2 key, R3 value, R4 flags.
    pub const MAP_UPDATE: Self = Self(2);
    /// R1 map, R2 key.
    pub const MAP_DELETE: Self = Self(3);
    /// Nanoseconds of `CLOCK_MONOTONIC`.
    pub const TIME_NS: Self = Self(5);
    /// 32 random bits.
    pub const RANDOM: Self = Self(7);
    /// Number of the CPU.
    pub const CPU: Self = Self(8);
    /// To an interface: R1 its number, R2 flags.
    pub const REDIRECT: Self = Self(23);
    /// R1 old bytes, R2 how many, R3 new bytes, R4 how many, R5 sum so far.
    pub const CHECKSUM_DIFFERENCE: Self = Self(28);
    /// R1 context, R2 bytes that the beginning moves.
    pub const ADJUST_HEAD: Self = Self(44);
    /// To what a map has under a number: R1 map, R2 number, R3 flags; the lower bits of the flags are the
    /// verdict where it has nothing.
    pub const REDIRECT_MAP: Self = Self(51);
    /// R1 context, R2 bytes that the metadata before the frame grows by, negative.
    pub const ADJUST_META: Self = Self(54);
    /// R1 context, R2 bytes that the end moves.
    pub const ADJUST_TAIL: Self = Self(65);
    /// R1 context, R2 what is looked up, R3 its length, R4 flags.
    pub const FIB_LOOKUP: Self = Self(69);
    /// Bytes of the frame in all of its buffers: R1 context (Linux 5.18).
    pub const FRAME_BYTES: Self = Self(188);
    /// Nanoseconds of `CLOCK_TAI` (Linux 6.1).
    pub const TIME_TAI_NS: Self = Self(208);

    /// The kernel's name of it.
    pub fn name(self) -> Option<&'static str> {
        HELPERS.iter().find(|(helper, _)| *helper == self).map(|(_, name)| *name)
    }
}

/// An instruction, by what it does. Distances of jumps are slots from the one behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "fields are named after their part")]
pub enum Operation {
    Arithmetic {
        width: Width,
        operator: Arithmetic,
        destination: Register,
        source: Operand,
    },
    /// `r = -r`
    Negate {
        width: Width,
        register: Register,
    },
    /// Puts the lower `size` of a register in an order, and zeros above; not for [`Size::Byte`].
    Order {
        order: ByteOrder,
        size: Size,
        register: Register,
    },
    /// A constant of 64 bits. Two slots.
    Wide {
        destination: Register,
        constant: u64,
    },
    /// A map, by its place among the program's. Two slots.
    Map {
        destination: Register,
        place: u32,
    },
    /// The address of a byte in the value of a map that is an array of one entry. Two slots.
    MapValue {
        destination: Register,
        place: u32,
        offset: u32,
    },
    Load {
        size: Size,
        destination: Register,
        base: Register,
        offset: i16,
    },
    Store {
        size: Size,
        base: Register,
        offset: i16,
        source: Register,
    },
    StoreConstant {
        size: Size,
        base: Register,
        offset: i16,
        constant: i32,
    },
    /// `size` is [`Size::Word`] or [`Size::Double`]; `fetches` puts the old value into the source.
    Atomic {
        size: Size,
        operator: Atomic,
        fetches: bool,
        base: Register,
        offset: i16,
        source: Register,
    },
    Jump {
        distance: i16,
    },
    JumpIf {
        width: Width,
        comparison: Comparison,
        left: Register,
        right: Operand,
        distance: i16,
    },
    Call {
        helper: Helper,
    },
    /// A function of the kernel by the number of its type in the kernel's BTF.
    CallKernel {
        function: i32,
    },
    Exit,
}

impl Operation {
    /// Slots that it takes.
    pub fn slots(&self) -> usize {
        match self {
            Self::Wide { .. } | Self::Map { .. } | Self::MapValue { .. } => 2,
            _ => 1,
        }
    }
}

// Classes and modes of include/uapi/linux/bpf.h and bpf_common.h.
const LD: u8 = 0x00;
const LDX: u8 = 0x01;
const ST: u8 = 0x02;
const STX: u8 = 0x03;
const ALU: u8 = 0x04;
const JMP: u8 = 0x05;
const JMP32: u8 = 0x06;
const ALU64: u8 = 0x07;
const MEMORY: u8 = 0x60;
const ATOMIC: u8 = 0xc0;
const IN_REGISTER: u8 = 0x08;
const NEGATE: u8 = 0x80;
const ORDER: u8 = 0xd0;
const CALL: u8 = 0x80;
const EXIT: u8 = 0x90;
const WIDE: u8 = 0x18;
/// Of an atomic operation's constant (`BPF_FETCH`).
const FETCH: u8 = 0x01;
/// Source of a call that means a function of the kernel (`BPF_PSEUDO_KFUNC_CALL`).
const KERNEL: u8 = 2;
