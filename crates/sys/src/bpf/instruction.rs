//! One instruction, as the kernel's `struct bpf_insn`.

/// `BPF_LD | BPF_IMM | BPF_DW`: an instruction of two slots that loads 64 bits.
pub(super) const LOAD_64: u8 = 0x18;

/// Eight bytes: operation, two registers, an offset and a constant (include/uapi/linux/bpf.h; the
/// instruction set is RFC 9669).
///
/// A load of 64 bits (code 0x18) takes two of them. Where its source register is
/// [`Instruction::MAP`], its constant is a map's place in [`super::ProgramSpec::maps`]; with
/// [`Instruction::MAP_VALUE`] it is the address of that map's only value, plus the constant of the
/// second slot. Those are the kernel's own numbers for maps by place.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Instruction {
    /// Class, size, mode and operation.
    pub code: u8,
    registers: u8,
    /// Distance of a jump in slots after this one, or of memory in bytes.
    pub offset: i16,
    /// Constant operand.
    pub immediate: i32,
}

const _: () = assert!(size_of::<Instruction>() == 8 && align_of::<Instruction>() == 4);

impl Instruction {
    /// Source register of a load of 64 bits that stands for a map (`BPF_PSEUDO_MAP_IDX`).
    pub const MAP: u8 = 5;
    /// Source register of a load of 64 bits that stands for the value of a map
    /// (`BPF_PSEUDO_MAP_IDX_VALUE`), an array of one entry.
    pub const MAP_VALUE: u8 = 6;

    /// Registers are numbers below 16, of which the kernel knows 0 to 10; higher bits are cut off.
    pub const fn new(code: u8, destination: u8, source: u8, offset: i16, immediate: i32) -> Self {
        // Two bit fields in C, whose order follows that of the bytes.
        let registers = if cfg!(target_endian = "little") {
            source << 4 | destination & 0xf
        } else {
            destination << 4 | source & 0xf
        };
        Self { code, registers, offset, immediate }
    }

    /// The register that is written to, or compared.
    pub const fn destination(self) -> u8 {
        if cfg!(target_endian = "little") { self.registers & 0xf } else { self.registers >> 4 }
    }

    /// The register that is read, or what the constant of a load of 64 bits means.
    pub const fn source(self) -> u8 {
        if cfg!(target_endian = "little") { self.registers >> 4 } else { self.registers & 0xf }
    }

    /// The same with another source register.
    #[must_use]
    pub(super) const fn with_source(self, source: u8) -> Self {
        Self::new(self.code, self.destination(), source, self.offset, self.immediate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_lie_as_the_kernel_reads_them() {
        // r1 = *(u32 *)(r6 + 4), from bpftool on x86-64.
        let load = Instruction::new(0x61, 1, 6, 4, 0);
        assert_eq!((load.destination(), load.source()), (1, 6));
        if cfg!(target_endian = "little") {
            assert_eq!(load.registers, 0x61);
        }
        assert_eq!(load.with_source(2).destination(), 1);
        assert_eq!(load.with_source(2).source(), 2);
    }
}
