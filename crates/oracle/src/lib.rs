//! What capture filters are judged by: libpcap itself, and frames and expressions to ask it about.
//!
//! For tests alone: no part of the program depends on this crate, and nothing links libpcap.
//! [`Libpcap::load`] finds it at run time, and a test says that it is skipped where it is missing
//! (it comes with `tcpdump`).
//!
//! | job | where |
//! |---|---|
//! | what libpcap makes of an expression, or why it refuses it | [`Libpcap::compile`] |
//! | whether libpcap's filter takes a frame | [`Compiled::matches`] |
//! | whether instructions take a frame, by libpcap's interpreter | [`Libpcap::run`] |
//! | frames of all kinds and link types | [`frames::corpus`] |
//! | expressions by chance and by hand | [`expressions::generated`], [`expressions::hand_picked`] |
//! | whether the answer of instructions is left to chance | [`instruction::reads_unset_scratch`] |
//!
//! A judgement goes like this:
//!
//! ```
//! use oracle::Libpcap;
//!
//! let Ok(libpcap) = Libpcap::load() else { return };
//! let filter = libpcap.compile("ip proto 17", 1, 262_144, true).unwrap();
//! let mut frame = [0; 34];
//! (frame[12], frame[14], frame[23]) = (8, 0x45, 17);
//! assert!(filter.matches(&frame, 34));
//! assert!(libpcap.run(&filter.instructions(), &frame, 34));
//! assert!(libpcap.compile("ip proto", 1, 262_144, true).is_err());
//! ```

#![forbid(unsafe_code)]

pub mod expressions;
pub mod frames;
mod pools;

pub use sys::libpcap::{Compiled, Libpcap, instruction};
pub use sys::packet::BpfInstruction as Instruction;
