//! The thread that brings full chunks to the disk: takes them from the ring, completes them with
//! their trailers, keeps several writes in flight, hands buffers back.
//!
//! A failed write is not the end of a packet: the segment ends before the failed chunk and the
//! chunk goes to a new segment ([`super::writing`]). While nothing can be written, chunks wait here
//! and the pool runs dry, which the appending side counts as `storage`; each second another
//! segment is tried. Only at the end of the recording are chunks given up, and counted.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use sys::direct_io::{Completion, DirectWriter, Engine, Refusal, Wait};
use sys::memory::Buffer;

use super::hand_over::WriteEnd;
use super::keeper::{Job, Keeper, Prepared, SealedSegment, Share};
use super::status::Status;
use super::writing::{FullChunk, Writing};
use crate::error::Result;
use crate::ledger::Ledger;

/// Chunks of 1 MiB in flight at most: enough for any one disk.
pub(super) const DEPTH_MAX: usize = 16;
/// Longest sleep while there is nothing to do; chunks and segments wake the thread earlier.
const NAP: Duration = Duration::from_millis(20);
/// Pause between attempts while nothing can be written.
const RETRY: Duration = Duration::from_secs(1);

/// The segment after the current one.
#[derive(Debug)]
enum Next {
    None,
    Asked,
    Ready(Box<Prepared>),
    /// Could not be made; why.
    Failed(String),
}

/// Everything the thread owns.
pub(super) struct WriterThread {
    input: WriteEnd<FullChunk, Buffer, Ledger>,
    disk: DirectWriter,
    keeper: Keeper,
    status: Arc<Status>,
    /// Chunks without a place, in order.
    queue: VecDeque<FullChunk>,
    current: Option<Writing>,
    /// Segments that get no more chunks and have writes in flight.
    ending: Vec<Writing>,
    next: Next,
    /// No attempt to write or to make a segment before this time.
    retry_at: Option<Instant>,
    sync_interval: Option<Duration>,
    synced_at: Instant,
    /// Put into chunks that no segment took by the end.
    abandoned: Share,
    completions: Vec<Completion>,
}

impl WriterThread {
    pub(super) fn new(
        input: WriteEnd<FullChunk, Buffer, Ledger>,
        (disk, keeper, status): (DirectWriter, Keeper, Arc<Status>),
        first: Prepared,
        sync_interval: Option<Duration>,
    ) -> Self {
        Self {
            input,
            disk,
            keeper,
            status,
            queue: VecDeque::new(),
            current: Some(Writing::new(first)),
            ending: Vec::new(),
            next: Next::None,
            retry_at: None,
            sync_interval,
            synced_at: Instant::now(),
            abandoned: Share::default(),
            completions: Vec::new(),
        }
    }

    /// Works until the recorder has finished and everything is on disk or given up.
    pub(super) fn run(mut self) -> Vec<SealedSegment> {
        loop {
            let waiting = self.queue.len();
            let finishing = self.input.take_into(&mut self.queue);
            let mut progress = self.queue.len() > waiting;
            self.take_prepared(finishing);
            progress |= self.submit();
            self.ask_ahead(finishing);
            progress |= self.collect(!progress);
            self.end_segments(finishing);
            self.flush_by_time();
            if finishing && self.is_done() {
                break;
            }
            if !progress && self.disk.in_flight() == 0 {
                self.input.wait(NAP);
            }
        }
        if let Next::Ready(prepared) = self.next {
            self.keeper.ask(Job::Spare(Writing::new(*prepared).end().0));
        }
        let mut account = self.input.account();
        account.give_up(self.abandoned.packets, self.abandoned.bytes);
        self.keeper.finish(account)
    }

    fn take_prepared(&mut self, finishing: bool) {
        match self.keeper.prepared() {
            None => return,
            Some(Ok(prepared)) => {
                self.next = Next::Ready(Box::new(prepared));
                self.retry_at = None;
                return;
            }
            Some(Err(error)) => self.next = Next::Failed(error.to_string()),
        }
        if finishing && self.current.is_none() && self.ending.is_empty() {
            self.give_up();
        }
        self.retry_at = Some(Instant::now() + RETRY);
    }

    /// Gives chunks their places and starts their writes, as many as may be in flight.
    fn submit(&mut self) -> bool {
        let mut progress = false;
        while self.disk.in_flight() < self.disk.depth()
            && !self.ending.iter().any(|segment| segment.failure().is_some())
            && let Some(length) = self.queue.front().map(FullChunk::length)
        {
            if !self.has_room_for(length) {
                break;
            }
            let (Some(segment), Some(mut chunk)) = (&mut self.current, self.queue.pop_front())
            else {
                break;
            };
            let Some((offset, length, sequence)) = segment.place(&mut chunk) else {
                break;
            };
            let tag = tag_of(segment.number(), sequence);
            let file = &segment.prepared.file;
            match self.disk.submit(file, offset, chunk.buffer, length, tag) {
                Ok(()) => progress = true,
                Err(refused) => {
                    let reason = match refused.reason {
                        Refusal::QueueFull => "more writes at once than the queue holds".into(),
                        Refusal::Failed(error) => error.to_string(),
                    };
                    segment.completed(sequence, refused.buffer, Some(reason));
                    self.ending.extend(self.current.take());
                    break;
                }
            }
        }
        progress
    }

    /// Whether the current segment has room, after going on to the next one if need be.
    fn has_room_for(&mut self, length: usize) -> bool {
        if self.current.as_ref().is_some_and(|segment| segment.fits(length)) {
            return true;
        }
        self.ending.extend(self.current.take());
        if self.retry_at.is_some_and(|at| Instant::now() < at) {
            if let Next::Failed(reason) = &self.next {
                self.status.fail_storage(reason.clone());
            }
            return false;
        }
        match std::mem::replace(&mut self.next, Next::None) {
            Next::Ready(prepared) => {
                self.retry_at = None;
                let segment = Writing::new(*prepared);
                if segment.is_damaged() {
                    self.keeper.ask(Job::Seal(segment.end().0));
                    self.ask_next();
                    return false;
                }
                let fits = segment.fits(length);
                self.current = Some(segment);
                fits
            }
            Next::Asked => {
                self.next = Next::Asked;
                false
            }
            Next::Failed(reason) => {
                self.status.fail_storage(reason);
                self.ask_next();
                false
            }
            Next::None => {
                self.ask_next();
                false
            }
        }
    }

    fn ask_next(&mut self) {
        self.next = Next::Asked;
        self.keeper.ask(Job::Prepare(thread::current()));
    }

    /// Has the next segment made ready well before the current one is full.
    fn ask_ahead(&mut self, finishing: bool) {
        let wanted = self.current.as_ref().is_some_and(Writing::is_half_full);
        let may = match self.next {
            Next::None => true,
            Next::Failed(_) => self.retry_at.is_none_or(|at| Instant::now() >= at),
            Next::Asked | Next::Ready(_) => false,
        };
        if wanted && may && !finishing {
            self.ask_next();
        }
    }

    /// Takes note of writes that have ended; waits for one if there is nothing else to do.
    fn collect(&mut self, wait: bool) -> bool {
        let wait = if wait { Wait::limit(NAP) } else { Wait::Poll };
        let mut completions = std::mem::take(&mut self.completions);
        let result = self.disk.complete(wait, &mut completions);
        let progress = !completions.is_empty();
        for completion in completions.drain(..) {
            let (number, sequence) = place_of(completion.tag);
            let failure = completion.result.err().map(|error| error.to_string());
            let mut segments = self.ending.iter_mut().chain(&mut self.current);
            if let Some(segment) = segments.find(|segment| segment.number() == number) {
                segment.completed(sequence, completion.buffer, failure);
            }
        }
        self.completions = completions;
        if let Err(error) = result {
            self.replace_engine(&error.to_string());
        }
        if self.current.as_ref().is_some_and(|segment| segment.failure().is_some()) {
            self.ending.extend(self.current.take());
        }
        self.release();
        progress
    }

    /// Hands buffers back whose chunks, and all before them, are on disk.
    fn release(&mut self) {
        for segment in self.ending.iter_mut().chain(&mut self.current) {
            while let Some((buffer, share)) = segment.release() {
                self.status.written_packets.fetch_add(share.packets, Ordering::Relaxed);
                self.status.written_bytes.fetch_add(share.bytes, Ordering::Relaxed);
                self.status.resume_storage();
                self.input.give_back(buffer);
            }
        }
    }

    /// Seals segments whose writes have all ended, and takes back what failed.
    fn end_segments(&mut self, finishing: bool) {
        if finishing && self.queue.is_empty() {
            self.ending.extend(self.current.take());
        }
        let (ended, ending) =
            std::mem::take(&mut self.ending).into_iter().partition(|s| !s.has_in_flight());
        self.ending = ending;
        for segment in ended {
            let segment: Writing = segment;
            let failure = segment.failure().map(String::from);
            let has_chunks = segment.has_chunks();
            let (ended, again, lost) = segment.end();
            self.keeper.ask(Job::Seal(ended));
            self.count_given_up(lost);
            for chunk in again.into_iter().rev() {
                self.queue.push_front(chunk);
            }
            let Some(reason) = failure.filter(|_| !has_chunks) else { continue };
            // Not even one chunk could be written: no use in trying at once.
            self.status.fail_storage(reason);
            self.retry_at = Some(Instant::now() + RETRY);
            if finishing {
                self.give_up();
            }
        }
    }

    /// The recording ends and nothing can be written: what is left is lost as `storage`.
    fn give_up(&mut self) {
        while let Some(chunk) = self.queue.pop_front() {
            let packets = u64::from(chunk.content.packets);
            let bytes = chunk.content.captured_bytes;
            self.abandoned.packets += packets;
            self.abandoned.bytes += bytes;
            self.count_given_up(Share { packets, bytes });
        }
    }

    fn count_given_up(&self, lost: Share) {
        self.status.given_up_packets.fetch_add(lost.packets, Ordering::Relaxed);
        self.status.given_up_bytes.fetch_add(lost.bytes, Ordering::Relaxed);
    }

    /// The engine broke down with writes in flight: their buffers are gone. Goes on with threads.
    fn replace_engine(&mut self, reason: &str) {
        for segment in self.ending.iter_mut().chain(&mut self.current) {
            segment.lose_in_flight(reason);
        }
        let threads = Engine::PwritePool { threads: DEPTH_MAX };
        match DirectWriter::new(threads, self.disk.depth(), &[]) {
            Ok(disk) => self.disk = disk,
            Err(error) => self.status.fail_storage(error.to_string()),
        }
    }

    fn flush_by_time(&mut self) {
        let Some(interval) = self.sync_interval else { return };
        if self.synced_at.elapsed() < interval {
            return;
        }
        self.synced_at = Instant::now();
        // What goes to a removed segment is lost: the next chunk goes to another. So it does where the
        // segment was cut.
        if self.current.as_ref().is_some_and(Writing::is_damaged) {
            self.ending.extend(self.current.take());
        }
        for segment in self.ending.iter_mut().chain(&mut self.current) {
            let share = segment.take_unflushed();
            if share.packets > 0 {
                self.keeper.ask(Job::Flush(Arc::clone(&segment.prepared.file), share));
            }
        }
    }

    fn is_done(&self) -> bool {
        self.queue.is_empty()
            && self.current.is_none()
            && self.ending.is_empty()
            && !matches!(self.next, Next::Asked)
    }
}

fn tag_of(number: u32, sequence: u64) -> u64 {
    u64::from(number) << 32 | (sequence & 0xffff_ffff)
}

fn place_of(tag: u64) -> (u32, u64) {
    ((tag >> 32) as u32, tag & 0xffff_ffff)
}

/// Starts the thread under its name.
pub(super) fn start(writer: WriterThread) -> Result<thread::JoinHandle<Vec<SealedSegment>>> {
    let spawned = thread::Builder::new().name("store-writer".into()).spawn(|| writer.run());
    Ok(spawned.map_err(|source| sys::Error::of_thread("starting the recorder's writer", source))?)
}
