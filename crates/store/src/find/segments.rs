//! Which segments and chunks of a store may hold what is looked for.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::FindReport;
use super::losses::Accounts;
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
use crate::trailer::{self, ALIGNMENT_BYTES, ChunkTrailer};

/// How far a segment that is being written is looked through behind the last chunk found: more
/// than a recorder has in flight.
const OPEN_REACH_BYTES: u64 = 64 << 20;

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
    let mut accounts = Accounts::new(selection);
    let mut segments = Vec::new();
    let (segments_now, others): (Vec<_>, Vec<_>) =
        entries(directory)?.into_iter().partition(|entry| entry.regular);
    if segments_now.is_empty() && !(others.is_empty() && segment::is_store(directory)) {
        return Err(no_recording(directory, others.first()));
    }
    report.warnings.extend(others.iter().map(|entry| not_a_segment(&entry.path)));
    for entry in segments_now {
        match survey(&entry, selection, &mut accounts, report) {
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
                        segments.extend(survey(&sealed, selection, &mut accounts, report)?);
                    }
                    None => report.segments_vanished += 1,
                }
            }
            Err(error) => return Err(error),
        }
    }
    report.end(accounts);
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
    if header_of(&SegmentFile::open(path)?)?.is_none() {
        return Ok(None);
    }
    let entry = segment::parse_name(path).unwrap_or_else(|| SegmentEntry {
        number: 0,
        stream: 0,
        open: path.to_string_lossy().ends_with(segment::OPEN_ENDING),
        regular: true,
        path: path.to_path_buf(),
    });
    let mut accounts = Accounts::new(selection);
    let found = survey(&entry, selection, &mut accounts, report)?;
    report.end(accounts);
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

/// Looks at the time index, or at the trailers; follows the accounts. `None` if nothing in the
/// segment touches the window.
fn survey(
    entry: &SegmentEntry,
    selection: &Selection,
    accounts: &mut Accounts<'_>,
    report: &mut FindReport,
) -> Result<Option<Segment>> {
    let file = SegmentFile::open(&entry.path)?;
    if !entry.open
        && let Some(summary) = time_index::load_summary(&entry.path, &file)?
    {
        let latest = accounts.latest_ns(summary.last.session, summary.last.stream);
        let from = latest.min(summary.time_min_ns);
        let to = latest.max(summary.time_max_ns).max(summary.last.time_max_ns);
        // Behind an interruption nobody knows how long packets were missing.
        if !summary.last.is_filler() && !selection.overlaps(from, to) {
            accounts.pass_over(&summary.last, to, &mut report.completeness);
            report.chunks_skipped += u64::from(summary.chunk_count);
            return Ok(None);
        }
    }
    let index = if entry.open {
        TimeIndex::collect(Scan::quick(&file, OPEN_REACH_BYTES)?)?
    } else {
        TimeIndex::load(&entry.path, &file)?
    };
    let mut chunks = Vec::new();
    for (at, chunk) in index.chunks.iter().enumerate().filter(|(_, chunk)| !chunk.is_header()) {
        let before = at.checked_sub(1).and_then(|at| index.chunks.get(at));
        let packets = packets_between(before, chunk, index.chunks.get(at + 1));
        let chunk = ChunkTrailer { packets, ..*chunk };
        accounts.follow(&chunk, &mut report.completeness);
        if packets > 0 && selection.overlaps(chunk.time_min_ns, chunk.time_max_ns) {
            chunks.push(chunk);
        } else {
            report.chunks_skipped += 1;
        }
    }
    if entry.open
        && let Some(last) = index.chunks.last()
    {
        accounts.leave_open(last, is_being_recorded(entry), &mut report.completeness);
    }
    if chunks.is_empty() {
        return Ok(None);
    }
    let interface = interface_of(&file, index.chunks.first(), chunks.first());
    let file = entry.open.then_some(file);
    Ok(Some(Segment { path: entry.path.clone(), file, interface, chunks }))
}

/// Whether the recorder of an open segment was at work when the segment was looked at. It seals its
/// segments before it lets go of the lock, so one that is open behind that was left behind.
fn is_being_recorded(entry: &SegmentEntry) -> bool {
    let directory = entry.path.parent().unwrap_or(Path::new(""));
    segment::has_recorder(directory, entry.stream) || !entry.path.exists()
}

/// Packets of a chunk by the accounts of its neighbours, which hold even if its own bytes are
/// damaged; by its own where a neighbour is missing.
fn packets_between(
    before: Option<&ChunkTrailer>,
    chunk: &ChunkTrailer,
    after: Option<&ChunkTrailer>,
) -> u32 {
    let by_neighbours = || {
        let (before, after) = (before?, after?);
        let adjacent = ![before, chunk, after].iter().any(|chunk| chunk.is_filler())
            && before.sequence.checked_add(1) == Some(chunk.sequence)
            && chunk.sequence.checked_add(1) == Some(after.sequence);
        let begin = before.packets_before.checked_add(u64::from(before.packets))?;
        let packets = after.packets_before.checked_sub(begin).filter(|_| adjacent)?;
        u32::try_from(packets).ok()
    };
    by_neighbours().unwrap_or(chunk.packets)
}

/// The header chunk of a segment file: it has 4096 bytes or 1 MiB.
fn header_of(file: &SegmentFile) -> Result<Option<ChunkTrailer>> {
    for end in [ALIGNMENT_BYTES, CHUNK_BYTES] {
        let trailer = file.trailer_before(end as u64)?;
        if let Some(trailer) = trailer.filter(|trailer| trailer.offset == 0) {
            return Ok(Some(trailer));
        }
    }
    Ok(None)
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
