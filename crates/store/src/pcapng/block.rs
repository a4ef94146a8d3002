//! Blocks: their types, their frame of two lengths, and the byte order of what is inside.

use super::options::{self, CustomOption};
use crate::error::{Result, StoreError};

/// Section Header Block; reads the same in both byte orders.
pub const SECTION_HEADER: u32 = 0x0a0d_0d0a;
/// Interface Description Block.
pub const INTERFACE_DESCRIPTION: u32 = 1;
/// Packet Block, obsolete.
pub const PACKET: u32 = 2;
/// Simple Packet Block: no time, interface 0.
pub const SIMPLE_PACKET: u32 = 3;
/// Name Resolution Block.
pub const NAME_RESOLUTION: u32 = 4;
/// Interface Statistics Block.
pub const INTERFACE_STATISTICS: u32 = 5;
/// Enhanced Packet Block.
pub const ENHANCED_PACKET: u32 = 6;
/// Entry of the systemd journal.
pub const SYSTEMD_JOURNAL: u32 = 9;
/// Decryption Secrets Block.
pub const DECRYPTION_SECRETS: u32 = 10;
/// Custom Block that editors may copy.
pub const CUSTOM: u32 = 0x0bad;
/// Custom Block that editors must not copy.
pub const CUSTOM_NOT_COPIED: u32 = 0x4000_0bad;

/// The magic that follows the first length of a Section Header Block.
pub const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// The shortest block: type and two lengths, in bytes.
pub const MINIMUM_LENGTH: usize = 12;
/// The longest block that is read, in bytes; the same as Wireshark's limit.
pub const MAXIMUM_LENGTH: usize = 16 << 20;

/// What is wrong with a block.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Malformed {
    /// What was found and what is allowed.
    pub what: String,
}

impl Malformed {
    #[cold]
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into() }
    }
}

/// The byte order of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl ByteOrder {
    /// Two bytes as a number.
    #[inline]
    pub fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        }
    }

    /// Four bytes as a number.
    #[inline]
    pub fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    /// Eight bytes as a number.
    #[inline]
    pub fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            Self::Little => u64::from_le_bytes(bytes),
            Self::Big => u64::from_be_bytes(bytes),
        }
    }

    /// The number in two bytes at `at` of a block, if it is that long.
    #[inline]
    pub fn u16_at(self, bytes: &[u8], at: usize) -> Option<u16> {
        Some(self.u16(*bytes.get(at..)?.first_chunk()?))
    }

    /// The number in four bytes at `at` of a block, if it is that long.
    #[inline]
    pub fn u32_at(self, bytes: &[u8], at: usize) -> Option<u32> {
        Some(self.u32(*bytes.get(at..)?.first_chunk()?))
    }
}

/// The beginning of a block: all that is needed to step over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockHead {
    /// The block's type.
    pub block_type: u32,
    /// The whole block's length in bytes, a multiple of 4 between 12 and 16 MiB.
    pub length: usize,
    /// The byte order: the section's, or for a Section Header Block the one that begins with it.
    pub order: ByteOrder,
}

impl BlockHead {
    /// Reads a block's first 12 bytes (every block has as many), given the byte order of the
    /// section. Errors: a length that no block can have, a section without byte-order magic.
    #[inline]
    pub fn parse(first: &[u8; 12], order: ByteOrder) -> Result<Self, Malformed> {
        let [t0, t1, t2, t3, l0, l1, l2, l3, m0, m1, m2, m3] = *first;
        let block_type = order.u32([t0, t1, t2, t3]);
        let mut order = order;
        if block_type == SECTION_HEADER {
            order = match u32::from_le_bytes([m0, m1, m2, m3]) {
                BYTE_ORDER_MAGIC => ByteOrder::Little,
                magic if magic.swap_bytes() == BYTE_ORDER_MAGIC => ByteOrder::Big,
                magic => {
                    return Err(Malformed::new(format!(
                        "a section header with byte-order magic {magic:#010x} instead of \
                         {BYTE_ORDER_MAGIC:#010x}"
                    )));
                }
            };
        }
        let length = order.u32([l0, l1, l2, l3]) as usize;
        if !(MINIMUM_LENGTH..=MAXIMUM_LENGTH).contains(&length) || !length.is_multiple_of(4) {
            return Err(absurd_length(block_type, length));
        }
        Ok(Self { block_type, length, order })
    }

    /// Checks that a whole block ends in the same length that it begins with.
    #[inline]
    pub fn check_trailer(&self, block: &[u8]) -> Result<(), Malformed> {
        let trailing = block.len().checked_sub(4).and_then(|at| self.order.u32_at(block, at));
        match trailing {
            Some(trailing) if trailing as usize == self.length => Ok(()),
            _ => Err(Malformed::new(format!(
                "a block of type {:#x} begins with length {} and ends with length {}",
                self.block_type,
                self.length,
                trailing.unwrap_or(0)
            ))),
        }
    }
}

#[cold]
fn absurd_length(block_type: u32, length: usize) -> Malformed {
    Malformed::new(format!(
        "a block of type {block_type:#x} with length {length}; block lengths are multiples of 4 \
         from {MINIMUM_LENGTH} to {MAXIMUM_LENGTH}"
    ))
}

/// Appends one block to a vector: begin, fields and options, finish.
pub(crate) struct BlockBuilder<'a> {
    into: &'a mut Vec<u8>,
    start: usize,
    has_options: bool,
}

impl<'a> BlockBuilder<'a> {
    pub(crate) fn begin(into: &'a mut Vec<u8>, block_type: u32) -> Self {
        let start = into.len();
        into.extend_from_slice(&block_type.to_le_bytes());
        into.extend_from_slice(&[0; 4]);
        Self { into, start, has_options: false }
    }

    pub(crate) fn field(&mut self, bytes: &[u8]) -> &mut Self {
        self.into.extend_from_slice(bytes);
        self
    }

    /// Appends an option; errors if its value is longer than the format's 65,535 bytes.
    pub(crate) fn option(&mut self, code: u16, value: &[u8]) -> Result<&mut Self> {
        let Ok(length) = u16::try_from(value.len()) else {
            let what = format!(
                "an option of {} bytes into pcapng, whose options hold 65535; shorten it",
                value.len()
            );
            return Err(StoreError::Unwritable { what });
        };
        self.has_options = true;
        self.into.extend_from_slice(&code.to_le_bytes());
        self.into.extend_from_slice(&length.to_le_bytes());
        self.into.extend_from_slice(value);
        self.pad();
        Ok(self)
    }

    pub(crate) fn text(&mut self, code: u16, value: Option<&String>) -> Result<&mut Self> {
        match value {
            Some(text) => self.option(code, text.as_bytes()),
            None => Ok(self),
        }
    }

    pub(crate) fn custom(&mut self, option: &CustomOption<'_>) -> Result<&mut Self> {
        let mut value = Vec::with_capacity(4 + option.data.len());
        value.extend_from_slice(&option.enterprise.to_le_bytes());
        value.extend_from_slice(option.data);
        self.option(option.code, &value)
    }

    fn pad(&mut self) {
        while !(self.into.len() - self.start).is_multiple_of(4) {
            self.into.push(0);
        }
    }

    /// Ends the options and fills in both lengths. Returns the block's length in bytes; errors,
    /// with the block taken away again, if it is longer than readers accept.
    pub(crate) fn finish(self) -> Result<usize> {
        if self.has_options {
            self.into.extend_from_slice(&[options::END, 0].map(u16::to_le_bytes).concat());
        }
        let length = self.into.len() + 4 - self.start;
        if length > MAXIMUM_LENGTH {
            self.into.truncate(self.start);
            let what = format!("a pcapng block of {length} bytes; readers take {MAXIMUM_LENGTH}");
            return Err(StoreError::Unwritable { what });
        }
        let bytes = (length as u32).to_le_bytes();
        self.into.extend_from_slice(&bytes);
        if let Some(place) = self.into.get_mut(self.start + 4..self.start + 8) {
            place.copy_from_slice(&bytes);
        }
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(block_type: u32, length: u32) -> Result<BlockHead, Malformed> {
        let mut first = [0; 12];
        first[..4].copy_from_slice(&block_type.to_le_bytes());
        first[4..8].copy_from_slice(&length.to_le_bytes());
        BlockHead::parse(&first, ByteOrder::Little)
    }

    #[test]
    fn absurd_lengths_are_refused_by_name() {
        for length in [0, 4, 8, 11, 13, 30, (16 << 20) + 4, u32::MAX] {
            let error = head(6, length).unwrap_err();
            assert!(error.what.contains(&format!("length {length};")), "{error}");
        }
        assert_eq!(head(6, 12).unwrap().length, 12);
        assert_eq!(head(6, 16 << 20).unwrap().length, 16 << 20);
    }

    #[test]
    fn a_built_block_has_both_lengths_and_padded_options() {
        let mut bytes = vec![0xee; 3];
        let mut builder = BlockBuilder::begin(&mut bytes, 0x8000_0001);
        builder.option(1, b"abcde").unwrap();
        assert_eq!(builder.finish().unwrap(), 8 + 12 + 4 + 4);
        let block = &bytes[3..];
        let head = BlockHead::parse(block.first_chunk().unwrap(), ByteOrder::Little).unwrap();
        assert_eq!((head.block_type, head.length), (0x8000_0001, 28));
        head.check_trailer(block).unwrap();
    }

    #[test]
    fn an_option_that_is_too_long_is_refused() {
        let mut bytes = Vec::new();
        let mut builder = BlockBuilder::begin(&mut bytes, 1);
        assert!(builder.option(1, &vec![0; 65_535]).is_ok());
        assert!(matches!(builder.option(1, &vec![0; 65_536]), Err(StoreError::Unwritable { .. })));
    }
}
