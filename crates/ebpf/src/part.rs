//! Parts that XDP programs are made of.
//!
//! Registers: [`begin`] keeps the context in R6, the beginning of the frame in R7, its end in R8 and, if asked
//! for, its length in R9. Parts that call the kernel lose R0 to R5, none changes R6 to R9.

mod count;
pub mod histogram;

pub use count::{Counters, count};

use filter::Program;
use thiserror::Error;

use crate::assembler::{Assembler, AssemblyError, MapPlace};
use crate::classic::{ClassicError, from_classic, uses_length};
use crate::operation::Register::{R0, R1, R2, R3, R6, R7, R8, R9};
use crate::operation::{Arithmetic, Helper, Register, Size};
use crate::{Code, Verdict};

// Fields of `struct xdp_md` of include/uapi/linux/bpf.h.
const DATA: i16 = 0;
const DATA_END: i16 = 4;
pub(crate) const INTERFACE: i16 = 12;
pub(crate) const RX_QUEUE: i16 = 16;

/// Where a program keeps what it knows of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// The context.
    pub context: Register,
    /// Address of the frame's first byte.
    pub data: Register,
    /// Address behind the last byte of its first buffer.
    pub end: Register,
    /// Bytes of all of its buffers, if it was asked for.
    pub length: Option<Register>,
}

/// Why a program cannot be made of its parts.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PartError {
    /// Its filter is none.
    #[error(transparent)]
    Classic(#[from] ClassicError),
    /// Put together it is too long for the jumps of eBPF.
    #[error("{0}: make the filter simpler")]
    Assembly(#[from] AssemblyError),
}

/// How a program begins. The length is asked of the kernel (Linux 5.18).
pub fn begin(assembler: &mut Assembler, with_length: bool) -> Packet {
    assembler.note("what is known of the frame");
    assembler.copy(R6, R1);
    if with_length {
        assembler.call(Helper::FRAME_BYTES);
        assembler.copy(R9, R0);
    }
    assembler.load(Size::Word, R7, R6, DATA);
    assembler.load(Size::Word, R8, R6, DATA_END);
    Packet { context: R6, data: R7, end: R8, length: with_length.then_some(R9) }
}

/// `return verdict`
pub fn end(assembler: &mut Assembler, verdict: Verdict) {
    assembler.set(R0, verdict as i32);
    assembler.exit();
}

/// Gives the frame to the AF_XDP socket that a map of sockets has for its receive queue, and ends with
/// `otherwise` where it has none.
pub fn redirect_to_socket(
    assembler: &mut Assembler,
    packet: &Packet,
    sockets: MapPlace,
    otherwise: Verdict,
) {
    assembler.note("to the socket of its queue");
    assembler.map(R1, sockets);
    assembler.load(Size::Word, R2, packet.context, RX_QUEUE);
    assembler.set(R3, otherwise as i32);
    assembler.call(Helper::REDIRECT_MAP);
    assembler.exit();
}

/// Sends the frame out of the interface that a map of devices has under `number`, and ends with
/// [`Verdict::Aborted`] where it has none.
pub fn redirect_to_device(assembler: &mut Assembler, devices: MapPlace, number: u32) {
    assembler.note("to another device");
    assembler.map(R1, devices);
    assembler.compute32(Arithmetic::Move, R2, number.cast_signed());
    assembler.set(R3, Verdict::Aborted as i32);
    assembler.call(Helper::REDIRECT_MAP);
    assembler.exit();
}

/// The program that ends with one verdict for frames that a filter matches and with another one for others.
///
/// # Errors
/// [`PartError`] for an invalid filter, or one that is too long.
pub fn filter_program(
    filter: &Program,
    matching: Verdict,
    others: Verdict,
) -> Result<Code, PartError> {
    let mut assembler = Assembler::new();
    let packet = begin(&mut assembler, uses_length(filter));
    let (accept, reject) = (assembler.label("match"), assembler.label("no_match"));
    from_classic(&mut assembler, filter, &packet, accept, reject)?;
    assembler.place(accept);
    end(&mut assembler, matching);
    assembler.place(reject);
    end(&mut assembler, others);
    Ok(assembler.finish()?)
}
