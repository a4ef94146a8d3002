//! The end of every chunk: an Interface Statistics Block that proves the chunk whole.
//!
//! The block has the standard counters of pcapng (draft section 4.6) for every reader, and one
//! custom option (code 19373: not to be copied by editors) whose last [`FIELDS_BYTES`] bytes are the
//! fields below; zeros in front of the fields pad the chunk. So the fields end exactly 8 bytes
//! before the chunk does (end-of-options and the repeated block length follow), wherever it ends.
//! `docs/segment-format.md` describes the same for authors of readers.
//!
//! Vocabulary: *fields* are the 256 bytes, little-endian; a *filler* is a chunk without packets
//! that stands where one was lost. Limit: padding of up to 65,000 bytes per block.

use crate::ledger::{LOSS_SLOTS, Ledger};
use crate::record::{Interface, LinkType};

/// Chunks begin and end at multiples of this: what direct I/O wants of offset, length and memory.
pub const ALIGNMENT_BYTES: usize = 4096;

/// Length of the trailer block without padding.
pub const TRAILER_BYTES: usize = FIELDS_IN_BLOCK + FIELDS_BYTES + BLOCK_END_BYTES;

/// Length of the fields.
pub const FIELDS_BYTES: usize = 256;

/// From the start of the fields to the end of the chunk.
pub const FIELDS_FROM_END: usize = FIELDS_BYTES + BLOCK_END_BYTES;

/// Enterprise number of the custom option: the one that RFC 5612 reserves for documentation, as
/// this project has none. The magic number in the fields decides.
pub const ENTERPRISE_NUMBER: u32 = 32_473;

/// pcapng's code for a custom option with binary data that must not be copied along.
pub const CUSTOM_OPTION: u16 = 19_373;

/// First eight bytes of the fields.
pub const MAGIC: [u8; 8] = *b"LRCHUNK\n";

/// Version of the fields.
pub const VERSION: u16 = 1;

/// The chunk holds the section header and the interface description, and no packet.
pub const FLAG_HEADER: u16 = 1;
/// The chunk stands where another was lost, and holds nothing.
pub const FLAG_FILLER: u16 = 2;

const STATISTICS_BLOCK: u32 = 5;
/// Block type, length, interface, time.
const BLOCK_HEAD_BYTES: usize = 20;
/// End of options, and the block's length again.
const BLOCK_END_BYTES: usize = 8;
/// Code, length and enterprise number of the custom option.
const CUSTOM_HEAD_BYTES: usize = 8;
/// Standard options: code, length, 8 bytes of value each.
const STANDARD_OPTION_BYTES: usize = 12;
const STANDARD_OPTIONS: usize = 6;
const FIELDS_IN_BLOCK: usize =
    BLOCK_HEAD_BYTES + STANDARD_OPTIONS * STANDARD_OPTION_BYTES + CUSTOM_HEAD_BYTES;
/// Shortest and longest block that is nothing but padding.
const PADDING_BLOCK_MIN: usize = BLOCK_HEAD_BYTES + CUSTOM_HEAD_BYTES + BLOCK_END_BYTES;
const PADDING_BLOCK_MAX: usize = 65_000;

/// Where each field lies, in bytes from the start of the fields.
pub mod field {
    /// Eight bytes: `LRCHUNK\n`.
    pub const MAGIC: usize = 0;
    /// u16.
    pub const VERSION: usize = 8;
    /// u16, a sum of flags: 1 header, 2 filler.
    pub const FLAGS: usize = 10;
    /// u32, CRC-32C of the chunk without these four bytes.
    pub const CRC32C: usize = 12;
    /// 16 bytes, random, the same in all chunks of a segment.
    pub const SEGMENT_ID: usize = 16;
    /// u64, 0 for the header, then counting up in the segment.
    pub const SEQUENCE: usize = 32;
    /// u64, where the chunk begins in the file.
    pub const CHUNK_OFFSET: usize = 40;
    /// u32, bytes from the chunk's beginning to its end.
    pub const CHUNK_LENGTH: usize = 48;
    /// u32, bytes of packet blocks (or header blocks) at its beginning.
    pub const CONTENT_LENGTH: usize = 52;
    /// u32, packets in the chunk.
    pub const PACKETS: usize = 56;
    /// u16, pcap's number of the link type.
    pub const LINK_TYPE: usize = 60;
    /// u16, the recorder's stream.
    pub const STREAM: usize = 62;
    /// u64, captured bytes of the packets.
    pub const CAPTURED_BYTES: usize = 64;
    /// u64, earliest time in ns; 0 without packets.
    pub const TIME_MIN: usize = 72;
    /// u64, latest time in ns; without packets 0, or when the account was closed.
    pub const TIME_MAX: usize = 80;
    /// u64, packets in the segment before this chunk.
    pub const PACKETS_BEFORE: usize = 88;
    /// u64, the recorder's session: when it was opened, in ns.
    pub const SESSION: usize = 96;
    /// u32, snap length in bytes.
    pub const SNAP_LENGTH: usize = 104;
    /// u32, number of the segment in its directory.
    pub const SEGMENT_NUMBER: usize = 108;
    /// 16 bytes, name of the interface, cut, filled up with zeros.
    pub const INTERFACE_NAME: usize = 112;
    /// u64 each: wire, filtered, stored packets, stored bytes, then losses by reason.
    pub const LEDGER: usize = 128;
}

/// The fields of a chunk's trailer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChunkTrailer {
    /// [`FLAG_HEADER`], [`FLAG_FILLER`] or 0.
    pub flags: u16,
    /// CRC-32C of the chunk without the four bytes of this field; set by [`seal`].
    pub crc32c: u32,
    /// Random number of the segment.
    pub segment_id: [u8; 16],
    /// 0 for the header chunk, then counting up in the segment.
    pub sequence: u64,
    /// Where the chunk begins in the file, in bytes.
    pub offset: u64,
    /// Bytes of the whole chunk; set by [`seal`].
    pub length: u32,
    /// Bytes of blocks at its beginning, before padding and trailer; set by [`seal`].
    pub content_length: u32,
    /// Packets in the chunk.
    pub packets: u32,
    /// pcap's number of the link type.
    pub link_type: u16,
    /// The recorder's stream.
    pub stream: u16,
    /// Captured bytes of the packets.
    pub captured_bytes: u64,
    /// Earliest packet time in ns since the Unix epoch; 0 without packets.
    pub time_min_ns: u64,
    /// Latest packet time in ns since the Unix epoch. Without packets: when a chunk was closed that
    /// only carries the account, else 0.
    pub time_max_ns: u64,
    /// Packets in the segment before this chunk.
    pub packets_before: u64,
    /// When the recorder was opened, in ns since the Unix epoch.
    pub session: u64,
    /// Snap length in bytes.
    pub snap_length: u32,
    /// Number of the segment in its directory.
    pub segment_number: u32,
    /// Name of the interface, cut at 16 bytes, filled up with zeros.
    pub interface_name: [u8; 16],
    /// The account when the chunk was closed.
    pub ledger: Ledger,
}

impl ChunkTrailer {
    /// Whether the chunk stands for a lost one.
    pub fn is_filler(&self) -> bool {
        self.flags & FLAG_FILLER != 0
    }

    /// Whether the chunk holds the section header.
    pub fn is_header(&self) -> bool {
        self.flags & FLAG_HEADER != 0
    }

    /// The interface, as far as a trailer describes it.
    pub fn interface(&self) -> Interface {
        let mut interface = Interface::new(LinkType(self.link_type), self.snap_length);
        let name = self.interface_name.split(|byte| *byte == 0).next().unwrap_or_default();
        if !name.is_empty() {
            interface.name = Some(String::from_utf8_lossy(name).into_owned());
        }
        interface
    }

    /// First byte after the chunk.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(u64::from(self.length))
    }

    /// The fields as they are written.
    pub fn encode(&self) -> [u8; FIELDS_BYTES] {
        let mut bytes = [0; FIELDS_BYTES];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(field::MAGIC, &MAGIC);
        put(field::VERSION, &VERSION.to_le_bytes());
        put(field::FLAGS, &self.flags.to_le_bytes());
        put(field::CRC32C, &self.crc32c.to_le_bytes());
        put(field::SEGMENT_ID, &self.segment_id);
        put(field::SEQUENCE, &self.sequence.to_le_bytes());
        put(field::CHUNK_OFFSET, &self.offset.to_le_bytes());
        put(field::CHUNK_LENGTH, &self.length.to_le_bytes());
        put(field::CONTENT_LENGTH, &self.content_length.to_le_bytes());
        put(field::PACKETS, &self.packets.to_le_bytes());
        put(field::LINK_TYPE, &self.link_type.to_le_bytes());
        put(field::STREAM, &self.stream.to_le_bytes());
        put(field::CAPTURED_BYTES, &self.captured_bytes.to_le_bytes());
        put(field::TIME_MIN, &self.time_min_ns.to_le_bytes());
        put(field::TIME_MAX, &self.time_max_ns.to_le_bytes());
        put(field::PACKETS_BEFORE, &self.packets_before.to_le_bytes());
        put(field::SESSION, &self.session.to_le_bytes());
        put(field::SNAP_LENGTH, &self.snap_length.to_le_bytes());
        put(field::SEGMENT_NUMBER, &self.segment_number.to_le_bytes());
        put(field::INTERFACE_NAME, &self.interface_name);
        let ledger = &self.ledger;
        let counters = [
            ledger.wire_packets,
            ledger.filtered_packets,
            ledger.stored_packets,
            ledger.stored_bytes,
        ];
        for (index, counter) in counters.iter().chain(&ledger.lost_packets).enumerate() {
            put(field::LEDGER + 8 * index, &counter.to_le_bytes());
        }
        bytes
    }

    /// Reads the fields; `None` if `bytes` are not [`FIELDS_BYTES`] long or not of this format.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != FIELDS_BYTES || !bytes.starts_with(&MAGIC) {
            return None;
        }
        let ledger = |index: usize| u64_at(bytes, field::LEDGER + 8 * index);
        let mut lost_packets = [0; LOSS_SLOTS];
        for (index, slot) in lost_packets.iter_mut().enumerate() {
            *slot = ledger(4 + index)?;
        }
        let trailer = Self {
            flags: u16_at(bytes, field::FLAGS)?,
            crc32c: u32_at(bytes, field::CRC32C)?,
            segment_id: array_at(bytes, field::SEGMENT_ID)?,
            sequence: u64_at(bytes, field::SEQUENCE)?,
            offset: u64_at(bytes, field::CHUNK_OFFSET)?,
            length: u32_at(bytes, field::CHUNK_LENGTH)?,
            content_length: u32_at(bytes, field::CONTENT_LENGTH)?,
            packets: u32_at(bytes, field::PACKETS)?,
            link_type: u16_at(bytes, field::LINK_TYPE)?,
            stream: u16_at(bytes, field::STREAM)?,
            captured_bytes: u64_at(bytes, field::CAPTURED_BYTES)?,
            time_min_ns: u64_at(bytes, field::TIME_MIN)?,
            time_max_ns: u64_at(bytes, field::TIME_MAX)?,
            packets_before: u64_at(bytes, field::PACKETS_BEFORE)?,
            session: u64_at(bytes, field::SESSION)?,
            snap_length: u32_at(bytes, field::SNAP_LENGTH)?,
            segment_number: u32_at(bytes, field::SEGMENT_NUMBER)?,
            interface_name: array_at(bytes, field::INTERFACE_NAME)?,
            ledger: Ledger {
                wire_packets: ledger(0)?,
                filtered_packets: ledger(1)?,
                stored_packets: ledger(2)?,
                stored_bytes: ledger(3)?,
                lost_packets,
            },
        };
        let length = trailer.length as usize;
        let whole = u16_at(bytes, field::VERSION)? == VERSION
            && length.is_multiple_of(ALIGNMENT_BYTES)
            && trailer.content_length as usize + TRAILER_BYTES <= length;
        whole.then_some(trailer)
    }

    /// The trailer of the chunk that ends where `bytes` end, without looking at its checksum.
    pub fn at_end_of(bytes: &[u8]) -> Option<Self> {
        let fields = bytes.len().checked_sub(FIELDS_FROM_END)?;
        Self::decode(bytes.get(fields..fields + FIELDS_BYTES)?)
    }
}

/// Why a chunk's bytes are not a whole chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// No trailer ends where the chunk should.
    NoTrailer,
    /// The trailer says another length, or the checksum is wrong.
    Checksum,
}

/// Closes a chunk: puts padding and trailer behind the first `used` bytes of `memory`, up to the
/// next multiple of [`ALIGNMENT_BYTES`] or to `length_min` if that is more, and fills in the lengths
/// and the checksum of `trailer`. Returns the chunk's length, or `None` if it does not fit.
pub fn seal(
    memory: &mut [u8],
    used: usize,
    length_min: usize,
    trailer: &mut ChunkTrailer,
) -> Option<usize> {
    let length = (used + TRAILER_BYTES).max(length_min).next_multiple_of(ALIGNMENT_BYTES);
    let chunk = memory.get_mut(..length)?;
    trailer.length = u32::try_from(length).ok()?;
    trailer.content_length = u32::try_from(used).ok()?;
    trailer.crc32c = 0;
    let mut at = used;
    while length - at > TRAILER_BYTES + PADDING_BLOCK_MAX {
        write_block(chunk.get_mut(at..at + PADDING_BLOCK_MAX)?, trailer, None)?;
        at += PADDING_BLOCK_MAX;
    }
    // What is left is the trailer with up to 65,000 bytes of padding inside its custom option.
    write_block(chunk.get_mut(at..)?, trailer, Some(&trailer.encode()))?;
    let checksum_at = length - FIELDS_FROM_END + field::CRC32C;
    trailer.crc32c = checksum(chunk, checksum_at)?;
    chunk.get_mut(checksum_at..checksum_at + 4)?.copy_from_slice(&trailer.crc32c.to_le_bytes());
    Some(length)
}

/// Checks that `chunk` is exactly one whole chunk and returns its trailer.
pub fn verify(chunk: &[u8]) -> Result<ChunkTrailer, Damage> {
    let trailer = ChunkTrailer::at_end_of(chunk).ok_or(Damage::NoTrailer)?;
    if trailer.length as usize != chunk.len() {
        return Err(Damage::Checksum);
    }
    let checksum_at = chunk.len() - FIELDS_FROM_END + field::CRC32C;
    match checksum(chunk, checksum_at) {
        Some(crc32c) if crc32c == trailer.crc32c => Ok(trailer),
        _ => Err(Damage::Checksum),
    }
}

/// CRC-32C of everything but the four bytes at `hole`.
fn checksum(chunk: &[u8], hole: usize) -> Option<u32> {
    let front = crc32c::crc32c(chunk.get(..hole)?);
    Some(crc32c::crc32c_append(front, chunk.get(hole + 4..)?))
}

/// Fills `block` with one statistics block: padding alone, or standard counters and the fields.
fn write_block(
    block: &mut [u8],
    trailer: &ChunkTrailer,
    fields: Option<&[u8; FIELDS_BYTES]>,
) -> Option<()> {
    let length = block.len();
    debug_assert!(length >= PADDING_BLOCK_MIN && length.is_multiple_of(4));
    block.fill(0);
    let time = trailer.time_max_ns.max(trailer.session);
    put(block, 0, &STATISTICS_BLOCK.to_le_bytes())?;
    put(block, 4, &u32::try_from(length).ok()?.to_le_bytes())?;
    put(block, 12, &time_words(time))?;
    let mut at = BLOCK_HEAD_BYTES;
    if fields.is_some() {
        put(block, at, &option_head(2, 8))?;
        put(block, at + 4, &time_words(trailer.session))?;
        at += STANDARD_OPTION_BYTES;
        for (code, value) in standard_counters(&trailer.ledger) {
            put(block, at, &option_head(code, 8))?;
            put(block, at + 4, &value.to_le_bytes())?;
            at += STANDARD_OPTION_BYTES;
        }
    }
    let data = length.checked_sub(at + 4 + BLOCK_END_BYTES)?;
    put(block, at, &option_head(CUSTOM_OPTION, u16::try_from(data).ok()?))?;
    put(block, at + 4, &ENTERPRISE_NUMBER.to_le_bytes())?;
    if let Some(fields) = fields {
        put(block, length.checked_sub(FIELDS_FROM_END)?, fields)?;
    }
    put(block, length - 4, &u32::try_from(length).ok()?.to_le_bytes())
}

/// Codes and values of the standard options of a statistics block (pcapng draft, section 4.6).
fn standard_counters(ledger: &Ledger) -> [(u16, u64); STANDARD_OPTIONS - 1] {
    use port::Reason::{Interface, KernelRing, NoBuffer};
    let accounted = ledger.filtered_packets.saturating_add(ledger.stored_packets);
    let accounted = accounted.saturating_add(ledger.lost_total());
    let wire = if ledger.wire_packets == 0 { accounted } else { ledger.wire_packets };
    [
        (4, wire),
        (5, ledger.lost(Interface)),
        (6, wire.saturating_sub(ledger.filtered_packets)),
        (7, ledger.lost(KernelRing).saturating_add(ledger.lost(NoBuffer))),
        (8, ledger.stored_packets),
    ]
}

fn option_head(code: u16, length: u16) -> [u8; 4] {
    let (code, length) = (code.to_le_bytes(), length.to_le_bytes());
    [code[0], code[1], length[0], length[1]]
}

/// A time as pcapng has it: the upper 32 bits, then the lower.
fn time_words(time_ns: u64) -> [u8; 8] {
    time_ns.rotate_left(32).to_le_bytes()
}

fn put(block: &mut [u8], at: usize, value: &[u8]) -> Option<()> {
    block.get_mut(at..at + value.len())?.copy_from_slice(value);
    Some(())
}

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array_at(bytes, at).map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array_at(bytes, at).map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    array_at(bytes, at).map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests;
