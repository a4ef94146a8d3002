//! Packet blocks: the Enhanced Packet Block (draft section 4.3), which is written and read, and
//! the Simple (4.4) and the obsolete Packet Block (appendix A), which are only read.

use super::block::{self, BlockHead, ByteOrder, Malformed};
use super::options::{self, Options};
use crate::record::{MAXIMUM_CAPTURED_LENGTH, PacketFlags, Record};

/// `epb_flags`, also `pack_flags` of the obsolete block.
pub const FLAGS: u16 = 2;
/// `epb_dropcount`.
pub const DROP_COUNT: u16 = 4;
/// `epb_queue`.
pub const QUEUE: u16 = 6;

/// Bytes of an Enhanced Packet Block before the packet's.
const HEAD_LENGTH: usize = 28;
/// All the options that [`encode_record`] can add: three, and their end.
const OPTIONS_LENGTH: usize = 8 + 12 + 8 + 4;

/// Length in bytes of an Enhanced Packet Block without options.
#[inline]
pub const fn enhanced_packet_length(captured_length: usize) -> usize {
    HEAD_LENGTH + captured_length.next_multiple_of(4) + 4
}

/// Writes an Enhanced Packet Block without options to the beginning of `into`, little-endian;
/// returns its length in bytes, or None, with nothing written, if it does not fit.
///
/// `ticks` is the time in the interface's unit, `interface` counts within the section. It does
/// not check `data` against [`MAXIMUM_CAPTURED_LENGTH`].
#[inline]
pub fn encode_enhanced_packet(
    into: &mut [u8],
    interface: u32,
    ticks: u64,
    original_length: u32,
    data: &[u8],
) -> Option<usize> {
    encode(into, interface, ticks, original_length, data, &[])
}

/// Writes a record as an Enhanced Packet Block, with options for those of flags, queue and drop
/// count that are known; otherwise like [`encode_enhanced_packet`]. The record's own time and
/// interface are not looked at.
#[inline]
pub fn encode_record(
    into: &mut [u8],
    interface: u32,
    ticks: u64,
    record: &Record<'_>,
) -> Option<usize> {
    let bare = record.flags.0 == 0 && record.queue.is_none() && record.drop_count.is_none();
    if bare {
        return encode(into, interface, ticks, record.original_length, record.data, &[]);
    }
    let mut bytes = [0; OPTIONS_LENGTH];
    let length = encode_options(&mut bytes, record);
    let options = bytes.get(..length)?;
    encode(into, interface, ticks, record.original_length, record.data, options)
}

fn encode_options(into: &mut [u8; OPTIONS_LENGTH], record: &Record<'_>) -> usize {
    let mut length = 0;
    let mut put = |code: u16, value: &[u8]| {
        let head = (u32::from(code) | (value.len() as u32) << 16).to_le_bytes();
        for part in [&head[..], value] {
            if let Some(place) = into.get_mut(length..length + part.len()) {
                place.copy_from_slice(part);
            }
            length += part.len();
        }
    };
    if record.flags.0 != 0 {
        put(FLAGS, &record.flags.0.to_le_bytes());
    }
    if let Some(count) = record.drop_count {
        put(DROP_COUNT, &count.to_le_bytes());
    }
    if let Some(queue) = record.queue {
        put(QUEUE, &queue.to_le_bytes());
    }
    put(options::END, &[]);
    length
}

#[inline(always)]
fn encode(
    into: &mut [u8],
    interface: u32,
    ticks: u64,
    original_length: u32,
    data: &[u8],
    options: &[u8],
) -> Option<usize> {
    let padded = data.len().checked_next_multiple_of(4)?;
    let length = HEAD_LENGTH + padded + options.len() + 4;
    let length_bytes = u32::try_from(length).ok()?.to_le_bytes();
    let block = into.get_mut(..length)?;
    let (head, rest) = block.split_first_chunk_mut::<HEAD_LENGTH>()?;
    head[0..4].copy_from_slice(&block::ENHANCED_PACKET.to_le_bytes());
    head[4..8].copy_from_slice(&length_bytes);
    head[8..12].copy_from_slice(&interface.to_le_bytes());
    head[12..16].copy_from_slice(&((ticks >> 32) as u32).to_le_bytes());
    head[16..20].copy_from_slice(&(ticks as u32).to_le_bytes());
    head[20..24].copy_from_slice(&(data.len() as u32).to_le_bytes());
    head[24..28].copy_from_slice(&original_length.to_le_bytes());
    let (rest, trailer) = rest.split_last_chunk_mut::<4>()?;
    *trailer = length_bytes;
    let (body, option_area) = rest.split_at_mut_checked(padded)?;
    option_area.copy_from_slice(options);
    // The last word first, so that whatever of it the packet leaves is zero.
    if let Some(word) = body.last_chunk_mut::<4>() {
        *word = [0; 4];
    }
    body.get_mut(..data.len())?.copy_from_slice(data);
    Some(length)
}

/// What a packet block says, apart from the packet's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketHead {
    /// The interface, counted within the section; 0 for a Simple Packet Block.
    pub interface: u32,
    /// The time in the interface's unit; a Simple Packet Block has none.
    pub ticks: Option<u64>,
    /// Captured bytes. For a Simple Packet Block all that the block has room for; the interface's
    /// snap length may say fewer.
    pub captured_length: u32,
    /// Length on the wire in bytes.
    pub original_length: u32,
    /// Where in the block the packet begins, in bytes.
    pub data_at: usize,
    /// Direction and link-layer errors.
    pub flags: PacketFlags,
    /// The interface's queue.
    pub queue: Option<u32>,
    /// Packets lost just before this one.
    pub drop_count: Option<u64>,
    /// Whether options were found that do not fit in the block.
    pub malformed_options: bool,
}

impl PacketHead {
    /// The captured bytes, given the block that this was parsed from.
    pub fn data<'a>(&self, block: &'a [u8]) -> &'a [u8] {
        let end = self.data_at + self.captured_length as usize;
        block.get(self.data_at..end).unwrap_or_default()
    }

    /// Reads a whole block of one of the three packet types. Errors: another type, or a captured
    /// length that is more than the block or [`MAXIMUM_CAPTURED_LENGTH`] holds.
    #[inline]
    pub fn parse(head: &BlockHead, block: &[u8]) -> Result<Self, Malformed> {
        match head.block_type {
            block::ENHANCED_PACKET => parse_enhanced(head.order, block, false),
            block::SIMPLE_PACKET => parse_simple(head.order, block),
            block::PACKET => parse_enhanced(head.order, block, true),
            other => Err(Malformed::new(format!("a block of type {other:#x} for a packet"))),
        }
    }
}

/// Both blocks are laid out alike, except that the obsolete one shares the interface's word
/// between a shorter interface and a drop count.
#[inline]
fn parse_enhanced(order: ByteOrder, block: &[u8], obsolete: bool) -> Result<PacketHead, Malformed> {
    let Some((first, rest)) = block.split_first_chunk::<HEAD_LENGTH>() else {
        return Err(too_short(block));
    };
    let word = |at: usize| order.u32([first[at], first[at + 1], first[at + 2], first[at + 3]]);
    let captured_length = word(20);
    let room = rest.len().saturating_sub(4);
    let padded = (captured_length as usize).next_multiple_of(4);
    if captured_length > MAXIMUM_CAPTURED_LENGTH || padded > room {
        return Err(absurd_captured_length(captured_length, room));
    }
    let mut head = PacketHead {
        interface: word(8),
        ticks: Some(u64::from(word(12)) << 32 | u64::from(word(16))),
        captured_length,
        original_length: word(24),
        data_at: HEAD_LENGTH,
        flags: PacketFlags(0),
        queue: None,
        drop_count: None,
        malformed_options: false,
    };
    if obsolete {
        head.interface = u32::from(order.u16([first[8], first[9]]));
        // All ones: not known.
        head.drop_count = match order.u16([first[10], first[11]]) {
            u16::MAX => None,
            count => Some(u64::from(count)),
        };
    }
    if padded < room {
        read_options(&mut head, order, block, HEAD_LENGTH + padded, obsolete);
    }
    Ok(head)
}

fn read_options(
    head: &mut PacketHead,
    order: ByteOrder,
    block: &[u8],
    options_at: usize,
    obsolete: bool,
) {
    for option in Options::of_block(block, options_at, order) {
        let Ok(option) = option else {
            head.malformed_options = true;
            return;
        };
        let understood = match option.code {
            FLAGS => option.u32(order).map(|flags| head.flags = PacketFlags(flags)),
            DROP_COUNT if !obsolete => option.u64(order).map(|count| head.drop_count = Some(count)),
            QUEUE if !obsolete => option.u32(order).map(|queue| head.queue = Some(queue)),
            _ => Some(()),
        };
        head.malformed_options |= understood.is_none();
    }
}

fn parse_simple(order: ByteOrder, block: &[u8]) -> Result<PacketHead, Malformed> {
    const DATA_AT: usize = 12;
    let Some((first, rest)) = block.split_first_chunk::<DATA_AT>() else {
        return Err(too_short(block));
    };
    let Some((data, _trailer)) = rest.split_last_chunk::<4>() else {
        return Err(too_short(block));
    };
    let original_length = order.u32([first[8], first[9], first[10], first[11]]);
    let captured_length = original_length.min(u32::try_from(data.len()).unwrap_or(u32::MAX));
    if captured_length > MAXIMUM_CAPTURED_LENGTH {
        return Err(absurd_captured_length(captured_length, data.len()));
    }
    Ok(PacketHead {
        interface: 0,
        ticks: None,
        captured_length,
        original_length,
        data_at: DATA_AT,
        flags: PacketFlags(0),
        queue: None,
        drop_count: None,
        malformed_options: false,
    })
}

#[cold]
fn too_short(block: &[u8]) -> Malformed {
    Malformed::new(format!("a packet block of {} bytes, too short for its fields", block.len()))
}

#[cold]
fn absurd_captured_length(captured_length: u32, room: usize) -> Malformed {
    if captured_length > MAXIMUM_CAPTURED_LENGTH {
        Malformed::new(format!(
            "captured length {captured_length}; the longest accepted is {MAXIMUM_CAPTURED_LENGTH}"
        ))
    } else {
        Malformed::new(format!(
            "captured length {captured_length} in a block with room for {room} bytes"
        ))
    }
}
