//! The thread that does what is slow and must not hold up writing: makes segments ready in
//! advance, flushes them to disk, seals them.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use sys::Kind;
use sys::direct_io::DirectFile;
use sys::memory::{Buffer, Buffers};

use super::config::{RecorderConfig, SEGMENT_BYTES_ALIGNED, SEGMENT_BYTES_MIN};
use super::status::{RecorderEvent, Status};
use crate::chunk::CHUNK_BYTES;
use crate::error::{Result, StoreError};
use crate::recover::{seal_file, sync_directory};
use crate::segment::{self, SegmentFacts};
use crate::time_index::TimeIndex;
use crate::trailer::{ALIGNMENT_BYTES, ChunkTrailer};

/// A segment with its header on disk and room for chunks.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) file: Arc<DirectFile>,
    pub(super) facts: SegmentFacts,
    pub(super) header: ChunkTrailer,
    /// Reserved length in bytes.
    pub(super) capacity: u64,
}

/// Packets and captured bytes that a flush will make durable.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Share {
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

/// A segment whose chunks are all written.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) file: Arc<DirectFile>,
    pub(super) index: TimeIndex,
    /// What no earlier flush covered.
    pub(super) unflushed: Share,
}

/// A sealed segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedSegment {
    /// The file.
    pub path: PathBuf,
    /// Packets in it.
    pub packets: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

/// What the keeper is asked to do, in order.
#[derive(Debug)]
pub(super) enum Job {
    Prepare,
    Flush(Arc<DirectFile>, Share),
    Seal(Ended),
    /// The file of a segment that was made ready in vain.
    Remove(Arc<DirectFile>),
}

/// Makes segments in the recorder's directory.
pub(super) struct Maker {
    config: RecorderConfig,
    session: u64,
    next_number: u32,
    memory: Buffer,
}

impl Maker {
    pub(super) fn new(config: RecorderConfig, session: u64, next_number: u32) -> Result<Self> {
        let memory = Buffers::new(1, CHUNK_BYTES)?.split().pop();
        let memory = memory.ok_or_else(|| StoreError::Directory {
            directory: config.directory.display().to_string(),
            reason: "no memory for a segment header".into(),
        })?;
        Ok(Self { config, session, next_number, memory })
    }

    /// A new segment: of the length asked for, or half as long until the disk has room for it.
    pub(super) fn prepare(&mut self, status: &Status) -> Result<Prepared> {
        let number = self.next_number;
        let path = self.config.directory.join(segment::open_name(self.config.stream, number));
        let file = DirectFile::create(&path)?;
        let prepared = self.fill(file, number);
        match &prepared {
            Ok(prepared) => {
                self.next_number = self.next_number.wrapping_add(1);
                if prepared.capacity < self.config.segment_bytes {
                    let segment_bytes = prepared.capacity;
                    status.tell(RecorderEvent::SegmentShortened { segment_bytes });
                }
            }
            // An empty file helps nobody; should it stay, recovery removes it.
            Err(_) => {
                let _ = fs::remove_file(&path);
            }
        }
        prepared
    }

    fn fill(&mut self, file: DirectFile, number: u32) -> Result<Prepared> {
        let mut capacity = self.config.segment_bytes;
        loop {
            match file.preallocate(capacity) {
                Ok(_) => break,
                Err(error) if error.kind() == Kind::NoSpace && capacity > SEGMENT_BYTES_MIN => {
                    file.truncate(0)?;
                    let half = (capacity / 2).next_multiple_of(ALIGNMENT_BYTES as u64);
                    capacity = half.max(SEGMENT_BYTES_MIN);
                }
                Err(error) => return Err(error.into()),
            }
        }
        let facts = SegmentFacts {
            id: segment::random_id()?,
            number,
            stream: self.config.stream,
            session: self.session,
            interface: self.config.interface.clone(),
        };
        let aligned = capacity >= SEGMENT_BYTES_ALIGNED;
        let length_min = if aligned { CHUNK_BYTES } else { ALIGNMENT_BYTES };
        let header = facts.header_chunk(&self.config.section, length_min, &mut self.memory)?;
        let bytes = self.memory.get(..header.length as usize).unwrap_or_default();
        let failed = |source| StoreError::Write {
            what: format!("segment {}", file.path().display()),
            source,
        };
        file.file().write_all_at(bytes, 0).map_err(failed)?;
        file.sync_data()?;
        sync_directory(&self.config.directory)?;
        Ok(Prepared { file: Arc::new(file), facts, header, capacity })
    }
}

/// The handle of the thread that writes chunks.
pub(super) struct Keeper {
    jobs: Option<Sender<Job>>,
    prepared: Receiver<Result<Prepared>>,
    thread: Option<JoinHandle<Vec<SealedSegment>>>,
}

impl Keeper {
    /// Starts the thread; it wakes the writer when a segment is ready.
    pub(super) fn start(mut maker: Maker, status: Arc<Status>) -> Result<Self> {
        let (jobs, to_do) = mpsc::channel();
        let (answers, prepared) = mpsc::channel();
        let work = move || {
            let mut sealed = Vec::new();
            for job in to_do {
                match job {
                    Job::Prepare => {
                        // If nobody listens any more, recovery removes the empty segment.
                        let _ = answers.send(maker.prepare(&status));
                        status.wake_writer();
                    }
                    Job::Flush(file, share) => flush(&file, share, &status),
                    Job::Seal(ended) => sealed.extend(seal(&ended, &status)),
                    Job::Remove(file) => remove(file.path(), &status),
                }
            }
            sealed
        };
        let thread = thread::Builder::new()
            .name("store-keeper".into())
            .spawn(work)
            .map_err(|source| sys::Error::new("starting the segment keeper's thread", source))?;
        Ok(Self { jobs: Some(jobs), prepared, thread: Some(thread) })
    }

    pub(super) fn ask(&self, job: Job) {
        if let Some(jobs) = &self.jobs {
            // The thread ends only after this handle has closed the channel.
            let _ = jobs.send(job);
        }
    }

    /// A segment that was asked for, once it is ready or cannot be made.
    pub(super) fn prepared(&self) -> Option<Result<Prepared>> {
        self.prepared.try_recv().ok()
    }

    /// Waits until everything asked for is done; returns the sealed segments.
    pub(super) fn finish(mut self) -> Vec<SealedSegment> {
        self.jobs = None;
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

fn flush(file: &DirectFile, share: Share, status: &Status) {
    match file.sync_data() {
        Ok(()) => {
            status.durable_packets.fetch_add(share.packets, Ordering::Relaxed);
            status.durable_bytes.fetch_add(share.bytes, Ordering::Relaxed);
        }
        Err(error) => status.tell(RecorderEvent::FlushFailed { reason: error.to_string() }),
    }
}

fn seal(ended: &Ended, status: &Status) -> Option<SealedSegment> {
    let path = ended.file.path();
    let only_header = ended.index.chunks.iter().all(ChunkTrailer::is_header);
    if only_header {
        remove(path, status);
        return None;
    }
    match seal_on_disk(ended, status) {
        Ok(sealed) => {
            let (path, packets) = (sealed.path.clone(), sealed.packets);
            status.tell(RecorderEvent::SegmentSealed { path, packets });
            Some(sealed)
        }
        Err(error) => {
            let (path, reason) = (path.to_path_buf(), error.to_string());
            status.tell(RecorderEvent::SealFailed { path, reason });
            None
        }
    }
}

fn seal_on_disk(ended: &Ended, status: &Status) -> Result<SealedSegment> {
    let bytes = ended.index.segment_length();
    ended.file.truncate(bytes)?;
    flush(&ended.file, ended.unflushed, status);
    let path = seal_file(ended.file.path(), &ended.index)?;
    if let Some(directory) = path.parent() {
        sync_directory(directory)?;
    }
    let packets = ended.index.chunks.iter().map(|chunk| u64::from(chunk.packets)).sum();
    Ok(SealedSegment { path, packets, bytes })
}

fn remove(path: &Path, status: &Status) {
    if let Err(error) = fs::remove_file(path) {
        let (path, reason) = (path.to_path_buf(), format!("removing it: {error}"));
        status.tell(RecorderEvent::SealFailed { path, reason });
    }
}
