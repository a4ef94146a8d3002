//! Frames of IEEE 802.2.

use super::Compiler;
use crate::condition::{Condition, Size};
use crate::error::Result;
use crate::link::Layer;
use crate::syntax::LlcKind;

impl Compiler<'_> {
    pub(super) fn llc(&mut self, kind: Option<LlcKind>) -> Result<Condition> {
        if self.headers.layer != Layer::Ethernet {
            let message = format!("{} has no frames of LLC", self.headers.layer.name());
            return self.refuse(message);
        }
        let has_length = self.is_length();
        // Novell's raw 802.3 begins with a checksum that is not used.
        let is_llc = !self.equal(self.headers.payload, Size::Half, 0xffff);
        let control = self.headers.payload.plus(2);
        let mut masked = |mask, bits| self.masked(control, Size::Byte, mask, bits);
        let of_kind = kind.map(|kind| match kind {
            LlcKind::Information => masked(0x01, 0),
            LlcKind::Supervisory => masked(0x03, 0x01),
            LlcKind::Unnumbered => masked(0x03, 0x03),
            LlcKind::SupervisoryCommand(command) => masked(0x0f, command),
            LlcKind::UnnumberedCommand(command) => masked(0xef, command),
        });
        Ok(Condition::And([has_length, is_llc].into_iter().chain(of_kind).collect()))
    }
}
