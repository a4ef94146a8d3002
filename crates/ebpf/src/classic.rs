//! A capture filter in classic BPF, as a part of an XDP program.
//!
//! The filter judges as [`filter::Filter::matches`] does: what lies beyond the end, a division by zero and what
//! is not known of a frame end it without a match; shifts by more than 31 give 0; a computed place that exceeds 32
//! bits is beyond the end.
//!
//! The verifier wants to see, before each load, that the frame is long enough. One question answers it for all
//! loads that follow it on every way to a match: if each way from here to «match» loads byte 37 sooner
//! or later, a frame of 37 bytes is refused here. The same is done for loads from a computed place, as
//! long as that place stays the same. So `udp port 53` on IPv4 asks twice.
//!
//! Differences to a filter on a socket: XDP sees VLAN tags where they stand in the frame unless the card
//! took them off (then they are nowhere: switch that off, `ethtool -K IF rxvlan off`); it sees received frames
//! only, so `outbound` never matches; and it sees the first buffer of a frame: what a test looks for
//! in later ones is beyond the end.

mod emit;
mod flow;
mod step;

use filter::Program;
use thiserror::Error;

use crate::assembler::{Assembler, Label};
use crate::part::Packet;

pub use step::uses_length;

/// The longest frame that a program may look into: the verifier follows addresses so far, and no first
/// buffer is longer.
const FRAME_BYTES_MAX: u32 = 0xffff;

/// Why a filter is no part of a program.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ClassicError {
    /// There is no instruction.
    #[error("a filter without instructions")]
    Empty,
    /// An instruction that classic BPF does not have, or not with these operands.
    #[error("instruction {place} of the filter is none of classic BPF: {code:#06x}, {k}")]
    Unknown {
        /// Its place.
        place: usize,
        /// What it says.
        code: u16,
        /// Its constant.
        k: u32,
    },
    /// A jump leaves the filter, or its last instruction does not return.
    #[error("instruction {place} of the filter leads out of it")]
    Outside {
        /// Its place.
        place: usize,
    },
    /// The filter asks for the length, which is not at hand.
    #[error("the filter asks for the length of the frame: begin the program with it")]
    Length,
}

/// Writes `program` so that it goes to `accept` or to `reject`, the places of which are the caller's.
///
/// It uses R0 to R5 and the 64 bytes of the stack below R10, and changes no other register.
///
/// # Errors
/// [`ClassicError`] for what is no valid filter. One that is too long fails in [`Assembler::finish`].
pub fn from_classic(
    assembler: &mut Assembler,
    program: &Program,
    packet: &Packet,
    accept: Label,
    reject: Label,
) -> Result<(), ClassicError> {
    let steps = step::steps(program)?;
    if packet.length.is_none() && steps.iter().any(|step| step.asks_length()) {
        return Err(ClassicError::Length);
    }
    let flow = flow::Flow::of(&steps);
    emit::Emitter::new(assembler, packet, accept, reject, &steps, &flow).emit();
    Ok(())
}

#[cfg(test)]
mod tests {
    use filter::{Filter, Instruction, Link};

    use super::*;
    use crate::part;

    fn code(text: &str) -> crate::Code {
        let program = Filter::new(text, Link::Ethernet).unwrap().program().unwrap();
        part::filter_program(&program, crate::Verdict::Pass, crate::Verdict::Drop).unwrap()
    }

    fn guards(text: &str) -> usize {
        code(text).to_string().lines().filter(|line| line.contains("> r8")).count()
    }

    #[test]
    fn one_question_answers_for_all_loads_on_the_way() {
        assert_eq!(guards("ip"), 1);
        assert_eq!(guards("ip src 10.0.0.1 and ip dst 10.0.0.2 and ip proto 17"), 1);
        // A frame that ends behind a source that matches is no shorter than the filter asks.
        assert_eq!(guards("ip host 10.0.0.1 and ip proto 17"), 2);
        assert_eq!(guards("ip and udp dst port 53"), 2);
        assert_eq!(guards("ip and udp port 53"), 3);
    }

    #[test]
    fn invalid_programs_are_refused_by_name() {
        let ins = |code, jt, jf, k| Instruction { code, jt, jf, k };
        let accept = ins(0x06, 0, 0, 1);
        let refused = |instructions: &[Instruction]| {
            let program = Program(instructions.to_vec());
            part::filter_program(&program, crate::Verdict::Pass, crate::Verdict::Drop).unwrap_err()
        };
        let outside = |place| part::PartError::from(ClassicError::Outside { place });
        assert_eq!(refused(&[]), ClassicError::Empty.into());
        assert_eq!(refused(&[ins(0x28, 0, 0, 12)]), outside(0));
        assert_eq!(refused(&[ins(0x15, 0, 5, 12), accept]), outside(0));
        assert_eq!(refused(&[ins(0x05, 0, 0, u32::MAX), accept]), outside(0));
        for bad in
            [ins(0xff, 0, 0, 0), ins(0x34, 0, 0, 0), ins(0x02, 0, 0, 16), ins(0x64, 0, 0, 32)]
        {
            let error = refused(&[bad, accept]);
            let expected = ClassicError::Unknown { place: 0, code: bad.code, k: bad.k };
            assert_eq!(error, expected.into());
        }
    }
}
