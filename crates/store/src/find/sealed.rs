//! The chunks of a sealed segment, as far as what says so is to be believed: the time index beside
//! it, or whole chunks.
//!
//! A sealed segment ends with its last chunk. One that does not was cut or overwritten since.
//! Limit: one that was cut behind a whole chunk and has no index is taken for whole; what is
//! missing then shows in the account of the segment that follows.

use std::path::Path;

use crate::chunk::CHUNK_BYTES;
use crate::error::Result;
use crate::scan::{Piece, Scan, SegmentFile};
use crate::time_index::TimeIndex;
use crate::trailer::{ALIGNMENT_BYTES, ChunkTrailer};

/// How a segment ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// With its last chunk.
    Whole,
    /// Otherwise; the time index knows the chunks that should be there, from this one on.
    Known { first: usize, text: String },
    /// Otherwise, and how many packets are missing is not known from the segment.
    Unknown { text: String },
}

/// What a sealed segment holds, or should hold.
#[derive(Debug)]
pub(super) struct Contents {
    pub(super) chunks: Vec<ChunkTrailer>,
    pub(super) end: End,
}

/// Looks at the time index if that is the segment's; else reads all of it, since the trailers of
/// damaged chunks are not to be believed.
pub(super) fn contents(path: &Path, file: &SegmentFile) -> Result<Contents> {
    if let Some(index) = TimeIndex::beside(path)
        && is_of(&index, file)?
    {
        let end = end_by_index(&index, file)?;
        return Ok(Contents { chunks: index.chunks, end });
    }
    let mut scan = Scan::verifying(file)?;
    let mut contents = Contents { chunks: Vec::new(), end: End::Whole };
    while let Some(piece) = scan.next_piece()? {
        contents.end = match piece {
            Piece::Chunk(chunk) => {
                contents.chunks.push(chunk);
                End::Whole
            }
            Piece::Gap { offset, .. } => End::Unknown { text: torn(file, offset) },
        };
    }
    if contents.chunks.is_empty() {
        contents.end = End::Unknown { text: torn(file, 0) };
    }
    Ok(contents)
}

/// The header chunk of a segment file: it has 4096 bytes or 1 MiB.
pub(super) fn header_of(file: &SegmentFile) -> Result<Option<ChunkTrailer>> {
    for end in [ALIGNMENT_BYTES, CHUNK_BYTES] {
        let trailer = file.trailer_before(end as u64)?;
        if let Some(trailer) = trailer.filter(|trailer| trailer.offset == 0) {
            return Ok(Some(trailer));
        }
    }
    Ok(None)
}

/// Whether an index was made for this file, by the random number at either end of it. A file that
/// has neither left is the index's by its name.
fn is_of(index: &TimeIndex, file: &SegmentFile) -> Result<bool> {
    let Some(last) = index.chunks.last() else { return Ok(false) };
    let ends = [header_of(file)?, file.trailer_before(file.length()?)?];
    let mut numbers = ends.iter().flatten().map(|trailer| trailer.segment_id).peekable();
    Ok(numbers.peek().is_none() || numbers.any(|number| number == last.segment_id))
}

fn end_by_index(index: &TimeIndex, file: &SegmentFile) -> Result<End> {
    let (length, expected) = (file.length()?, index.segment_length());
    let name = file.name();
    let chunk_count = index.chunks.len();
    let (first, text) = if length < expected {
        let there = index.chunks.iter().take_while(|chunk| chunk.end() <= length).count();
        let text = format!(
            "{name}: ends at byte {length}; its end is missing, up to byte {expected} by its time \
             index"
        );
        (there, text)
    } else if length > expected {
        let text = format!(
            "{name}: goes on up to byte {length} behind its end, which is byte {expected} by its \
             time index"
        );
        (chunk_count, text)
    } else if file.trailer_before(length)?.as_ref() != index.chunks.last() {
        let first = chunk_count.saturating_sub(1);
        let at = index.chunks.last().map_or(0, |chunk| chunk.offset);
        let text = format!(
            "{name}: its end is damaged: the last chunk, from byte {at} on, is not the one that \
             its time index names"
        );
        (first, text)
    } else {
        return Ok(End::Whole);
    };
    Ok(End::Known { first, text })
}

fn torn(file: &SegmentFile, offset: u64) -> String {
    let name = file.name();
    if offset == 0 {
        return format!("{name}: holds no whole chunk; all of its packets are missing");
    }
    format!("{name}: its end is missing or damaged: no whole chunk lies from byte {offset} on")
}
