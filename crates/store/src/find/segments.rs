//! Which segments and chunks of a store may hold what is looked for.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::FindReport;
use super::sealed::{self, header_of};
use super::survey::Survey;
use crate::chunk::CHUNK_BYTES;
use crate::error::{Result, StoreError};
use crate::pcapng::block::{INTERFACE_DESCRIPTION, MINIMUM_LENGTH};
use crate::pcapng::interface::parse_interface;
use crate::pcapng::{BlockHead, ByteOrder};
use crate::record::Interface;
use crate::scan::{Scan, SegmentFile};
use crate::segment::{self, SegmentEntry};
use crate::selection::Selection;
use crate::time_index::{self, TimeIndex};
use crate::trailer::{self, ChunkTrailer};

/// How far a segment that is being written is looked through behind the last chunk found: more
/// than a recorder has in flight.
const OPEN_REACH_BYTES: u64 = 64 << 20;

/// Shortest block that holds a packet.
const PACKET_BLOCK_MIN_BYTES: u32 = 32;

/// A segment that has chunks to be read.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) path: PathBuf,
    /// Kept from the beginning for one that is being written, since its name will change.
    pub(super) file: Option<SegmentFile>,
    pub(super) interface: Interface,
    /// Chunks that may hold packets of the window.
    pub(super) chunks: Vec<ChunkTrailer>,
}

/// The segments of a directory with chunks that touch the window.
pub(super) fn of_directory(
    directory: &Path,
    selection: &Selection,
    report: &mut FindReport,
) -> Result<Vec<Segment>> {
    let mut survey = Survey::new(selection);
    let mut segments = Vec::new();
    let (segments_now, others): (Vec<_>, Vec<_>) =
        entries(directory)?.into_iter().partition(|entry| entry.regular);
    if segments_now.is_empty() && !(others.is_empty() && segment::is_store(directory)) {
        return Err(no_recording(directory, others.first()));
    }
    report.warnings.extend(others.iter().map(|entry| not_a_segment(&entry.path)));
    for entry in segments_now {
        match look_at(&entry, &mut survey, report) {
            Ok(Some(segment)) => segments.push(segment),
            Ok(None) => report.segments_skipped += 1,
            // Sealed or deleted since it was listed.
            Err(StoreError::Open { source, .. }) if source.kind() == ErrorKind::NotFound => {
                let renamed = entries(directory)?.into_iter().find(|other| {
                    (other.stream, other.number) == (entry.stream, entry.number)
                        && other.path != entry.path
                        && other.regular
                });
                match renamed {
                    Some(sealed) => {
                        segments.extend(look_at(&sealed, &mut survey, report)?);
                    }
                    None => report.segments_vanished += 1,
                }
            }
            Err(error) => return Err(error),
        }
    }
    survey.end(report);
    report.segments_read += segments.len() as u64;
    Ok(segments)
}

fn not_a_segment(path: &Path) -> String {
    format!(
        "{} has the name of a segment and is no file; it was passed over: remove or rename it",
        path.display()
    )
}

fn no_recording(directory: &Path, other: Option<&SegmentEntry>) -> StoreError {
    StoreError::NoRecording {
        directory: directory.display().to_string(),
        reason: match other {
            Some(entry) => not_a_segment(&entry.path),
            None => "no segment lies in it; name the directory that was recorded to, or capture \
                     files one by one"
                .into(),
        },
    }
}

/// A single segment file; `None` if the file is none.
pub(super) fn of_file(
    path: &Path,
    selection: &Selection,
    report: &mut FindReport,
) -> Result<Option<Vec<Segment>>> {
    let named = segment::parse_name(path);
    // One that was overwritten is still known by its name and the time index beside it.
    let is_known =
        || named.as_ref().is_some_and(|entry| !entry.open) && TimeIndex::beside(path).is_some();
    if header_of(&SegmentFile::open(path)?)?.is_none() && !is_known() {
        return Ok(None);
    }
    let entry = named.unwrap_or_else(|| SegmentEntry {
        number: 0,
        stream: 0,
        open: path.to_string_lossy().ends_with(segment::OPEN_ENDING),
        regular: true,
        path: path.to_path_buf(),
    });
    let mut survey = Survey::new(selection);
    let found = look_at(&entry, &mut survey, report)?;
    survey.end(report);
    match &found {
        Some(_) => report.segments_read += 1,
        None => report.segments_skipped += 1,
    }
    Ok(Some(found.into_iter().collect()))
}

/// Listed twice, since a directory that changes under the eyes may show a file that is renamed
/// under neither name.
fn entries(directory: &Path) -> Result<Vec<SegmentEntry>> {
    let mut entries = BTreeMap::new();
    for entry in segment::list(directory)?.into_iter().chain(segment::list(directory)?) {
        entries.insert((entry.stream, entry.number, entry.path.clone()), entry);
    }
    let mut entries: Vec<SegmentEntry> = entries.into_values().collect();
    // Of a segment that was sealed between the two, the sealed name is the one that lasts.
    // A pipe of the same number must not hide it, nor be hidden.
    entries.sort_by_key(|entry| (entry.stream, entry.number, entry.regular, entry.open));
    entries.dedup_by_key(|entry| (entry.stream, entry.number, entry.regular));
    Ok(entries)
}

/// Looks at the time index, or at the chunks; follows the accounts. `None` if nothing in the
/// segment touches the window.
fn look_at(
    entry: &SegmentEntry,
    survey: &mut Survey<'_>,
    report: &mut FindReport,
) -> Result<Option<Segment>> {
    let file = SegmentFile::open(&entry.path)?;
    if !entry.open
        && let Some(summary) = time_index::load_summary(&entry.path, &file)?
        && survey.passes_over(&summary, report)
    {
        return Ok(None);
    }
    let (first, chunks) = if entry.open {
        look_at_open(entry, &file, survey, report)?
    } else {
        look_at_sealed(entry, &file, survey, report)?
    };
    if chunks.is_empty() {
        return Ok(None);
    }
    let interface = interface_of(&file, first.as_ref(), chunks.first());
    let file = entry.open.then_some(file);
    Ok(Some(Segment { path: entry.path.clone(), file, interface, chunks }))
}

/// First chunk of a segment, and those to be read.
type Chunks = (Option<ChunkTrailer>, Vec<ChunkTrailer>);

fn look_at_sealed(
    entry: &SegmentEntry,
    file: &SegmentFile,
    survey: &mut Survey<'_>,
    report: &mut FindReport,
) -> Result<Chunks> {
    let contents = sealed::contents(&entry.path, file)?;
    let all = &contents.chunks;
    let mut chunks = Vec::new();
    for (at, chunk) in all.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| all.get(at));
        survey.cross_hole(&entry.path, before, chunk, report);
        if !chunk.is_header() {
            survey.follow(chunk, report);
            choose(*chunk, survey.selection, &mut chunks, report);
        }
    }
    survey.leave_sealed(entry.stream, &contents, report);
    Ok((all.first().copied(), chunks))
}

fn look_at_open(
    entry: &SegmentEntry,
    file: &SegmentFile,
    survey: &mut Survey<'_>,
    report: &mut FindReport,
) -> Result<Chunks> {
    let all = TimeIndex::collect(Scan::quick(file, OPEN_REACH_BYTES)?)?.chunks;
    let mut chunks = Vec::new();
    for (at, chunk) in all.iter().enumerate().filter(|(_, chunk)| !chunk.is_header()) {
        let before = at.checked_sub(1).and_then(|at| all.get(at));
        let by_neighbours = packets_between(before, chunk, all.get(at + 1));
        // Reading all chunks twice would cost too much: only those that have something to tell.
        let whole = survey.is_expected(chunk) || is_whole(file, chunk)?;
        let packets = match by_neighbours {
            Some(packets) => packets,
            None if whole => chunk.packets,
            None => chunk.packets.min(chunk.content_length / PACKET_BLOCK_MIN_BYTES),
        };
        let chunk = ChunkTrailer { packets, ..*chunk };
        if whole {
            survey.follow(&chunk, report);
        } else {
            survey.follow_damaged(&chunk, report);
        }
        choose(chunk, survey.selection, &mut chunks, report);
    }
    if let Some(last) = all.last() {
        let being_recorded = is_being_recorded(entry, file);
        survey.accounts.leave_open(last, being_recorded, &mut report.completeness);
    }
    Ok((all.first().copied(), chunks))
}

/// Takes a chunk that may hold packets of the window.
fn choose(
    chunk: ChunkTrailer,
    selection: &Selection,
    chunks: &mut Vec<ChunkTrailer>,
    report: &mut FindReport,
) {
    if chunk.packets > 0 && selection.overlaps(chunk.time_min_ns, chunk.time_max_ns) {
        chunks.push(chunk);
    } else {
        report.chunks_skipped += 1;
    }
}

/// Whether the checksum of a chunk of an open segment is right, maybe after a little while.
fn is_whole(file: &SegmentFile, chunk: &ChunkTrailer) -> Result<bool> {
    let mut bytes = vec![0; (chunk.length as usize).min(CHUNK_BYTES)];
    Ok(super::read_whole(file, &mut bytes, chunk.offset, super::ATTEMPTS)?.as_ref() == Some(chunk))
}

/// Whether the recorder of an open segment was at work when the segment was looked at. It seals its
/// segments before it lets go of its locks, so one that is open behind that was left behind. The
/// file for the lock may have been removed; the segment's own lock says the same, but outlives a
/// killed recorder for a while.
fn is_being_recorded(entry: &SegmentEntry, file: &SegmentFile) -> bool {
    let directory = entry.path.parent().unwrap_or(Path::new(""));
    segment::has_recorder(directory, entry.stream) || file.has_writer() || !entry.path.exists()
}

/// Packets of a chunk by the accounts of its neighbours, which hold even if its own bytes are
/// damaged.
fn packets_between(
    before: Option<&ChunkTrailer>,
    chunk: &ChunkTrailer,
    after: Option<&ChunkTrailer>,
) -> Option<u32> {
    let (before, after) = (before?, after?);
    let adjacent = ![before, chunk, after].iter().any(|chunk| chunk.is_filler())
        && before.sequence.checked_add(1) == Some(chunk.sequence)
        && chunk.sequence.checked_add(1) == Some(after.sequence);
    let begin = before.packets_before.checked_add(u64::from(before.packets))?;
    let packets = after.packets_before.checked_sub(begin).filter(|_| adjacent)?;
    u32::try_from(packets).ok().filter(|packets| *packets <= chunk.length / PACKET_BLOCK_MIN_BYTES)
}

/// From the header chunk if that is whole, else the little that every trailer says.
fn interface_of(
    file: &SegmentFile,
    header: Option<&ChunkTrailer>,
    any: Option<&ChunkTrailer>,
) -> Interface {
    let described = header.filter(|header| header.is_header()).and_then(|header| {
        let mut bytes = vec![0; header.length as usize];
        file.read(&mut bytes, 0).ok()?;
        trailer::verify(&bytes).ok()?;
        described_interface(&bytes)
    });
    described.unwrap_or_else(|| any.copied().unwrap_or_default().interface())
}

fn described_interface(mut blocks: &[u8]) -> Option<Interface> {
    loop {
        let first = blocks.first_chunk::<MINIMUM_LENGTH>()?;
        let head = BlockHead::parse(first, ByteOrder::Little).ok()?;
        let block = blocks.get(..head.length)?;
        if head.block_type == INTERFACE_DESCRIPTION {
            return Some(parse_interface(block, head.order).ok()?.0);
        }
        blocks = blocks.get(head.length..)?;
    }
}
