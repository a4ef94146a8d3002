//! Programs for the kernel's eBPF, written at run time: no compiler, no object files.
//!
//! | job | where |
//! |---|---|
//! | what an instruction does, and its eight bytes | [`operation`] |
//! | instructions one after the other, with labels, maps and notes | [`Assembler`] |
//! | the finished program: listing, loading, what the verifier minds | [`Code`], [`Refused`] |
//! | a capture filter as part of a program | [`from_classic`] |
//! | other parts: beginning, counting, redirecting | [`part`] |
//! | whole programs of the kernel plane | [`program`] |
//!
//! # Vocabulary
//!
//! A *slot* is eight bytes; most instructions take one, constants of 64 bits take two. A *label* is a place
//! to jump to. A *part* is a few instructions that do one job and leave by labels, so that programs are
//! made of parts. The *verifier* is the kernel's judge of programs.
//!
//! # Example
//!
//! ```
//! use ebpf::{Assembler, Register::R0, Verdict};
//!
//! let mut assembler = Assembler::new();
//! assembler.set(R0, Verdict::Pass as i32);
//! assembler.exit();
//! let code = assembler.finish()?;
//! assert_eq!(code.to_string(), "   0: (b7) r0 = 2\n   1: (95) exit\n");
//! # Ok::<(), ebpf::AssemblyError>(())
//! ```
//!
//! # Limits
//!
//! Instructions up to version 3 of the set, but for legacy packet access; no functions of the program's own.
//! Jumps reach 32,767 slots.

#![forbid(unsafe_code)]

mod assembler;
mod classic;
mod code;
pub mod operation;
pub mod part;
pub mod program;
mod text;
mod verdict;

pub use assembler::{Assembler, AssemblyError, Label, MapPlace};
pub use classic::{ClassicError, from_classic};
pub use code::{Code, Refused};
pub use operation::{Helper, Operand, Register};
pub use verdict::Verdict;
