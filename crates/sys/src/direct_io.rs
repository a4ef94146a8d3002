//! Writing large aligned blocks to disk, several at a time, past the page cache.
//!
//! Vocabulary: a *direct file* is opened with `O_DIRECT` where its file system can (open(2)); a
//! *write* takes a [`Buffer`] away from the caller, is *in flight* until the kernel has ended it, and
//! comes back as a [`Completion`] with the buffer in it, whatever happened; the *depth* is how many
//! writes are in flight at most. Two *engines* do the work: io_uring, and where it is forbidden a
//! pool of threads in pwrite(2).
//!
//! Limits: writes in flight at one time may end in any order, so they must not overlap. A completed
//! write is not durable before [`DirectFile::sync_data`]. Short writes are continued and transient
//! errors retried, so a completion without error means that all bytes are written. With io_uring the
//! writer serves one thread, the one that submits first: give each thread its own writer.

mod file;
mod operation;
mod pool;
mod rate;
mod uring;

pub use file::{DirectFile, Mode, Preallocation};
pub use rate::{TrialLimit, WriteTrial};

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::memory::{Buffer, Region};
use crate::{Error, Result};

use operation::Operation;
use pool::Pool;
use uring::{Unavailable, Uring};

/// More writes in flight help no disk.
const DEPTH_MAX: usize = 4096;
/// Threads of the pool when nobody says how many: pwrite(2) keeps one write in flight per thread.
/// On the disk that was tried, 4, 8 and 16 were alike.
const POOL_THREADS_DEFAULT: usize = 8;

/// Which engine a writer shall use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Engine {
    /// io_uring where the kernel allows it, else the pool.
    #[default]
    Auto,
    /// io_uring or an error.
    IoUring,
    /// Threads in pwrite(2).
    PwritePool {
        /// How many; limited by the depth.
        threads: usize,
    },
}

/// How long [`DirectWriter::complete`] waits if nothing has ended yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Not at all.
    Poll,
    /// Until this time at most.
    AtMost(Instant),
    /// Until one write has ended.
    One,
}

impl Wait {
    /// Waits for at most `limit` from now on.
    pub fn limit(limit: Duration) -> Self {
        Self::AtMost(Instant::now() + limit)
    }
}

/// A write that has ended, with everything that it was given.
#[derive(Debug)]
pub struct Completion {
    /// The buffer, the caller's again.
    pub buffer: Buffer,
    /// The caller's number for the write.
    pub tag: u64,
    /// The file written to.
    pub file: Arc<DirectFile>,
    /// Where in the file, in bytes.
    pub offset: u64,
    /// How many bytes were to be written.
    pub length: usize,
    /// `length`, or why not all of it is written: [`Kind::NoSpace`](crate::Kind::NoSpace) when the
    /// disk is full. Some of the bytes may be in the file then.
    pub result: Result<usize>,
    /// From submission to completion.
    pub latency_ns: u64,
}

/// Why a write was not accepted.
#[derive(Debug)]
pub enum Refusal {
    /// As many writes as the depth allows are in flight: complete some first.
    QueueFull,
    /// The write can never be accepted as it is, or the engine is broken.
    Failed(Error),
}

/// A write that was not accepted, with its buffer.
#[derive(Debug)]
pub struct Refused {
    /// The buffer, untouched.
    pub buffer: Buffer,
    /// Why.
    pub reason: Refusal,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Refusal::QueueFull => f.write_str("queueing a write: all entries are in flight"),
            Refusal::Failed(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Refused {}

enum Backend {
    Uring(Box<Uring>),
    Pool(Pool),
}

/// Writes buffers to direct files, up to `depth` at a time.
///
/// Dropping the writer waits for the writes in flight, so no buffer is freed or reused while the
/// kernel reads it; their completions are lost then.
pub struct DirectWriter {
    backend: Backend,
    depth: usize,
    in_flight: usize,
    description: String,
}

impl DirectWriter {
    /// Makes a writer for at most `depth` writes in flight (1 to 4096).
    ///
    /// The `regions` are those that most buffers come from: io_uring registers their memory once
    /// instead of pinning it at each write. Buffers of other regions can be written all the same.
    /// Where the limit of locked memory forbids that, the writer works without;
    /// [`DirectWriter::description`] says so.
    ///
    /// # Errors
    /// [`Kind::Invalid`](crate::Kind::Invalid) for a depth out of range or a pool without threads;
    /// what io_uring_setup(2) reports when io_uring is demanded and refused; what the system reports
    /// when no thread can be started.
    pub fn new(engine: Engine, depth: usize, regions: &[Arc<Region>]) -> Result<Self> {
        if !(1..=DEPTH_MAX).contains(&depth) {
            let action = format!("making a disk writer for {depth} writes in flight");
            return Err(invalid(action).remedy(format!("ask for 1 to {DEPTH_MAX}")));
        }
        let (backend, description) = match engine {
            Engine::Auto => match Uring::new(depth, regions) {
                Ok(made) => on_ring(made, depth),
                Err(refused) => {
                    let (pool, description) = on_pool(POOL_THREADS_DEFAULT, depth)?;
                    let Unavailable { reason, source } = refused;
                    (pool, format!("{description}, since {reason}: {source}"))
                }
            },
            Engine::IoUring => match Uring::new(depth, regions) {
                Ok(made) => on_ring(made, depth),
                Err(refused) => {
                    let action = format!("making a disk writer on io_uring: {}", refused.reason);
                    return Err(Error::new(action, refused.source)
                        .remedy("allow io_uring, or let the writer use its pwrite pool"));
                }
            },
            Engine::PwritePool { threads } => on_pool(threads, depth)?,
        };
        Ok(Self { backend, depth, in_flight: 0, description })
    }

    /// Which engine is in use: never [`Engine::Auto`].
    pub fn engine(&self) -> Engine {
        match &self.backend {
            Backend::Uring(_) => Engine::IoUring,
            Backend::Pool(pool) => Engine::PwritePool { threads: pool.threads() },
        }
    }

    /// The engine in words, with the reason for any fallback.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// How many writes can be in flight.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// How many writes have been accepted and not come back.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Starts writing the first `length` bytes of `buffer` at `offset` of `file`. The `tag` comes
    /// back with the completion.
    ///
    /// # Errors
    /// Gives the buffer back: [`Refusal::QueueFull`] when `depth` writes are in flight;
    /// [`Refusal::Failed`] with [`Kind::Invalid`](crate::Kind::Invalid) when `length` is 0 or more
    /// than the buffer, or when address, offset or length do not fit the file's alignment.
    pub fn submit(
        &mut self,
        file: &Arc<DirectFile>,
        offset: u64,
        buffer: Buffer,
        length: usize,
        tag: u64,
    ) -> Result<(), Refused> {
        if self.in_flight >= self.depth {
            return Err(Refused { buffer, reason: Refusal::QueueFull });
        }
        if let Err(error) = check(file, offset, &buffer, length) {
            return Err(Refused { buffer, reason: Refusal::Failed(error) });
        }
        let operation = Operation::new(Arc::clone(file), offset, buffer, length, tag);
        match &mut self.backend {
            Backend::Uring(ring) => ring.submit(operation),
            Backend::Pool(pool) => pool.submit(operation),
        }?;
        self.in_flight += 1;
        Ok(())
    }

    /// Appends the writes that have ended to `out`, in the order of their ends, and returns how
    /// many. Waits for the first one as `wait` says; returns at once when none is in flight.
    ///
    /// # Errors
    /// When the engine itself fails; what was collected before is in `out`. The error of a write is
    /// in its completion instead.
    pub fn complete(&mut self, wait: Wait, out: &mut Vec<Completion>) -> Result<usize> {
        if self.in_flight == 0 {
            return Ok(0);
        }
        let before = out.len();
        let completed = match &mut self.backend {
            Backend::Uring(ring) => ring.complete(wait, out),
            Backend::Pool(pool) => pool.complete(wait, out),
        };
        let count = out.len() - before;
        self.in_flight = self.in_flight.saturating_sub(count);
        completed.map(|()| count)
    }

    /// Waits for all writes in flight and appends them to `out`.
    ///
    /// # Errors
    /// As for [`DirectWriter::complete`].
    pub fn complete_all(&mut self, out: &mut Vec<Completion>) -> Result<()> {
        while self.in_flight > 0 {
            self.complete(Wait::One, out)?;
        }
        Ok(())
    }
}

impl fmt::Debug for DirectWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectWriter")
            .field("description", &self.description)
            .field("depth", &self.depth)
            .field("in_flight", &self.in_flight)
            .finish_non_exhaustive()
    }
}

fn on_ring((ring, unregistered): (Uring, Option<String>), depth: usize) -> (Backend, String) {
    let memory = match unregistered {
        None => "registered buffers".to_owned(),
        Some(reason) => {
            format!("buffers pinned at each write, since registering them failed: {reason}")
        }
    };
    (Backend::Uring(Box::new(ring)), format!("io_uring, depth {depth}, {memory}"))
}

fn on_pool(threads: usize, depth: usize) -> Result<(Backend, String)> {
    if threads == 0 {
        return Err(invalid("making a pwrite pool of 0 threads").remedy("ask for at least one"));
    }
    let threads = threads.min(depth);
    let description = format!("pwrite pool of {threads} threads, depth {depth}");
    Ok((Backend::Pool(Pool::new(threads, depth)?), description))
}

fn check(file: &DirectFile, offset: u64, buffer: &Buffer, length: usize) -> Result<()> {
    let refuse = |what: String, remedy: String| {
        let path = file.path().display();
        let action = format!("writing {length} bytes at offset {offset} of {path}: {what}");
        Err(invalid(action).remedy(remedy))
    };
    if length == 0 || length > buffer.len() {
        let held = format!("the buffer holds {} bytes", buffer.len());
        return refuse(held, "write at least one byte and at most the whole buffer".to_owned());
    }
    let alignment = u64::from(file.offset_alignment_bytes());
    if !offset.is_multiple_of(alignment) || !(length as u64).is_multiple_of(alignment) {
        let what = format!("direct I/O here needs multiples of {alignment} bytes");
        return refuse(what, "pad the length and align the offset".to_owned());
    }
    let alignment = file.memory_alignment_bytes() as usize;
    if !buffer.as_ptr().addr().is_multiple_of(alignment) {
        let what = format!("direct I/O here needs memory aligned to {alignment} bytes");
        return refuse(what, format!("use chunks that are multiples of {alignment} bytes"));
    }
    if offset.checked_add(length as u64).is_none_or(|end| i64::try_from(end).is_err()) {
        return refuse("no file is that large".to_owned(), "use a smaller offset".to_owned());
    }
    Ok(())
}

fn invalid(action: impl Into<String>) -> Error {
    Error::new(action, io::Error::from_raw_os_error(libc::EINVAL))
}
