//! Records packets to segments without ever waiting for the disk.
//!
//! [`Recorder::append`] copies a packet into the open *chunk*, in the memory of a *pool*; that is all
//! that happens per packet: no system call, no clock, no lock. Full chunks go through a ring to a
//! writer thread and come back through another. If the pool is used up, the packet is counted as
//! lost (`pool_empty`, or `storage` while nothing can be written) and the caller goes on.
//!
//! The account is exact: packets appended = packets readable in the segments + packets counted as
//! lost. Packets that had been taken and could not be written by the end of the recording are
//! taken from `stored` and added to `storage` in the summary, and in the account that the last
//! segment ends with: room for that is reserved before any packet is written.
//!
//! Limits: one recorder is fed by one thread; up to 65,536 recorders (*streams*) share a directory.

mod config;
mod directory;
mod hand_over;
mod keeper;
mod sealer;
mod status;
mod writer_thread;
mod writing;

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use port::Reason;
use sys::direct_io::DirectWriter;
use sys::memory::{Buffer, Buffers};

use crate::chunk::{CHUNK_BYTES, ChunkContent, OpenChunk};
use crate::error::Result;
use crate::ledger::{InputCounters, Ledger};
use crate::recover::RecoveryReport;
use hand_over::{AppendEnd, hand_over};
use keeper::{Keeper, Maker};
use status::Status;
use writer_thread::{DEPTH_MAX, WriterThread};
use writing::FullChunk;

pub use config::{
    POOL_BYTES, POOL_BYTES_MIN, RecorderConfig, SEGMENT_BYTES_ALIGNED, SEGMENT_BYTES_MIN,
};
pub use keeper::SealedSegment;
pub use status::RecorderEvent;

/// What became of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Append {
    /// It is in a chunk.
    Stored,
    /// Lost: all chunks of the pool wait for the disk.
    PoolEmpty,
    /// Lost: nothing can be written, and the pool is used up.
    Storage,
}

/// Packets and captured bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// Packets.
    pub packets: u64,
    /// Captured bytes, without framing.
    pub bytes: u64,
}

impl Amount {
    fn add(&mut self, bytes: usize) {
        self.packets += 1;
        self.bytes += bytes as u64;
    }

    fn less(self, other: Self) -> Self {
        Self {
            packets: self.packets.saturating_sub(other.packets),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }
}

/// The recorder's account. `appended = stored + pool_empty + storage`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecorderCounters {
    /// Put into chunks.
    pub stored: Amount,
    /// Of those, written (in the kernel's hands or on disk).
    pub written: Amount,
    /// Of those, flushed: they survive a loss of power.
    pub durable: Amount,
    /// Lost because the pool was used up.
    pub pool_empty: Amount,
    /// Lost because nothing could be written.
    pub storage: Amount,
}

/// The result of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecorderSummary {
    /// The final account; `stored` is what the segments hold.
    pub counters: RecorderCounters,
    /// Segments in the order in which they were sealed.
    pub segments: Vec<SealedSegment>,
    /// What happened since events were last asked for.
    pub events: Vec<RecorderEvent>,
}

/// A recording under way.
#[derive(Debug)]
pub struct Recorder {
    chunk: Option<OpenChunk<Buffer>>,
    output: AppendEnd<FullChunk, Buffer, Ledger>,
    status: Arc<Status>,
    thread: Option<JoinHandle<Vec<SealedSegment>>>,
    input: InputCounters,
    /// Packets in chunks that were closed.
    closed: Amount,
    pool_empty: Amount,
    storage: Amount,
    flush_interval_ns: u64,
    /// When `tick` first saw packets in the open chunk.
    waiting_since_ns: Option<u64>,
    engine: String,
    /// Held for as long as the recorder lives.
    _lock: File,
}

impl Recorder {
    /// Takes the directory, recovers what an earlier recording left unsealed, and makes the first
    /// segment ready.
    ///
    /// Errors: the directory cannot be made, read or written; another recorder has this stream
    /// ([`StoreError::Locked`](crate::StoreError::Locked)); the disk is full; memory is short.
    pub fn open(config: RecorderConfig) -> Result<(Self, RecoveryReport)> {
        let config = config.normalised();
        let lock = directory::take(&config.directory, config.stream)?;
        let report = directory::recover(&config.directory, config.stream)?;
        let next_number = directory::next_number(&config.directory, config.stream)?;
        let status = Arc::new(Status::default());
        let mut maker = Maker::new(config.clone(), now_ns(), next_number)?;
        let first = maker.prepare(&status)?;

        let pool = Buffers::new(config.pool_chunks(), CHUNK_BYTES)?;
        let region = Arc::clone(pool.region());
        let count = pool.count() as usize;
        let depth = DEPTH_MAX.min(count / 2);
        let disk = DirectWriter::new(config.engine, depth, &[region])?;
        let engine = disk.description().to_string();
        let (output, input) = hand_over(pool.split());
        let keeper = Keeper::start(maker, first.facts.number, Arc::clone(&status))?;
        let parts = (disk, keeper, Arc::clone(&status));
        let writer = WriterThread::new(input, parts, first, config.sync_interval);
        let thread = writer_thread::start(writer)?;
        let recorder = Self {
            chunk: None,
            output,
            status,
            thread: Some(thread),
            input: InputCounters::default(),
            closed: Amount::default(),
            pool_empty: Amount::default(),
            storage: Amount::default(),
            flush_interval_ns: duration_ns(config.flush_interval),
            waiting_since_ns: None,
            engine,
            _lock: lock,
        };
        Ok((recorder, report))
    }

    /// Records a packet of arrival time `time_ns` (ns since the Unix epoch), whose length on the
    /// wire was `original_length` bytes. Of `data` at most 262,144 bytes are kept.
    #[inline]
    pub fn append(&mut self, time_ns: u64, data: &[u8], original_length: u32) -> Append {
        if let Some(chunk) = &mut self.chunk
            && chunk.push(time_ns, data, original_length)
        {
            return Append::Stored;
        }
        self.append_to_next(time_ns, data, original_length)
    }

    #[cold]
    fn append_to_next(&mut self, time_ns: u64, data: &[u8], original_length: u32) -> Append {
        self.close_chunk();
        if let Some(buffer) = self.output.take() {
            let chunk = self.chunk.insert(OpenChunk::new(buffer));
            if chunk.push(time_ns, data, original_length) {
                return Append::Stored;
            }
        }
        if self.status.storage_failed() {
            self.storage.add(data.len());
            Append::Storage
        } else {
            self.pool_empty.add(data.len());
            Append::PoolEmpty
        }
    }

    /// Says what happened in front of the recorder, cumulative since it was opened. It goes into
    /// the trailers of the chunks closed from now on.
    pub fn note_input(&mut self, input: InputCounters) {
        self.input = input;
    }

    /// To be called now and then, ten times per flush interval or so: sends a chunk off that has
    /// waited for the flush interval. `now_ns` may be of any clock that does not run backwards.
    pub fn tick(&mut self, now_ns: u64) {
        if self.chunk.as_ref().is_none_or(|chunk| chunk.content().packets == 0) {
            self.waiting_since_ns = None;
            return;
        }
        let since = *self.waiting_since_ns.get_or_insert(now_ns);
        if now_ns.saturating_sub(since) >= self.flush_interval_ns {
            self.close_chunk();
        }
    }

    /// Sends the open chunk to the writer now, so that readers find it as soon as possible.
    pub fn flush(&mut self) {
        self.close_chunk();
    }

    /// The account so far.
    pub fn counters(&self) -> RecorderCounters {
        let amount = |packets: &std::sync::atomic::AtomicU64,
                      bytes: &std::sync::atomic::AtomicU64| Amount {
            packets: packets.load(Ordering::Relaxed),
            bytes: bytes.load(Ordering::Relaxed),
        };
        let status = &self.status;
        let given_up = amount(&status.given_up_packets, &status.given_up_bytes);
        let removed = amount(&status.removed_packets, &status.removed_bytes);
        RecorderCounters {
            stored: self.stored().less(given_up).less(removed),
            written: amount(&status.written_packets, &status.written_bytes).less(removed),
            durable: amount(&status.durable_packets, &status.durable_bytes).less(removed),
            pool_empty: self.pool_empty,
            storage: Amount {
                packets: self.storage.packets + given_up.packets + removed.packets,
                bytes: self.storage.bytes + given_up.bytes + removed.bytes,
            },
        }
    }

    /// What happened since the last call, oldest first.
    pub fn events(&mut self) -> Vec<RecorderEvent> {
        self.status.take_events()
    }

    /// How chunks are written, in words.
    pub fn engine(&self) -> &str {
        &self.engine
    }

    /// Chunks of the pool that are free at the moment.
    pub fn free_chunks(&self) -> usize {
        self.output.free_count()
    }

    /// Ends the recording: everything is written, flushed and sealed, or counted as lost.
    pub fn finish(mut self) -> Result<RecorderSummary> {
        let segments = self.end();
        Ok(RecorderSummary { counters: self.counters(), segments, events: self.events() })
    }

    /// Idempotent, so that dropping a recorder ends it in the same way.
    fn end(&mut self) -> Vec<SealedSegment> {
        self.close_chunk();
        let Some(thread) = self.thread.take() else { return Vec::new() };
        self.output.finish(self.ledger(), || thread.thread().unpark());
        thread.join().unwrap_or_default()
    }

    fn stored(&self) -> Amount {
        let open = self.chunk.as_ref().map(OpenChunk::content);
        Amount {
            packets: self.closed.packets + open.map_or(0, |content| u64::from(content.packets)),
            bytes: self.closed.bytes + open.map_or(0, |content| content.captured_bytes),
        }
    }

    fn ledger(&self) -> Ledger {
        let stored = self.stored();
        let mut ledger = Ledger::of_input(&self.input);
        ledger.stored_packets = stored.packets;
        ledger.stored_bytes = stored.bytes;
        ledger.lose(Reason::PoolEmpty, self.pool_empty.packets);
        ledger.lose(Reason::Storage, self.storage.packets);
        ledger
    }

    fn close_chunk(&mut self) {
        self.waiting_since_ns = None;
        if let Some(chunk) = self.chunk.take() {
            self.send(chunk.close());
        }
    }

    fn send(&mut self, (buffer, content): (Buffer, ChunkContent)) {
        self.closed.packets += u64::from(content.packets);
        self.closed.bytes += content.captured_bytes;
        let chunk = FullChunk { buffer, content, ledger: self.ledger() };
        if let Some(thread) = &self.thread {
            self.output.give(chunk, || thread.thread().unpark());
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.end();
    }
}

fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, duration_ns)
}

fn duration_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
