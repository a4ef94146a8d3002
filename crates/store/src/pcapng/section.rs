//! The Section Header Block (draft section 4.1): who wrote what follows, in which byte order.

use super::block::{self, BlockBuilder, ByteOrder, Malformed};
use super::options::{self, Options};
use crate::error::Result;
use crate::record::Section;

/// `shb_hardware`.
pub const HARDWARE: u16 = 2;
/// `shb_os`.
pub const OPERATING_SYSTEM: u16 = 3;
/// `shb_userappl`.
pub const APPLICATION: u16 = 4;

const OPTIONS_AT: usize = 24;

/// Appends a Section Header Block of version 1.0 and unknown section length; returns its length in
/// bytes. Errors: a text over 65,535 bytes.
pub fn encode_section(into: &mut Vec<u8>, section: &Section) -> Result<usize> {
    let mut builder = BlockBuilder::begin(into, block::SECTION_HEADER);
    builder
        .field(&block::BYTE_ORDER_MAGIC.to_le_bytes())
        .field(&1_u16.to_le_bytes())
        .field(&0_u16.to_le_bytes())
        .field(&u64::MAX.to_le_bytes())
        .text(options::COMMENT, section.comment.as_ref())?
        .text(HARDWARE, section.hardware.as_ref())?
        .text(OPERATING_SYSTEM, section.operating_system.as_ref())?
        .text(APPLICATION, section.application.as_ref())?;
    builder.finish()
}

/// The version of a whole Section Header Block: major and minor.
pub(crate) fn version(block: &[u8], order: ByteOrder) -> Result<(u16, u16), Malformed> {
    match (order.u16_at(block, 12), order.u16_at(block, 14)) {
        (Some(major), Some(minor)) if block.len() >= OPTIONS_AT + 4 => Ok((major, minor)),
        _ => Err(Malformed::new(format!("a section header of {} bytes", block.len()))),
    }
}

/// Reads a whole Section Header Block; the flag says that options were found that do not fit.
pub fn parse_section(block: &[u8], order: ByteOrder) -> (Section, bool) {
    let mut section = Section::default();
    for option in Options::of_block(block, OPTIONS_AT, order) {
        let Ok(option) = option else { return (section, true) };
        match option.code {
            options::COMMENT => section.comment = Some(option.text()),
            HARDWARE => section.hardware = Some(option.text()),
            OPERATING_SYSTEM => section.operating_system = Some(option.text()),
            APPLICATION => section.application = Some(option.text()),
            _ => {}
        }
    }
    (section, false)
}
