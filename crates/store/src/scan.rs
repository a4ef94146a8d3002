//! Finds the chunks of a segment file, whole or damaged, by their trailers alone.
//!
//! Chunks lie end to end from the beginning of the file, each at a multiple of 4096 bytes and at
//! most 1 MiB long, so at each possible end it is asked whether a trailer lies there that says that
//! the chunk begins where it should. A *gap* is what lies between chunks and is none: never
//! written, torn, or overwritten. Gaps are looked through up to the end of the file or `reach`,
//! since chunks may reach the disk in any order.
//! A trailer counts only if it names its own place in the file and the segment's random number, so
//! that recorded traffic that itself contains segments is not taken for one.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use crate::chunk::CHUNK_BYTES;
use crate::error::{Result, StoreError};
use crate::lock;
use crate::trailer::{self, ALIGNMENT_BYTES, ChunkTrailer, FIELDS_FROM_END};

/// A file that is read at given places.
#[derive(Debug)]
pub struct SegmentFile {
    file: File,
    name: String,
}

impl SegmentFile {
    /// Opens for reading.
    pub fn open(path: &std::path::Path) -> Result<Self> {
        let name = path.display().to_string();
        match File::open(path) {
            Ok(file) => Ok(Self { file, name }),
            Err(source) => Err(StoreError::Open { name, source }),
        }
    }

    /// The file's path, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its length in bytes.
    pub fn length(&self) -> Result<u64> {
        let metadata = self.file.metadata();
        metadata.map(|data| data.len()).map_err(|source| self.failed(0, source))
    }

    /// Fills `memory` from byte `offset` on; returns how many bytes there were before the end.
    pub fn read(&self, memory: &mut [u8], offset: u64) -> Result<usize> {
        let mut filled = 0;
        while let Some(room) = memory.get_mut(filled..).filter(|room| !room.is_empty()) {
            let at = offset + filled as u64;
            match self.file.read_at(room, at) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(source) => return Err(self.failed(at, source)),
            }
        }
        Ok(filled)
    }

    /// The trailer of the chunk that ends at byte `end`, unchecked but for its own place in the
    /// file; `None` if there is none.
    pub fn trailer_before(&self, end: u64) -> Result<Option<ChunkTrailer>> {
        let mut tail = [0; FIELDS_FROM_END];
        let Some(from) = end.checked_sub(FIELDS_FROM_END as u64) else {
            return Ok(None);
        };
        if self.read(&mut tail, from)? < tail.len() {
            return Ok(None);
        }
        Ok(ChunkTrailer::at_end_of(&tail).filter(|trailer| trailer.end() == end))
    }

    /// Whether a recorder writes to it.
    pub(crate) fn has_writer(&self) -> bool {
        lock::is_held(&self.file, Instant::now() + lock::TEARDOWN)
    }

    fn failed(&self, offset: u64, source: std::io::Error) -> StoreError {
        StoreError::Read { name: self.name.clone(), offset, source }
    }
}

/// What lies next in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    /// A chunk; whole, if the scan verifies.
    Chunk(ChunkTrailer),
    /// Bytes that are no chunk.
    Gap {
        /// Where it begins.
        offset: u64,
        /// Bytes up to the next chunk, or the end of the scan.
        length: u64,
        /// Bytes up to the last one that is not zero: what may once have been packets.
        data_length: u64,
    },
}

/// A pass over a segment file from its beginning.
#[derive(Debug)]
pub struct Scan<'f> {
    file: &'f SegmentFile,
    window: Vec<u8>,
    /// File offset of the window, and how much of it is filled.
    window_offset: u64,
    window_length: usize,
    at: u64,
    end: u64,
    reach: u64,
    verify: bool,
    segment_id: Option<[u8; 16]>,
}

/// Any chunk that begins in the first half of the window lies in it wholly.
const WINDOW_BYTES: usize = 2 * CHUNK_BYTES;

impl<'f> Scan<'f> {
    /// A pass that reads all bytes and reports only chunks whose checksum is right.
    pub fn verifying(file: &'f SegmentFile) -> Result<Self> {
        Self::new(file, true, u64::MAX)
    }

    /// A pass that reads little more than trailers, does not look at checksums, and ends at a gap
    /// of `reach` bytes: for a file that is being written.
    pub fn quick(file: &'f SegmentFile, reach: u64) -> Result<Self> {
        Self::new(file, false, reach)
    }

    fn new(file: &'f SegmentFile, verify: bool, reach: u64) -> Result<Self> {
        Ok(Self {
            file,
            window: vec![0; WINDOW_BYTES],
            window_offset: 0,
            window_length: 0,
            at: 0,
            end: file.length()?,
            reach,
            verify,
            segment_id: None,
        })
    }

    /// The next chunk or gap, in the order of the file; `None` at the end.
    pub fn next_piece(&mut self) -> Result<Option<Piece>> {
        if self.at >= self.end {
            return Ok(None);
        }
        if let Some(trailer) = self.probe()? {
            return Ok(Some(self.take(trailer)));
        }
        let begin = self.at;
        let mut data_length = 0;
        let mut from = begin;
        while from < self.end && from - begin <= self.reach {
            if from != begin || !self.window_covers(from) {
                self.fill(from)?;
            }
            if let Some(trailer) = self.find_in_window(from) {
                if trailer.offset == begin {
                    return Ok(Some(self.take(trailer)));
                }
                let length = trailer.offset - begin;
                let seen = self.data_end(from, trailer.offset).map(|end| end - begin);
                self.at = trailer.offset;
                let data_length = seen.unwrap_or(data_length);
                return Ok(Some(Piece::Gap { offset: begin, length, data_length }));
            }
            let next = (from + CHUNK_BYTES as u64).min(self.end);
            data_length = self.data_end(from, next).map_or(data_length, |end| end - begin);
            from = next;
        }
        self.at = self.end;
        Ok(Some(Piece::Gap { offset: begin, length: self.end - begin, data_length }))
    }

    /// The usual case of a file being written at speed: a chunk of full length comes next.
    fn probe(&self) -> Result<Option<ChunkTrailer>> {
        if self.verify || self.window_covers(self.at) {
            return Ok(None);
        }
        let trailer = self.file.trailer_before(self.at + CHUNK_BYTES as u64)?;
        Ok(trailer.filter(|trailer| trailer.offset == self.at && self.is_mine(trailer)))
    }

    fn take(&mut self, trailer: ChunkTrailer) -> Piece {
        self.segment_id = Some(trailer.segment_id);
        self.at = trailer.end();
        Piece::Chunk(trailer)
    }

    fn is_mine(&self, trailer: &ChunkTrailer) -> bool {
        self.segment_id.is_none_or(|id| id == trailer.segment_id)
    }

    /// Whether a whole chunk from `at` on must lie in what the window holds.
    fn window_covers(&self, at: u64) -> bool {
        let window_end = self.window_offset + self.window_length as u64;
        let needed = (at + CHUNK_BYTES as u64).min(self.end);
        self.window_length > 0 && at >= self.window_offset && needed <= window_end
    }

    fn fill(&mut self, from: u64) -> Result<()> {
        self.window_offset = from;
        self.window_length = self.file.read(&mut self.window, from)?;
        Ok(())
    }

    /// The first chunk that begins at `from` or within 1 MiB behind it, by where it ends.
    fn find_in_window(&self, from: u64) -> Option<ChunkTrailer> {
        let start = usize::try_from(from - self.window_offset).ok()?;
        let mut end = start + ALIGNMENT_BYTES;
        while end <= self.window_length {
            let trailer = ChunkTrailer::at_end_of(self.window.get(..end)?);
            if let Some(trailer) = trailer.filter(|trailer| {
                trailer.end() == self.window_offset + end as u64
                    && trailer.offset >= from
                    && trailer.offset.is_multiple_of(ALIGNMENT_BYTES as u64)
                    && self.is_mine(trailer)
                    && (!self.verify || self.is_whole(trailer, end))
            }) {
                return Some(trailer);
            }
            end += ALIGNMENT_BYTES;
        }
        None
    }

    fn is_whole(&self, trailer: &ChunkTrailer, end: usize) -> bool {
        let start = end.checked_sub(trailer.length as usize);
        let chunk = start.and_then(|start| self.window.get(start..end));
        chunk.is_some_and(|chunk| trailer::verify(chunk).is_ok())
    }

    /// File offset behind the last byte that is not zero of `from..to`, as far as the window holds
    /// it.
    fn data_end(&self, from: u64, to: u64) -> Option<u64> {
        let start = usize::try_from(from.checked_sub(self.window_offset)?).ok()?;
        let end = usize::try_from(to - self.window_offset).ok()?.min(self.window_length);
        let last = self.window.get(start..end)?.iter().rposition(|byte| *byte != 0)?;
        Some(from + last as u64 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn chunk(offset: u64, sequence: u64, length: usize) -> Vec<u8> {
        let mut memory = vec![0; CHUNK_BYTES];
        let mut trailer = ChunkTrailer { offset, sequence, ..ChunkTrailer::default() };
        let length = trailer::seal(&mut memory, 100, length, &mut trailer).unwrap();
        memory.truncate(length);
        memory
    }

    fn scan(bytes: &[u8], verify: bool) -> Vec<(u64, u64, Option<u64>)> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let file = SegmentFile::open(file.path()).unwrap();
        let mut scan = Scan::new(&file, verify, u64::MAX).unwrap();
        let mut pieces = Vec::new();
        while let Some(piece) = scan.next_piece().unwrap() {
            pieces.push(match piece {
                Piece::Chunk(t) => (t.offset, u64::from(t.length), Some(t.sequence)),
                Piece::Gap { offset, length, .. } => (offset, length, None),
            });
        }
        pieces
    }

    fn file_of(lengths: &[usize]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (sequence, length) in lengths.iter().enumerate() {
            let part = chunk(bytes.len() as u64, sequence as u64, *length);
            bytes.extend(part);
        }
        bytes
    }

    #[test]
    fn chunks_of_all_lengths_are_found_in_order() {
        let lengths = [4096, 4096, 1 << 20, 1 << 20, 8192, 1 << 20, 4096, 500 << 10];
        let bytes = file_of(&lengths);
        for verify in [false, true] {
            let pieces = scan(&bytes, verify);
            assert_eq!(pieces.len(), lengths.len());
            for (index, piece) in pieces.iter().enumerate() {
                assert_eq!((piece.1, piece.2), (lengths[index] as u64, Some(index as u64)));
            }
        }
    }

    #[test]
    fn gaps_have_their_exact_extent() {
        let mut bytes = file_of(&[4096, 1 << 20, 1 << 20, 8192, 4096]);
        bytes[4096..4096 + (2 << 20)].fill(0);
        bytes[5000] = 1;
        bytes.resize(bytes.len() + (3 << 20), 0);
        let gap = 2 << 20;
        let expected = [
            (0, 4096, Some(0)),
            (4096, gap, None),
            (4096 + gap, 8192, Some(3)),
            (12_288 + gap, 4096, Some(4)),
            (16_384 + gap, 3 << 20, None),
        ];
        assert_eq!(scan(&bytes, true), expected);
        assert_eq!(scan(&bytes, false), expected);
    }

    #[test]
    fn the_data_in_a_gap_is_measured() {
        let mut bytes = vec![0; 5 << 20];
        bytes[(3 << 20) + 9] = 1;
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bytes).unwrap();
        let file = SegmentFile::open(file.path()).unwrap();
        let piece = Scan::verifying(&file).unwrap().next_piece().unwrap().unwrap();
        let data_length = (3 << 20) + 10;
        assert_eq!(piece, Piece::Gap { offset: 0, length: 5 << 20, data_length });
    }

    #[test]
    fn a_chunk_elsewhere_than_it_says_is_none() {
        let mut bytes = file_of(&[4096]);
        bytes.extend(chunk(0, 1, 4096));
        assert_eq!(scan(&bytes, true), [(0, 4096, Some(0)), (4096, 4096, None)]);
    }
}
