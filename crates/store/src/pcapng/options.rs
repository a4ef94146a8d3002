//! Options: type-length-value entries at the end of a block (draft section 3.5).

use super::block::{ByteOrder, Malformed};

/// `opt_endofopt`.
pub const END: u16 = 0;
/// `opt_comment`.
pub const COMMENT: u16 = 1;
/// Custom option with text that editors may copy.
pub const CUSTOM_TEXT: u16 = 2988;
/// Custom option with bytes that editors may copy.
pub const CUSTOM_BYTES: u16 = 2989;
/// Custom option with text that editors must not copy.
pub const CUSTOM_TEXT_NOT_COPIED: u16 = 19372;
/// Custom option with bytes that editors must not copy.
pub const CUSTOM_BYTES_NOT_COPIED: u16 = 19373;

/// One option as it stands in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawOption<'a> {
    /// Its code, whose meaning depends on the block's type unless it is one of this module's.
    pub code: u16,
    /// Its value without padding.
    pub value: &'a [u8],
}

impl<'a> RawOption<'a> {
    /// The value as text, with bytes that are no UTF-8 replaced, up to a terminating zero that
    /// some writers add.
    pub fn text(&self) -> String {
        let end = self.value.iter().position(|byte| *byte == 0).unwrap_or(self.value.len());
        String::from_utf8_lossy(self.value.get(..end).unwrap_or_default()).into_owned()
    }

    /// The value as a number of four bytes, if it is that long.
    pub fn u32(&self, order: ByteOrder) -> Option<u32> {
        Some(order.u32(self.value.try_into().ok()?))
    }

    /// The value as a number of eight bytes, if it is that long.
    pub fn u64(&self, order: ByteOrder) -> Option<u64> {
        Some(order.u64(self.value.try_into().ok()?))
    }

    /// The option as a custom one: enterprise number and data, if its code is one of the four.
    pub fn custom(&self, order: ByteOrder) -> Option<CustomOption<'a>> {
        let codes = [CUSTOM_TEXT, CUSTOM_BYTES, CUSTOM_TEXT_NOT_COPIED, CUSTOM_BYTES_NOT_COPIED];
        let (enterprise, data) = self.value.split_first_chunk()?;
        codes.contains(&self.code).then_some(CustomOption {
            code: self.code,
            enterprise: order.u32(*enterprise),
            data,
        })
    }
}

/// An option whose meaning an enterprise defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CustomOption<'a> {
    /// One of the four custom codes of this module.
    pub code: u16,
    /// IANA private enterprise number.
    pub enterprise: u32,
    /// At most 65,531 bytes.
    pub data: &'a [u8],
}

/// The options of a block in order, up to its `opt_endofopt` or end. After an error it ends.
#[derive(Debug, Clone)]
pub struct Options<'a> {
    bytes: &'a [u8],
    order: ByteOrder,
}

impl<'a> Options<'a> {
    /// `bytes` are a block's, from the first option to before the trailing length.
    pub fn new(bytes: &'a [u8], order: ByteOrder) -> Self {
        Self { bytes, order }
    }

    /// The options of a whole block, which begin at `at`.
    pub fn of_block(block: &'a [u8], at: usize, order: ByteOrder) -> Self {
        Self::new(block.get(at..block.len().saturating_sub(4)).unwrap_or_default(), order)
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<RawOption<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.bytes.is_empty() {
            return None;
        }
        let all = std::mem::take(&mut self.bytes);
        let Some((&[c0, c1, l0, l1], rest)) = all.split_first_chunk() else {
            return Some(Err(Malformed::new(format!("{} bytes in place of an option", all.len()))));
        };
        let (code, length) = (self.order.u16([c0, c1]), self.order.u16([l0, l1]));
        if code == END {
            return None;
        }
        let Some(value) = rest.get(..usize::from(length)) else {
            return Some(Err(Malformed::new(format!(
                "option {code} of {length} bytes where {} are left",
                rest.len()
            ))));
        };
        self.bytes = rest.get(usize::from(length).next_multiple_of(4)..).unwrap_or_default();
        Some(Ok(RawOption { code, value }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_end_at_the_end_mark_or_the_end_of_the_bytes() {
        let bytes = [1, 0, 3, 0, b'a', b'b', b'c', 0, 2, 0, 4, 0, 7, 0, 0, 0, 0, 0, 0, 0, 9, 9];
        let all: Vec<_> = Options::new(&bytes, ByteOrder::Little).map(Result::unwrap).collect();
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].text(), "abc");
        assert_eq!(all[1].u32(ByteOrder::Little), Some(7));
        assert_eq!(Options::new(&bytes[..16], ByteOrder::Little).count(), 2);
    }

    #[test]
    fn an_option_beyond_its_block_is_one_error_and_then_the_end() {
        let bytes = [0, 1, 0, 200, b'a', b'b', b'c', 0];
        let all: Vec<_> = Options::new(&bytes, ByteOrder::Big).collect();
        assert_eq!(all.len(), 1);
        assert!(all[0].as_ref().unwrap_err().what.contains("200 bytes where 4 are left"));
    }

    #[test]
    fn custom_options_show_their_enterprise() {
        let option = RawOption { code: CUSTOM_BYTES, value: &[0, 0, 0x80, 0, 1, 2] };
        let custom = option.custom(ByteOrder::Big).unwrap();
        assert_eq!((custom.enterprise, custom.data), (0x8000, &[1, 2][..]));
        assert_eq!(RawOption { code: 5, ..option }.custom(ByteOrder::Big), None);
    }
}
