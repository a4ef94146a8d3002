//! What is said when the asked rate was not reached.

use engine::pacer::Rate;
use port::Reason;

use super::Sent;
use crate::units::{counted, rate_in_words};

/// One sentence with the asked and the achieved rate; nothing if the schedule was kept.
pub fn in_words(asked: Rate, sent: &Sent) -> Option<String> {
    let late = sent.made.unsent.get(Reason::Late);
    if late == 0 && sent.made.pacing.slipped_ns == 0 {
        return None;
    }
    let seconds = (sent.elapsed_ns as f64 / 1e9).max(1e-9);
    let (packets, bytes) = (sent.port.accepted_packets, sent.port.accepted_bytes);
    let achieved = match asked {
        Rate::Unlimited => return None,
        Rate::Packets(_) => Rate::Packets(packets as f64 / seconds),
        Rate::Bits { overhead_bytes, .. } => {
            let bits = (bytes + packets * overhead_bytes) as f64 * 8.0;
            Rate::Bits { bps: bits / seconds, overhead_bytes }
        }
    };
    Some(format!(
        "the asked rate was not reached: asked {}, achieved {}; late: {}",
        rate_in_words(asked),
        rate_in_words(achieved),
        counted(late, "packet")
    ))
}
