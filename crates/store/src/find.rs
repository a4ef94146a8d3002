//! Finds packets in stores and captures, in the order of time.
//!
//! A *store* is a directory that a recorder writes or wrote; its segments are pruned by their time
//! indexes, the chunks that remain are read, checked and searched, and the segment that is being
//! written takes part with every chunk that is on disk. Other captures are read from front to back
//! (`capture_stream`). The answer is exact: each packet is decided on its bytes
//! ([`Selection`]), never on an index alone.
//!
//! Limits: at most 256 chunks are in memory at a time (256 MiB and their indexes), plus
//! 8 MiB for each other capture that is due. In stores the order is that of time, always; other
//! captures that are out of order by more than their 8 MiB deliver such packets late, and
//! [`FindReport::late_packets`] counts them. Directories are not searched for captures that are no
//! segments, nor are their subdirectories.

mod capture_stream;
mod losses;
mod pending;
mod report;
mod sealed;
mod segments;
mod survey;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use capture_stream::CaptureStream;
use pending::Pending;
use segments::Segment;

pub use losses::{Completeness, LossSpan};
pub use report::FindReport;

use crate::chunk::CHUNK_BYTES;
use crate::error::{Result, StoreError};
use crate::merge::{Batch, Found, Key, Merge};
use crate::pcapng::ByteOrder;
use crate::pcapng::block::{BlockHead, ENHANCED_PACKET, MINIMUM_LENGTH};
use crate::pcapng::packet::PacketHead;
use crate::record::{Interface, LinkType, Record};
use crate::scan::SegmentFile;
use crate::segment;
use crate::selection::{Selection, Verdict};
use crate::trailer::{self, ChunkTrailer};

/// Most chunks in memory. Only chunks that overlap in time are held at once; beyond this the one
/// due last is put back and read again when its time comes.
const BATCHES_MAX: usize = 256;
/// How often, and how long apart, a chunk is read that is being written: a disk needs less.
const ATTEMPTS: u32 = 25;
const ATTEMPT_PAUSE: Duration = Duration::from_millis(4);

/// The interfaces of all sources; equal ones are one.
#[derive(Debug, Default)]
struct Interfaces(Vec<Interface>);

impl Interfaces {
    fn number(&mut self, interface: &Interface) -> u32 {
        let known = self.0.iter().position(|other| other == interface);
        known.unwrap_or_else(|| {
            self.0.push(interface.clone());
            self.0.len() - 1
        }) as u32
    }

    fn link_type(&self, number: u32) -> LinkType {
        self.0.get(number as usize).map_or(LinkType(u16::MAX), |interface| interface.link_type)
    }
}

/// How a search went on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Advance {
    /// A batch was chosen: packets may be taken.
    Chosen,
    /// Something was read.
    Read,
    /// There is no batch left, and nothing to be read.
    End,
}

/// Something that packets come from.
enum Source {
    Segment {
        path: PathBuf,
        file: Option<SegmentFile>,
        being_written: bool,
        /// Chunks that are still to be read.
        remaining: usize,
        interface: u32,
    },
    Capture(CaptureStream),
}

/// What a search came to next.
#[derive(Debug)]
pub enum Step<'a> {
    /// A packet that was looked for.
    Record(Record<'a>),
    /// A chunk, or a few MiB of a capture, was read: a place to look up from the work.
    Read,
    /// There is nothing more.
    End,
}

/// A search under way.
pub struct Find {
    selection: Selection,
    sources: Vec<Source>,
    interfaces: Interfaces,
    pending: BinaryHeap<Reverse<Pending>>,
    merge: Merge,
    /// Up to where packets may be taken from the current batch.
    bound: Key,
    spare: Vec<Vec<u8>>,
    latest_ns: u64,
    report: FindReport,
}

impl Find {
    /// Looks at all sources: directories of segments, segment files, captures. Reads time indexes
    /// and the first packets of captures.
    ///
    /// Errors: a path that does not exist or cannot be read, a file that is no capture.
    pub fn open<P: AsRef<Path>>(paths: &[P], selection: Selection) -> Result<Self> {
        let mut find = Self {
            selection,
            sources: Vec::new(),
            interfaces: Interfaces::default(),
            pending: BinaryHeap::new(),
            merge: Merge::default(),
            bound: (0, 0, 0),
            spare: Vec::new(),
            latest_ns: 0,
            report: FindReport::default(),
        };
        for path in paths {
            find.add_path(path.as_ref())?;
        }
        Ok(find)
    }

    fn add_path(&mut self, path: &Path) -> Result<()> {
        let segments = if path.is_dir() {
            Some(segments::of_directory(path, &self.selection, &mut self.report)?)
        } else if !segment::is_regular(path) {
            return Err(StoreError::NotAFile { name: path.display().to_string() });
        } else {
            segments::of_file(path, &self.selection, &mut self.report)?
        };
        match segments {
            Some(segments) => segments.into_iter().for_each(|segment| self.add_segment(segment)),
            None => {
                if let Some((stream, time_ns)) = CaptureStream::peek(path)? {
                    let source = self.sources.len() as u32;
                    self.sources.push(Source::Capture(stream));
                    let key = (time_ns, source, 0);
                    self.pending.push(Reverse(Pending { key, ..Pending::default() }));
                }
                self.report.captures_read += 1;
            }
        }
        Ok(())
    }

    fn add_segment(&mut self, segment: Segment) {
        let source = self.sources.len() as u32;
        for chunk in &segment.chunks {
            self.pending.push(Reverse(Pending {
                key: (chunk.time_min_ns, source, chunk.sequence),
                offset: chunk.offset,
                length: chunk.length,
                taken: 0,
                waiting: None,
                packets: chunk.packets,
                time_max_ns: chunk.time_max_ns,
            }));
        }
        self.sources.push(Source::Segment {
            path: segment.path,
            being_written: segment.file.is_some(),
            file: segment.file,
            remaining: segment.chunks.len(),
            interface: self.interfaces.number(&segment.interface),
        });
    }

    /// The interfaces so far, which records point into. Captures may add some with any record: add
    /// those that are new to a writer before the record.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces.0
    }

    /// What was read and found so far; complete when there is no further packet.
    pub fn report(&self) -> &FindReport {
        &self.report
    }

    /// Packets that were found and not delivered yet: 0 at the end.
    pub fn packets_waiting(&self) -> u64 {
        let put_back = self.pending.iter().map(|Reverse(chunk)| chunk.waiting.unwrap_or(0));
        self.merge.waiting() + put_back.map(u64::from).sum::<u64>()
    }

    /// The next packet in the order of time, its interface an index into
    /// [`interfaces`](Self::interfaces); `None` at the end.
    ///
    /// Errors: reading failed. Damage and files that end early are no errors: see
    /// [`FindReport::problems`].
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>> {
        loop {
            if let Some((slot, found)) = self.merge.take(self.bound) {
                return Ok(self.deliver(slot, found));
            }
            if self.advance()? == Advance::End {
                return Ok(None);
            }
        }
    }

    /// As [`next_record`](Self::next_record), but comes back after each read, however little was
    /// found. Whoever stops asking leaves [`packets_waiting`](Self::packets_waiting) behind.
    #[inline]
    pub fn step(&mut self) -> Result<Step<'_>> {
        loop {
            if let Some((slot, found)) = self.merge.take(self.bound) {
                return Ok(self.deliver(slot, found).map_or(Step::End, Step::Record));
            }
            match self.advance()? {
                Advance::Chosen => {}
                Advance::Read => return Ok(Step::Read),
                Advance::End => return Ok(Step::End),
            }
        }
    }

    #[inline]
    fn deliver(&mut self, slot: usize, found: Found) -> Option<Record<'_>> {
        self.report.packets_found += 1;
        if found.time_ns < self.latest_ns {
            self.report.late_packets += 1;
        }
        self.latest_ns = self.latest_ns.max(found.time_ns);
        self.record(slot, found)
    }

    #[inline]
    fn record(&self, slot: usize, found: Found) -> Option<Record<'_>> {
        let batch = self.merge.batch(slot)?;
        let block = batch.bytes.get(found.at as usize..)?;
        let (head, block) = packet_block(block)?;
        let interface = match self.sources.get(batch.source as usize)? {
            Source::Segment { interface, .. } => *interface,
            Source::Capture(_) => head.interface,
        };
        Some(Record {
            time_ns: found.time_ns,
            data: head.data(block),
            original_length: head.original_length,
            interface,
            flags: head.flags,
            queue: head.queue,
            drop_count: head.drop_count,
        })
    }

    /// Goes on to the batch that the next packet is in, or reads something that may come before.
    #[cold]
    fn advance(&mut self) -> Result<Advance> {
        if let Some(batch) = self.merge.take_finished() {
            self.recycle(batch);
        }
        let first = self.merge.first_key();
        let is_due = |next: &Pending| first.is_none_or(|first| first >= next.key);
        if self.pending.peek().is_some_and(|Reverse(next)| is_due(next))
            && let Some(Reverse(next)) = self.pending.pop()
        {
            if let Err(error) = self.read(&next) {
                // Its packets are still to come, for the account.
                self.pending.push(Reverse(next));
                return Err(error);
            }
            return Ok(Advance::Read);
        }
        let Some(bound) = self.merge.choose() else {
            return Ok(Advance::End);
        };
        self.bound = self.pending.peek().map_or(bound, |Reverse(next)| bound.min(next.key));
        Ok(Advance::Chosen)
    }

    /// Uses the memory of a finished batch again; a capture's next batch is to take its place.
    fn recycle(&mut self, batch: Batch) {
        match self.sources.get_mut(batch.source as usize) {
            Some(Source::Capture(stream)) => {
                stream.held -= 1;
                self.read_on(batch.source);
            }
            _ => self.spare.push(batch.bytes),
        }
    }

    /// Has a capture read on before any packet is delivered, if it has anything left and is not
    /// ahead far enough.
    fn read_on(&mut self, source: u32) {
        if let Some(Source::Capture(stream)) = self.sources.get(source as usize)
            && stream.wants_more()
        {
            self.pending.push(Reverse(Pending { key: (0, source, 0), ..Pending::default() }));
        }
    }

    fn read(&mut self, pending: &Pending) -> Result<()> {
        let (_, source, _) = pending.key;
        if let Some(Source::Capture(stream)) = self.sources.get_mut(source as usize) {
            let (selection, interfaces) = (&self.selection, &mut self.interfaces);
            if let Some(next) = stream.read(source, selection, interfaces, &mut self.report)? {
                stream.held += 1;
                self.merge.add(next);
            }
            self.read_on(source);
            return Ok(());
        }
        if self.merge.len() >= BATCHES_MAX {
            self.put_last_back();
        }
        let mut bytes = self.spare.pop().unwrap_or_else(|| vec![0; CHUNK_BYTES]);
        match self.read_chunk(pending, &mut bytes)? {
            Some(found) => {
                let (_, source, number) = pending.key;
                let mut batch = Batch { bytes, found, taken: 0, source, number };
                batch.sort();
                batch.taken = pending.taken;
                if let Some(empty) = self.merge.add(batch) {
                    self.spare.push(empty.bytes);
                }
            }
            None => self.spare.push(bytes),
        }
        Ok(())
    }

    /// Puts the chunk back that is due last, to be read again in its time.
    fn put_last_back(&mut self) {
        let sources = &self.sources;
        let of_segment = |batch: &Batch| {
            matches!(sources.get(batch.source as usize), Some(Source::Segment { .. }))
        };
        let Some(batch) = self.merge.take_last(of_segment) else { return };
        let trailer = ChunkTrailer::at_end_of(&batch.bytes);
        if let (Some(next), Some(trailer)) = (batch.found.get(batch.taken), trailer) {
            self.pending.push(Reverse(Pending {
                key: (next.time_ns, batch.source, batch.number),
                offset: trailer.offset,
                length: trailer.length,
                taken: batch.taken,
                waiting: Some((batch.found.len() - batch.taken) as u32),
                packets: trailer.packets,
                time_max_ns: trailer.time_max_ns,
            }));
            if let Some(Source::Segment { remaining, .. }) =
                self.sources.get_mut(batch.source as usize)
            {
                *remaining += 1;
            }
        }
        self.spare.push(batch.bytes);
    }

    /// Reads and searches a chunk; `None` if it is damaged or gone.
    fn read_chunk(&mut self, pending: &Pending, bytes: &mut Vec<u8>) -> Result<Option<Vec<Found>>> {
        let (_, source, sequence) = pending.key;
        let Some(Source::Segment { path, file, being_written, remaining, interface }) =
            self.sources.get_mut(source as usize)
        else {
            return Ok(None);
        };
        if file.is_none() {
            match SegmentFile::open(path) {
                Ok(opened) => *file = Some(opened),
                // The segment is there and may be whole.
                Err(error) if error.is_limit() => return Err(error),
                Err(error) => {
                    self.report.segments_vanished += 1;
                    self.report.lose(pending);
                    self.report.problem(error.to_string());
                    return Ok(None);
                }
            }
        }
        let Some(open) = file else { return Ok(None) };
        bytes.resize(pending.length as usize, 0);
        let attempts = if *being_written { ATTEMPTS } else { 1 };
        let whole = read_whole(open, bytes, pending.offset, attempts)?;
        *remaining = remaining.saturating_sub(1);
        // One that is being written will have another name when it is asked for again.
        if *remaining == 0 && !*being_written {
            *file = None;
        }
        self.report.chunks_read += 1;
        self.report.bytes_read += bytes.len() as u64;
        let Some(chunk) = whole.filter(|chunk| chunk.sequence == sequence) else {
            self.report.chunks_damaged += 1;
            self.report.lose(pending);
            let (name, at) = (path.display(), pending.offset);
            let text =
                format!("{name}: the chunk at byte {at} is damaged; its packets are missing");
            self.report.problem(text);
            return Ok(None);
        };
        let content = bytes.get(..chunk.content_length as usize).unwrap_or_default();
        let link_type = self.interfaces.link_type(*interface);
        let capacity = if self.selection.is_time_only() { chunk.packets } else { 0 };
        let mut found = Vec::with_capacity(capacity as usize);
        // A chunk that was put back is counted once.
        let mut again = FindReport::default();
        let report = if pending.waiting.is_none() { &mut self.report } else { &mut again };
        report.packets_read += u64::from(chunk.packets);
        search(content, link_type, &self.selection, &mut found, report);
        Ok(Some(found))
    }
}

/// Fills `bytes` with the chunk at `offset` and checks it. Of a chunk that is just being written the
/// end may be there before the rest: it is read again for a little while.
fn read_whole(
    file: &SegmentFile,
    bytes: &mut [u8],
    offset: u64,
    attempts: u32,
) -> Result<Option<ChunkTrailer>> {
    for attempt in 0..attempts {
        if attempt > 0 {
            std::thread::sleep(ATTEMPT_PAUSE);
        }
        // A short read leaves what the memory held before: never to be taken for this chunk.
        let filled = file.read(bytes, offset)? == bytes.len();
        let whole = trailer::verify(bytes).ok().filter(|chunk| filled && chunk.offset == offset);
        if whole.is_some() {
            return Ok(whole);
        }
    }
    Ok(None)
}

/// Where the packets of a chunk lie that are looked for.
fn search(
    content: &[u8],
    link_type: LinkType,
    selection: &Selection,
    found: &mut Vec<Found>,
    report: &mut FindReport,
) {
    let time_only = selection.is_time_only();
    let mut at = 0;
    while let Some((head, block)) = content.get(at..).and_then(packet_block) {
        report.packets_examined += 1;
        let time_ns = head.ticks.unwrap_or(0);
        let judge = || selection.judge(link_type, head.data(block), head.original_length);
        if !selection.holds_time(time_ns) {
            report.packets_outside_window += 1;
        } else {
            match if time_only { Verdict::Holds } else { judge() } {
                Verdict::Holds => found.push(Found { time_ns, at: at as u32 }),
                verdict => report.pass_over(verdict),
            }
        }
        at += block.len();
    }
}

/// The packet block at the beginning of `bytes`. Called once a packet in two loops: left to itself the
/// compiler inlines it into one of them at most.
#[inline(always)]
fn packet_block(bytes: &[u8]) -> Option<(PacketHead, &[u8])> {
    let head = BlockHead::parse(bytes.first_chunk::<MINIMUM_LENGTH>()?, ByteOrder::Little).ok()?;
    if head.block_type != ENHANCED_PACKET {
        return None;
    }
    let block = bytes.get(..head.length)?;
    Some((PacketHead::parse(&head, block).ok()?, block))
}
