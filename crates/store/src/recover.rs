//! Brings segments that were never sealed into order: after kill -9, a crash, a loss of power.
//!
//! Each chunk of an open segment is checked by itself. Whole chunks stay; bytes between them become
//! *fillers* (chunks without packets, which every pcapng reader passes over); what follows the last
//! whole chunk gives way to one filler of 4096 bytes; a lost header is made anew from the facts in the trailers. Then the
//! segment is sealed: time index, flush to disk, rename. A segment without any packet is removed.
//!
//! What was lost is told as exactly as the trailers allow: between two chunks of a segment the
//! number of packets is known, behind the last one only the bytes and the time since when.
//! Recovery that is itself interrupted can be repeated: it changes nothing that is whole.
//! Nobody recovers a segment that somebody writes to: its recorder holds a lock on the file itself.
//! Limits: a sealed segment is not looked at; [`crate::find`] notices damage in it when it reads.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::chunk::CHUNK_BYTES;
use crate::error::{Result, StoreError};
use crate::lock;
use crate::record::Section;
use crate::scan::{Piece, Scan, SegmentFile};
use crate::segment::{self, APPLICATION, SegmentEntry, SegmentFacts};
use crate::time_index::TimeIndex;
use crate::trailer::{self, ALIGNMENT_BYTES, ChunkTrailer, FLAG_FILLER};

/// Whether damage is only reported, or also repaired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repair {
    /// Nothing on disk is changed.
    Report,
    /// Segments are repaired and sealed.
    Seal,
}

/// A span of time in which packets are missing. Bounds are packet times in ns since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DoubtfulSpan {
    /// Latest packet before the loss; `None` if there is none in the segment.
    pub from_ns: Option<u64>,
    /// Earliest packet behind it; `None` if it reaches to the end of the segment.
    pub to_ns: Option<u64>,
}

/// What became of one segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentRecovery {
    /// Where it is now; where it was, if it was removed or not touched.
    pub path: PathBuf,
    /// Whether it was removed, or would be, because no packet is in it.
    pub empty: bool,
    /// Whole chunks with packets.
    pub chunks_kept: u64,
    /// Packets in them.
    pub packets_kept: u64,
    /// Chunks known to be lost, by their sequence numbers.
    pub chunks_lost: u64,
    /// Packets known to be lost, by the counts in the trailers behind them.
    pub packets_lost: u64,
    /// Bytes that were not zero and are in no whole chunk: what may have been packets.
    pub bytes_lost: u64,
    /// When packets are missing. At the end of the segment: may be missing.
    pub in_doubt: Vec<DoubtfulSpan>,
}

/// What recovery did to a directory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecoveryReport {
    /// One entry for each segment that had not been sealed.
    pub segments: Vec<SegmentRecovery>,
    /// What has the name of an open segment and is no file: left alone.
    pub passed_over: Vec<PathBuf>,
}

impl RecoveryReport {
    /// Packets in whole chunks.
    pub fn packets_kept(&self) -> u64 {
        self.segments.iter().map(|segment| segment.packets_kept).sum()
    }

    /// Packets known to be lost.
    pub fn packets_lost(&self) -> u64 {
        self.segments.iter().map(|segment| segment.packets_lost).sum()
    }

    /// Bytes in no whole chunk.
    pub fn bytes_lost(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes_lost).sum()
    }
}

/// By what right a segment is recovered.
pub(crate) enum Claim {
    /// Nobody else may be at work in it: an error if somebody is.
    Sole,
    /// The lock of its stream, held meanwhile. If somebody writes to it all the same it is left alone.
    OfStream { _lock: File },
}

/// Recovers all segments of a directory that have not been sealed.
///
/// Errors: somebody writes to one of them ([`StoreError::Locked`]).
pub fn recover_directory(directory: &Path, repair: Repair) -> Result<RecoveryReport> {
    recover_claimed(directory, repair, |_| Some(Claim::Sole))
}

/// Recovers those segments that have not been sealed and that `claim` gives a claim to.
pub(crate) fn recover_claimed(
    directory: &Path,
    repair: Repair,
    claim: impl Fn(&SegmentEntry) -> Option<Claim>,
) -> Result<RecoveryReport> {
    let deadline = Instant::now() + lock::TEARDOWN;
    let mut report = RecoveryReport::default();
    loop {
        report.passed_over.clear();
        let mut is_changed = false;
        for entry in segment::list(directory)?.into_iter().filter(|entry| entry.open) {
            if !entry.regular {
                report.passed_over.push(entry.path);
            } else if let Some(claim) = claim(&entry) {
                match recover_until(&entry.path, repair, deadline) {
                    Ok(Some(recovery)) => report.segments.push(recovery),
                    // Whoever sealed it may have begun another one since the directory was read.
                    Ok(None) => is_changed = true,
                    Err(StoreError::Locked { .. }) if !matches!(claim, Claim::Sole) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        if !is_changed {
            break;
        }
    }
    if repair == Repair::Seal && !report.segments.is_empty() {
        sync_directory(directory)?;
    }
    Ok(report)
}

/// Recovers one open segment.
///
/// Errors: somebody writes to it ([`StoreError::Locked`]).
pub fn recover_segment(path: &Path, repair: Repair) -> Result<SegmentRecovery> {
    let recovered = recover_until(path, repair, Instant::now() + lock::TEARDOWN)?;
    recovered.ok_or_else(|| StoreError::Open {
        name: path.display().to_string(),
        source: ErrorKind::NotFound.into(),
    })
}

/// Recovers one open segment, once nobody writes to it any more; `None` if it has been sealed, moved
/// or removed until then.
fn recover_until(
    path: &Path,
    repair: Repair,
    deadline: Instant,
) -> Result<Option<SegmentRecovery>> {
    if repair == Repair::Report {
        return Ok(Some(Survey::of(path)?.account(path)));
    }
    let Some(_lock) = lock_segment(path, deadline)? else { return Ok(None) };
    recover_locked(path).map(Some)
}

/// Takes the lock of an open segment, which its recorder has for as long as it writes to it; `None` if
/// it has not got that name any more.
fn lock_segment(path: &Path, deadline: Instant) -> Result<Option<File>> {
    let failed = |source| StoreError::Write { what: format!("segment {}", path.display()), source };
    // A link that leads nowhere has that name and stays.
    let is_gone =
        |error: &io::Error| error.kind() == ErrorKind::NotFound && path.symlink_metadata().is_err();
    let file = match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => file,
        Err(error) if is_gone(&error) => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    if !lock::take(&file, deadline).map_err(failed)? {
        return Err(StoreError::Locked {
            directory: path.parent().unwrap_or(path).display().to_string(),
            stream: segment::parse_name(path).map_or(0, |entry| entry.stream),
            file: path.display().to_string(),
        });
    }
    let is_same = |named: fs::Metadata| {
        let locked = file.metadata()?;
        Ok((named.dev(), named.ino()) == (locked.dev(), locked.ino()))
    };
    match fs::metadata(path).and_then(is_same) {
        Ok(true) => Ok(Some(file)),
        Ok(false) => Ok(None),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

fn recover_locked(path: &Path) -> Result<SegmentRecovery> {
    let survey = Survey::of(path)?;
    let mut recovery = survey.account(path);
    let Some(mut plan) = survey.plan() else {
        fs::remove_file(path).map_err(|source| StoreError::Write {
            what: format!("the removal of the empty segment {}", path.display()),
            source,
        })?;
        return Ok(recovery);
    };
    plan.end_abruptly();
    plan.carry_out(path)?;
    recovery.path = seal_file(path, &plan.index)?;
    Ok(recovery)
}

/// What can be kept of a segment that somebody has cut while its recorder, who calls this, was at work;
/// `index` says what should be there.
pub(crate) fn plan_after_cut(path: &Path, index: &TimeIndex) -> Result<Plan> {
    let mut survey = Survey::of(path)?;
    // What lies behind was written, but did not count, and is written again elsewhere.
    survey.pieces.retain(|piece| match piece {
        Piece::Chunk(chunk) => chunk.end() <= index.segment_length(),
        Piece::Gap { .. } => true,
    });
    let lost = index.chunks.first().copied().unwrap_or_default();
    Ok(survey.plan().unwrap_or_else(|| Plan::of_header(survey.header(), &lost)))
}

/// Gives a whole segment its final name and its time index; the segment's data is on disk already.
pub(crate) fn seal_file(path: &Path, index: &TimeIndex) -> Result<PathBuf> {
    let facts = index.chunks.last().copied().unwrap_or_default();
    let earliest = index.summary().map_or(0, |summary| summary.time_min_ns);
    let time_ns = if earliest == u64::MAX { facts.session } else { earliest };
    let sealed =
        path.with_file_name(segment::sealed_name(time_ns, facts.stream, facts.segment_number));
    // On a full disk the segment does without: readers make the index again from its chunks.
    if let Err(error) = index.write(&sealed)
        && !matches!(error.io_kind(), Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded))
    {
        return Err(error);
    }
    fs::rename(path, &sealed).map_err(|source| StoreError::Write {
        what: format!("the new name of {}, {}", path.display(), sealed.display()),
        source,
    })?;
    Ok(sealed)
}

/// Makes renames and removals in a directory durable.
pub(crate) fn sync_directory(directory: &Path) -> Result<()> {
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(|source| {
        StoreError::Write { what: format!("directory {}", directory.display()), source }
    })
}

/// What lies in an open segment.
struct Survey {
    pieces: Vec<Piece>,
}

/// What the file will be.
pub(crate) struct Plan {
    pub(crate) index: TimeIndex,
    facts: SegmentFacts,
    /// Which chunks of the index have to be written.
    new_chunks: Vec<usize>,
    length: u64,
}

impl Survey {
    fn of(path: &Path) -> Result<Self> {
        let file = SegmentFile::open(path)?;
        let mut pieces = Vec::new();
        let mut scan = Scan::verifying(&file)?;
        while let Some(piece) = scan.next_piece()? {
            pieces.push(piece);
        }
        Ok(Self { pieces })
    }

    fn chunks(&self) -> impl Iterator<Item = &ChunkTrailer> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Chunk(trailer) => Some(trailer),
            Piece::Gap { .. } => None,
        })
    }

    /// Whole chunks that a recorder wrote and that are not the header.
    fn data_chunks(&self) -> impl Iterator<Item = &ChunkTrailer> {
        self.chunks().filter(|chunk| !chunk.is_filler() && !chunk.is_header())
    }

    fn account(&self, path: &Path) -> SegmentRecovery {
        let mut recovery = SegmentRecovery {
            path: path.to_path_buf(),
            empty: self.data_chunks().next().is_none(),
            chunks_kept: self.data_chunks().count() as u64,
            packets_kept: self.data_chunks().map(|chunk| u64::from(chunk.packets)).sum(),
            chunks_lost: 0,
            packets_lost: 0,
            bytes_lost: 0,
            in_doubt: Vec::new(),
        };
        // Sequence and packets that the next chunk should begin with.
        let mut expected = (1, 0);
        let mut latest = None;
        for chunk in self.data_chunks() {
            recovery.chunks_lost += chunk.sequence.saturating_sub(expected.0);
            recovery.packets_lost += chunk.packets_before.saturating_sub(expected.1);
            if chunk.sequence > expected.0 {
                let to_ns = (chunk.packets > 0).then_some(chunk.time_min_ns);
                recovery.in_doubt.push(DoubtfulSpan { from_ns: latest, to_ns });
            }
            expected = (chunk.sequence + 1, chunk.packets_before + u64::from(chunk.packets));
            if chunk.packets > 0 {
                latest = latest.max(Some(chunk.time_max_ns));
            }
        }
        for piece in &self.pieces {
            if let Piece::Gap { data_length, .. } = piece {
                recovery.bytes_lost += data_length;
            }
        }
        if !recovery.empty || recovery.bytes_lost > 0 {
            recovery.in_doubt.push(DoubtfulSpan { from_ns: latest, to_ns: None });
        }
        recovery
    }

    /// The chunks of the repaired file; `None` if nothing is worth keeping.
    fn plan(&self) -> Option<Plan> {
        let last = self.data_chunks().last()?;
        let length = last.end();
        let mut plan = Plan::new(last, length);
        let mut before = plan.facts.trailer();
        for piece in &self.pieces {
            match piece {
                Piece::Chunk(trailer) if trailer.end() <= length => {
                    plan.index.chunks.push(*trailer);
                    if !trailer.is_header() {
                        before = *trailer;
                    }
                }
                Piece::Gap { offset, length: gap, .. } if *offset < length => {
                    plan.fill(*offset, *gap, &before);
                }
                _ => {}
            }
        }
        Some(plan)
    }

    fn header(&self) -> Option<&ChunkTrailer> {
        self.chunks().find(|chunk| chunk.is_header())
    }
}

impl Plan {
    /// Nothing yet; `any` is any chunk of the segment.
    fn new(any: &ChunkTrailer, length: u64) -> Self {
        let facts = SegmentFacts::of(any);
        Self { index: TimeIndex::default(), facts, new_chunks: Vec::new(), length }
    }

    /// A segment without packets: the header that is there, or another one for `lost`.
    fn of_header(there: Option<&ChunkTrailer>, lost: &ChunkTrailer) -> Self {
        let length = there.map_or(ALIGNMENT_BYTES as u64, ChunkTrailer::end);
        let mut plan = Self::new(lost, length);
        match there {
            Some(header) => plan.index.chunks.push(*header),
            None => plan.fill(0, length, lost),
        }
        plan
    }

    /// Says to readers that what followed, if anything, is lost.
    fn end_abruptly(&mut self) {
        let Some(last) = self.index.chunks.last().copied() else { return };
        self.fill(self.length, ALIGNMENT_BYTES as u64, &last);
        self.length += ALIGNMENT_BYTES as u64;
    }

    /// Covers a gap with chunks of at most 1 MiB. At the beginning of the file the first is the
    /// header, whose length and checksum are filled in when it is made.
    fn fill(&mut self, offset: u64, length: u64, before: &ChunkTrailer) {
        let mut at = offset;
        while at < offset + length {
            let rest = offset + length - at;
            let flags = if at == 0 { trailer::FLAG_HEADER } else { FLAG_FILLER };
            let piece = if at == 0 { ALIGNMENT_BYTES as u64 } else { rest.min(CHUNK_BYTES as u64) };
            self.new_chunks.push(self.index.chunks.len());
            self.index.chunks.push(ChunkTrailer {
                flags,
                offset: at,
                length: piece as u32,
                packets: 0,
                captured_bytes: 0,
                time_min_ns: 0,
                time_max_ns: 0,
                packets_before: before.packets_before + u64::from(before.packets),
                ..*before
            });
            at += piece;
        }
    }

    /// Writes the chunks that are missing and cuts the file to its length, down to the disk.
    pub(crate) fn carry_out(&mut self, path: &Path) -> Result<()> {
        let failed =
            |source| StoreError::Write { what: format!("segment {}", path.display()), source };
        let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
        let mut memory = vec![0; CHUNK_BYTES];
        for &index in &self.new_chunks {
            let Some(chunk) = self.index.chunks.get_mut(index) else { continue };
            let (offset, length) = (chunk.offset, chunk.length as usize);
            if chunk.is_header() {
                *chunk = self.facts.header_chunk(&restored_section(), length, &mut memory)?;
            } else {
                trailer::seal(&mut memory, 0, length, chunk);
            }
            file.write_all_at(memory.get(..length).unwrap_or_default(), offset).map_err(failed)?;
        }
        file.set_len(self.length).map_err(failed)?;
        file.sync_all().map_err(failed)
    }
}

fn restored_section() -> Section {
    Section {
        application: Some(APPLICATION.into()),
        comment: Some("this header was lost and made anew by recovery".into()),
        ..Section::default()
    }
}
