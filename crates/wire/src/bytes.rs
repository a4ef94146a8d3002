//! Big-endian reads and writes at fixed offsets.
//!
//! Vocabulary: *checked* reads return `None` beyond the end and are for bytes
//! that have not been measured yet; *view* reads are for header views, whose
//! length `new_checked` has verified, and read as zero rather than panic if the
//! buffer behind a view shrank after that.

use std::ops::Range;

/// The `N` bytes of `data` that start at `at`, or `None` if there are fewer.
#[inline(always)]
pub(crate) fn chunk<const N: usize>(data: &[u8], at: usize) -> Option<&[u8; N]> {
    data.get(at..)?.first_chunk::<N>()
}

/// The big-endian 16-bit value in bytes `at` and `at + 1` of an array.
#[inline(always)]
pub(crate) fn u16_at<const N: usize>(bytes: &[u8; N], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// View read: the byte at `at`.
#[inline]
pub(crate) fn get_u8(data: &[u8], at: usize) -> u8 {
    data.get(at).copied().unwrap_or(0)
}

/// View read: the bytes of `range`, as an array of exactly that many bytes.
#[inline]
pub(crate) fn get_array<const N: usize>(data: &[u8], range: Range<usize>) -> [u8; N] {
    data.get(range).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; N])
}

/// View read: the big-endian 16-bit value in `range`.
#[inline]
pub(crate) fn get_u16(data: &[u8], range: Range<usize>) -> u16 {
    u16::from_be_bytes(get_array(data, range))
}

/// View read: the big-endian 32-bit value in `range`.
#[inline]
pub(crate) fn get_u32(data: &[u8], range: Range<usize>) -> u32 {
    u32::from_be_bytes(get_array(data, range))
}

/// View read: everything from `at` on, empty if `at` lies beyond the end.
#[inline]
pub(crate) fn get_rest(data: &[u8], at: usize) -> &[u8] {
    data.get(at..).unwrap_or_default()
}

/// View write: `value` at `at`.
#[inline]
pub(crate) fn set_u8(data: &mut [u8], at: usize, value: u8) {
    if let Some(byte) = data.get_mut(at) {
        *byte = value;
    }
}

/// View write: `value` into `range`, whose length is that of `value`.
#[inline]
pub(crate) fn set_array<const N: usize>(data: &mut [u8], range: Range<usize>, value: [u8; N]) {
    if let Some(bytes) = data.get_mut(range)
        && let Ok(bytes) = <&mut [u8; N]>::try_from(bytes)
    {
        *bytes = value;
    }
}

/// View write: a big-endian 16-bit value.
#[inline]
pub(crate) fn set_u16(data: &mut [u8], range: Range<usize>, value: u16) {
    set_array(data, range, value.to_be_bytes());
}

/// View write: a big-endian 32-bit value.
#[inline]
pub(crate) fn set_u32(data: &mut [u8], range: Range<usize>, value: u32) {
    set_array(data, range, value.to_be_bytes());
}
