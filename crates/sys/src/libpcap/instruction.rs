//! What can be said of instructions of classic BPF without running them.

use crate::packet::BpfInstruction;

/// How many words of scratch memory a program has.
pub const SCRATCH_WORDS: usize = 16;

// The parts of a code, named as in the paper of McCanne and Jacobson (1993).
const CLASS: u16 = 0x07;
const LD: u16 = 0x00;
const LDX: u16 = 0x01;
const ST: u16 = 0x02;
const STX: u16 = 0x03;
const ALU: u16 = 0x04;
const JMP: u16 = 0x05;
const RET: u16 = 0x06;
const MEM: u16 = 0x60;
const X: u16 = 0x08;
/// All loads, returns and moves that the interpreter knows; the others are told by their class.
const PLAIN: [u16; 17] = [
    0x00, 0x01, 0x20, 0x28, 0x30, 0x40, 0x48, 0x50, 0x60, 0x61, 0x80, 0x81, 0xb1, 0x06, 0x16, 0x07,
    0x87,
];

impl BpfInstruction {
    fn class(self) -> u16 {
        self.code & CLASS
    }

    /// The word of scratch memory that it reads.
    fn scratch_read(self) -> Option<u32> {
        (matches!(self.class(), LD | LDX) && self.code & 0xe0 == MEM).then_some(self.k)
    }

    /// The word of scratch memory that it writes.
    fn scratch_written(self) -> Option<u32> {
        matches!(self.class(), ST | STX).then_some(self.k)
    }

    /// Whether the interpreter knows the code and the operand has a meaning.
    fn is_known(self) -> bool {
        let word = self.scratch_read().or(self.scratch_written());
        let in_scratch = word.is_none_or(|word| (word as usize) < SCRATCH_WORDS);
        let known = match self.class() {
            ALU => self.is_known_arithmetic(),
            JMP => {
                matches!(self.code, 0x05 | 0x15 | 0x25 | 0x35 | 0x45 | 0x1d | 0x2d | 0x3d | 0x4d)
            }
            ST | STX => self.code == self.class(),
            _ => PLAIN.contains(&self.code),
        };
        known && in_scratch
    }

    /// A constant divisor must not be 0, and a constant shift must keep within a word.
    fn is_known_arithmetic(self) -> bool {
        let by_constant = self.code & X == 0;
        match self.code & 0xf0 {
            0x30 | 0x90 => !by_constant || self.k != 0,
            0x60 | 0x70 => !by_constant || self.k < 32,
            0x80 => self.code == 0x84,
            operation => operation <= 0xa0,
        }
    }

    /// Where control may go from index `here`; an index past the end is one that does not exist.
    fn successors(self, here: usize) -> [Option<usize>; 2] {
        let after = here.wrapping_add(1);
        match self.class() {
            RET => [None, None],
            // A jump without condition counts backwards too, as "protochain" does.
            JMP if self.code == JMP => {
                [Some(after.wrapping_add_signed(self.k.cast_signed() as isize)), None]
            }
            JMP => [Some(after + usize::from(self.jt)), Some(after + usize::from(self.jf))],
            _ => [Some(after), None],
        }
    }
}

/// Why an interpreter must not be given these instructions.
///
/// # Errors
/// If a code is unknown, a jump leaves the program, a word of scratch memory does not exist, a
/// constant divisor is 0 or a constant shift exceeds a word.
pub fn check(instructions: &[BpfInstruction]) -> Result<(), String> {
    if instructions.is_empty() {
        return Err("there are no instructions: a program ends with a return".into());
    }
    for (index, instruction) in instructions.iter().enumerate() {
        if !instruction.is_known() {
            return Err(format!("instruction {index} is none that BPF has: {instruction:x?}"));
        }
        let mut successors = instruction.successors(index).into_iter().flatten();
        if successors.any(|successor| successor >= instructions.len()) {
            return Err(format!("instruction {index} leaves the program: {instruction:x?}"));
        }
    }
    Ok(())
}

/// Whether some path reads a word of scratch memory that it did not write.
///
/// libpcap's interpreter does not clear that memory, so the answer of such a program is left to
/// chance; Linux refuses it. libpcap makes them, for example of `geneve or ip`.
pub fn reads_unset_scratch(instructions: &[BpfInstruction]) -> bool {
    // Per instruction, the words that every path to it has written; none where no path was seen.
    let mut written: Vec<Option<u32>> = vec![None; instructions.len()];
    let mut pending = vec![(0, 0)];
    while let Some((index, words)) = pending.pop() {
        let (Some(known), Some(instruction)) = (written.get_mut(index), instructions.get(index))
        else {
            continue;
        };
        let words = known.map_or(words, |known| known & words);
        if *known == Some(words) {
            continue;
        }
        *known = Some(words);
        let bit = |word: u32| 1u32.checked_shl(word).unwrap_or(0);
        if instruction.scratch_read().is_some_and(|word| words & bit(word) == 0) {
            return true;
        }
        let after = words | instruction.scratch_written().map_or(0, bit);
        pending
            .extend(instruction.successors(index).into_iter().flatten().map(|next| (next, after)));
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> BpfInstruction {
        BpfInstruction { code, jt, jf, k }
    }

    #[test]
    fn programs_that_would_harm_the_interpreter_are_refused() {
        let accept = instruction(0x06, 0, 0, 1);
        assert_eq!(check(&[accept]), Ok(()));
        let harmful = [
            vec![],
            vec![instruction(0x30, 0, 0, 0)],
            vec![instruction(0xffff, 0, 0, 0), accept],
            vec![instruction(0x15, 0, 1, 0), accept],
            vec![instruction(0x05, 0, 0, 1), accept],
            vec![instruction(0x05, 0, 0, -2i32 as u32), accept],
            vec![instruction(0x60, 0, 0, 16), accept],
            vec![instruction(0x03, 0, 0, u32::MAX), accept],
            vec![instruction(0x34, 0, 0, 0), accept],
            vec![instruction(0x94, 0, 0, 0), accept],
            vec![instruction(0x64, 0, 0, 32), accept],
            vec![instruction(0xb4, 0, 0, 1), accept],
            vec![instruction(0x8c, 0, 0, 1), accept],
        ];
        for program in harmful {
            assert!(check(&program).is_err(), "{program:x?}");
        }
        // Division by the index register is checked by the interpreter; jumps may go back.
        assert_eq!(check(&[instruction(0x3c, 0, 0, 0), accept]), Ok(()));
        assert_eq!(
            check(&[instruction(0x15, 1, 0, 0), instruction(0x05, 0, 0, -2i32 as u32), accept]),
            Ok(())
        );
    }

    #[test]
    fn scratch_memory_is_unset_unless_all_paths_set_it() {
        let (store, load, accept) =
            (instruction(0x02, 0, 0, 3), instruction(0x60, 0, 0, 3), instruction(0x06, 0, 0, 1));
        assert!(!reads_unset_scratch(&[accept]));
        assert!(!reads_unset_scratch(&[store, load, accept]));
        assert!(reads_unset_scratch(&[load, store, accept]));
        let around = instruction(0x15, 0, 1, 0);
        assert!(reads_unset_scratch(&[around, store, load, accept]));
        assert!(!reads_unset_scratch(&[around, accept, store, load, accept]));
        // What no path reaches is not read.
        assert!(!reads_unset_scratch(&[accept, load, accept]));
    }
}
