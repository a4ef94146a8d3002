//! The time index of a segment: the fields of all its chunk trailers in one small file.
//!
//! It lies beside a sealed segment, is written once (temporary name, flushed to disk, renamed), and
//! can be deleted at any time: it is rebuilt from the chunks. An index is used only if the
//! segment's length and random number are those that it was made for.
//!
//! Layout, little-endian: a head of 64 bytes ([`MAGIC`], u16 version, u16 zero, u32 CRC-32C of
//! everything behind the head, 16 bytes segment number, u64 length of the segment, u64 earliest and
//! u64 latest time in ns, u32 number of chunks, u32 CRC-32C of the head before it), then 256 bytes
//! per chunk as in [`crate::trailer`]. That is 0.03 % of a segment whose chunks are full.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use crate::error::{Result, StoreError};
use crate::pcapng::ByteOrder;
use crate::scan::{Piece, Scan, SegmentFile};
use crate::segment;
use crate::trailer::{ChunkTrailer, FIELDS_BYTES};

/// First eight bytes of an index.
pub const MAGIC: [u8; 8] = *b"LRTIME1\n";
const VERSION: u16 = 1;
const HEAD_BYTES: usize = 64;
const HEAD_CHECKED_BYTES: usize = HEAD_BYTES - 4;

/// The chunks of a segment, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TimeIndex {
    /// Trailers of all chunks, header and fillers included.
    pub chunks: Vec<ChunkTrailer>,
}

/// What an index says of its segment as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeSummary {
    /// Random number of the segment.
    pub segment_id: [u8; 16],
    /// Length of the segment in bytes.
    pub segment_length: u64,
    /// Earliest packet time in ns; `u64::MAX` without packets.
    pub time_min_ns: u64,
    /// Latest packet time in ns; 0 without packets.
    pub time_max_ns: u64,
    /// Number of chunks.
    pub chunk_count: u32,
    /// The last chunk's trailer, whose account covers the segment.
    pub last: ChunkTrailer,
}

impl TimeIndex {
    /// Bytes of the segment that the chunks make up.
    pub fn segment_length(&self) -> u64 {
        self.chunks.last().map_or(0, ChunkTrailer::end)
    }

    /// What the index says as a whole; `None` if it has no chunk.
    pub fn summary(&self) -> Option<TimeSummary> {
        let last = *self.chunks.last()?;
        let with_packets = || self.chunks.iter().filter(|chunk| chunk.packets > 0);
        Some(TimeSummary {
            segment_id: last.segment_id,
            segment_length: last.end(),
            time_min_ns: with_packets().map(|chunk| chunk.time_min_ns).min().unwrap_or(u64::MAX),
            time_max_ns: with_packets().map(|chunk| chunk.time_max_ns).max().unwrap_or(0),
            chunk_count: u32::try_from(self.chunks.len()).ok()?,
            last,
        })
    }

    /// The index as it is written; empty if it has no chunk.
    pub fn encode(&self) -> Vec<u8> {
        let Some(summary) = self.summary() else {
            return Vec::new();
        };
        let body: Vec<u8> = self.chunks.iter().flat_map(ChunkTrailer::encode).collect();
        let mut bytes = Vec::with_capacity(HEAD_BYTES + body.len());
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend([0; 2]);
        bytes.extend(crc32c::crc32c(&body).to_le_bytes());
        bytes.extend(summary.segment_id);
        for value in [summary.segment_length, summary.time_min_ns, summary.time_max_ns] {
            bytes.extend(value.to_le_bytes());
        }
        bytes.extend(summary.chunk_count.to_le_bytes());
        bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
        bytes.extend(body);
        bytes
    }

    /// Reads an index; `None` if it is not one, or damaged.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (head, body) = bytes.split_first_chunk::<HEAD_BYTES>()?;
        let (body_crc32c, chunk_count) = decode_head(head)?;
        if crc32c::crc32c(body) != body_crc32c || body.len() != chunk_count * FIELDS_BYTES {
            return None;
        }
        let chunks: Option<Vec<_>> =
            body.chunks_exact(FIELDS_BYTES).map(ChunkTrailer::decode).collect();
        Some(Self { chunks: chunks? })
    }

    /// Writes the index beside its sealed segment so that it is there wholly or not at all.
    pub fn write(&self, segment: &Path) -> Result<()> {
        let path = segment::index_path(segment);
        let temporary = path.with_extension("time-index.tmp");
        let failed =
            |source| StoreError::Write { what: format!("time index {}", path.display()), source };
        let written = File::create(&temporary).and_then(|mut file| {
            file.write_all(&self.encode())?;
            file.sync_data()?;
            fs::rename(&temporary, &path)
        });
        if written.is_err() {
            // What was begun is of no use to anybody; that it may stay does no harm either.
            let _ = fs::remove_file(&temporary);
        }
        written.map_err(failed)
    }

    /// The index beside a sealed segment, whatever became of the segment; `None` if there is none,
    /// or it is damaged.
    pub fn beside(segment: &Path) -> Option<Self> {
        let beside = segment::index_path(segment);
        let bytes = segment::is_regular(&beside).then(|| fs::read(beside))?.ok()?;
        Self::decode(&bytes)
    }

    /// The index of a sealed segment: the file beside it if it fits, else from the chunks.
    pub fn load(path: &Path, file: &SegmentFile) -> Result<Self> {
        let length = file.length()?;
        if let Some(index) = Self::beside(path)
            && index.segment_length() == length
            && file.trailer_before(length)?.as_ref() == index.chunks.last()
        {
            return Ok(index);
        }
        Self::rebuild(file)
    }

    /// The index from the whole chunks themselves, by a pass over all bytes. Gaps are left out.
    pub fn rebuild(file: &SegmentFile) -> Result<Self> {
        Self::collect(Scan::verifying(file)?)
    }

    /// The chunks that a scan finds.
    pub fn collect(mut scan: Scan<'_>) -> Result<Self> {
        let mut index = Self::default();
        while let Some(piece) = scan.next_piece()? {
            if let Piece::Chunk(trailer) = piece {
                index.chunks.push(trailer);
            }
        }
        Ok(index)
    }
}

/// Checksum of the body and number of chunks, if the head is whole.
fn decode_head(head: &[u8; HEAD_BYTES]) -> Option<(u32, usize)> {
    let order = ByteOrder::Little;
    let own = crc32c::crc32c(head.get(..HEAD_CHECKED_BYTES)?);
    let whole = head.starts_with(&MAGIC)
        && order.u16_at(head, 8)? == VERSION
        && order.u32_at(head, HEAD_CHECKED_BYTES)? == own;
    let chunk_count = order.u32_at(head, HEAD_CHECKED_BYTES - 4)? as usize;
    whole.then_some((order.u32_at(head, 12)?, chunk_count))
}

/// Reads only the head and the last entry of the index beside a sealed segment; `None` if there is
/// none, it is damaged, or made for another file.
pub fn load_summary(path: &Path, file: &SegmentFile) -> Result<Option<TimeSummary>> {
    let beside = segment::index_path(path);
    let Some(Ok(index)) = segment::is_regular(&beside).then(|| SegmentFile::open(&beside)) else {
        return Ok(None);
    };
    let mut head = [0; HEAD_BYTES];
    if index.read(&mut head, 0)? < HEAD_BYTES {
        return Ok(None);
    }
    let Some((_, chunk_count)) = decode_head(&head) else {
        return Ok(None);
    };
    let length = file.length()?;
    let word = |at: usize| head.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
    let fields = (|| Some((word(32)?, word(40)?, word(48)?)))();
    let last = file.trailer_before(length)?;
    let (Some((segment_length, time_min_ns, time_max_ns)), Some(last)) = (fields, last) else {
        return Ok(None);
    };
    let mut fields = [0; FIELDS_BYTES];
    let at = HEAD_BYTES + chunk_count.saturating_sub(1) * FIELDS_BYTES;
    index.read(&mut fields, at as u64)?;
    // Two copies that agree are believed without the checksum of either.
    let fits = segment_length == length
        && head.get(16..32) == Some(&last.segment_id[..])
        && ChunkTrailer::decode(&fields) == Some(last);
    Ok(fits.then_some(TimeSummary {
        segment_id: last.segment_id,
        segment_length,
        time_min_ns,
        time_max_ns,
        chunk_count: chunk_count as u32,
        last,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trailer;
    use proptest::prelude::*;

    fn segment(directory: &Path, count: u64) -> (std::path::PathBuf, TimeIndex) {
        let mut bytes = Vec::new();
        let mut index = TimeIndex::default();
        for sequence in 0..count {
            let mut memory = vec![0; 8192];
            let mut trailer = ChunkTrailer {
                sequence,
                offset: bytes.len() as u64,
                packets: 1,
                time_min_ns: 1000 - sequence,
                time_max_ns: 2000 + sequence,
                ..ChunkTrailer::default()
            };
            let length = trailer::seal(&mut memory, 64, 0, &mut trailer).unwrap();
            bytes.extend_from_slice(&memory[..length]);
            index.chunks.push(trailer);
        }
        let path = directory.join("x-s00-000001.pcapng");
        fs::write(&path, bytes).unwrap();
        (path, index)
    }

    #[test]
    fn an_index_is_written_loaded_and_rebuilt() {
        let directory = tempfile::tempdir().unwrap();
        let (path, index) = segment(directory.path(), 5);
        let file = SegmentFile::open(&path).unwrap();
        assert_eq!(load_summary(&path, &file).unwrap(), None);
        assert_eq!(TimeIndex::load(&path, &file).unwrap(), index);
        index.write(&path).unwrap();
        assert_eq!(TimeIndex::load(&path, &file).unwrap(), index);
        assert_eq!(load_summary(&path, &file).unwrap(), index.summary());
        assert_eq!(index.summary().unwrap().time_min_ns, 996);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn an_index_of_another_segment_is_not_used() {
        let directory = tempfile::tempdir().unwrap();
        let (path, old) = segment(directory.path(), 5);
        old.write(&path).unwrap();
        let (path, new) = segment(directory.path(), 4);
        let file = SegmentFile::open(&path).unwrap();
        assert_eq!(load_summary(&path, &file).unwrap(), None);
        assert_eq!(TimeIndex::load(&path, &file).unwrap(), new);
    }

    #[test]
    fn damage_anywhere_in_an_index_is_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let (_, index) = segment(directory.path(), 3);
        let bytes = index.encode();
        assert_eq!(TimeIndex::decode(&bytes), Some(index));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            // Two bytes of the head are spare, but under the head's checksum all the same.
            assert_eq!(TimeIndex::decode(&damaged), None, "byte {at}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_decoded(bytes in proptest::collection::vec(any::<u8>(), 0..700)) {
            let _ = TimeIndex::decode(&bytes);
            let mut with_magic = MAGIC.to_vec();
            with_magic.extend(bytes);
            let _ = TimeIndex::decode(&with_magic);
        }
    }
}
