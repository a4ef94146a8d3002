//! The thread that does what is slow and must not hold up writing: makes segments ready in
//! advance, flushes them to disk, seals them.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle, Thread};
use std::time::Instant;

use sys::Kind;
use sys::direct_io::DirectFile;
use sys::memory::{Buffer, Buffers};

use super::config::{RecorderConfig, SEGMENT_BYTES_ALIGNED, SEGMENT_BYTES_MIN};
use super::sealer::{ACCOUNT_BYTES, Ended, Sealer, flush};
use super::status::{RecorderEvent, Status};
use crate::chunk::CHUNK_BYTES;
use crate::error::{Result, StoreError};
use crate::ledger::Ledger;
use crate::lock;
use crate::recover::sync_directory;
use crate::segment::{self, SegmentFacts};
use crate::trailer::{ALIGNMENT_BYTES, ChunkTrailer};

/// A segment with its header on disk and room for chunks.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) file: Arc<DirectFile>,
    pub(super) facts: SegmentFacts,
    pub(super) header: ChunkTrailer,
    /// Length in bytes that chunks may take; there is room for one more, with the account.
    pub(super) capacity: u64,
}

impl Prepared {
    /// Length of the file, as long as nobody has cut it.
    pub(super) fn file_bytes(&self) -> u64 {
        self.capacity + ACCOUNT_BYTES
    }
}

/// Packets and captured bytes that a flush will make durable.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Share {
    pub(super) packets: u64,
    pub(super) bytes: u64,
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
    /// Another segment; whoever asks is woken when it is ready or cannot be made.
    Prepare(Thread),
    Flush(Arc<DirectFile>, Share),
    Seal(Ended),
    /// A segment that was made ready in vain.
    Spare(Ended),
    /// The last: what the recording's account is in the end.
    Finish(Ledger),
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
        self.lock(&file)?;
        let mut capacity = self.config.segment_bytes;
        loop {
            match file.preallocate(capacity + ACCOUNT_BYTES) {
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

    /// Nobody recovers a segment while this recorder has it open, whatever becomes of the lock in
    /// the directory.
    fn lock(&self, file: &DirectFile) -> Result<()> {
        let name = file.path().display().to_string();
        let taken = lock::take(file.file(), Instant::now() + lock::MOMENT)
            .map_err(|source| sys::Error::new(format!("locking {name}"), source))?;
        if taken {
            return Ok(());
        }
        let directory = self.config.directory.display().to_string();
        Err(StoreError::Locked { directory, stream: self.config.stream, file: name })
    }
}

/// The handle of the thread that writes chunks.
pub(super) struct Keeper {
    jobs: Option<Sender<Job>>,
    prepared: Receiver<Result<Prepared>>,
    thread: Option<JoinHandle<Vec<SealedSegment>>>,
}

impl Keeper {
    /// Starts the thread. `first_number` is that of the segment which is ready already.
    pub(super) fn start(mut maker: Maker, first_number: u32, status: Arc<Status>) -> Result<Self> {
        let (jobs, to_do) = mpsc::channel();
        let (answers, prepared) = mpsc::channel();
        let work = move || {
            let mut sealer = Sealer::new(Arc::clone(&status), first_number);
            for job in to_do {
                match job {
                    Job::Prepare(asker) => {
                        let prepared = maker.prepare(&status);
                        if let Ok(prepared) = &prepared {
                            sealer.prepared(prepared.facts.number);
                        }
                        // If nobody listens any more, recovery removes the empty segment.
                        let _ = answers.send(prepared);
                        asker.unpark();
                    }
                    Job::Flush(file, share) => flush(&file, share, &status),
                    Job::Seal(ended) => sealer.end(ended),
                    Job::Spare(ended) => sealer.spare(ended),
                    Job::Finish(account) => return sealer.finish(&account, &mut maker.memory),
                }
            }
            // The writer broke down: nobody knows the account, and recovery says so.
            Vec::new()
        };
        let thread =
            thread::Builder::new().name("store-keeper".into()).spawn(work).map_err(|source| {
                sys::Error::of_thread("starting the segment keeper's thread", source)
            })?;
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

    /// Waits until everything asked for is done and the last segment has the account; returns the
    /// sealed segments.
    pub(super) fn finish(mut self, account: Ledger) -> Vec<SealedSegment> {
        self.ask(Job::Finish(account));
        self.jobs = None;
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}
