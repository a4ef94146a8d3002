//! What passes between the thread that appends packets and the one that writes chunks: full chunks
//! there, free buffers back, and in the end the account.
//!
//! Two rings, a flag and a bell: the writer may sleep, and is woken when there is something for it.

use std::collections::VecDeque;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use port::ring::{Consumer, Producer, RingBuffer};

use sys::sync::{Arc, AtomicBool, Mutex, park};

/// The appending side: gives `C`hunks, gets `B`uffers, and at last gives an `A`ccount.
#[derive(Debug)]
pub(super) struct AppendEnd<C, B, A> {
    full: Producer<C>,
    free: Consumer<B>,
    end: Arc<End<A>>,
}

/// The writing side.
#[derive(Debug)]
pub(super) struct WriteEnd<C, B, A> {
    full: Consumer<C>,
    free: Producer<B>,
    end: Arc<End<A>>,
}

/// How the appending side says that it has ended.
#[derive(Debug)]
struct End<A> {
    account: Mutex<Option<A>>,
    finishing: AtomicBool,
}

/// Both sides, with `buffers` free. The rings have room for all of them.
pub(super) fn hand_over<C, B, A>(buffers: Vec<B>) -> (AppendEnd<C, B, A>, WriteEnd<C, B, A>) {
    let (full, full_out) = RingBuffer::new(buffers.len() + 1);
    let (mut free_in, free) = RingBuffer::new(buffers.len() + 1);
    for buffer in buffers {
        let _ = free_in.push(buffer);
    }
    let end = Arc::new(End { account: Mutex::new(None), finishing: AtomicBool::new(false) });
    let append = AppendEnd { full, free, end: Arc::clone(&end) };
    (append, WriteEnd { full: full_out, free: free_in, end })
}

impl<C, B, A> AppendEnd<C, B, A> {
    /// A free buffer; `None` if all wait for the disk.
    pub(super) fn take(&mut self) -> Option<B> {
        self.free.pop().ok()
    }

    /// Buffers that are free at the moment.
    pub(super) fn free_count(&self) -> usize {
        self.free.slots()
    }

    /// Gives a chunk to the writer, and wakes it: a system call only if it sleeps.
    pub(super) fn give(&mut self, chunk: C, wake_writer: impl FnOnce()) {
        // The ring has room for all buffers there are.
        let _ = self.full.push(chunk);
        wake_writer();
    }

    /// Says that no further chunk will come, and what was put into chunks or lost before.
    pub(super) fn finish(&self, account: A, wake_writer: impl FnOnce()) {
        *self.end.account.lock().unwrap_or_else(PoisonError::into_inner) = Some(account);
        self.end.finishing.store(true, Ordering::Release);
        wake_writer();
    }
}

impl<C, B, A: Copy + Default> WriteEnd<C, B, A> {
    /// Takes the chunks that were given. `true` if those were the last.
    pub(super) fn take_into(&mut self, queue: &mut VecDeque<C>) -> bool {
        // Read before the ring is: whatever was given before the end is seen below.
        let finishing = self.end.finishing.load(Ordering::Acquire);
        while let Ok(chunk) = self.full.pop() {
            queue.push_back(chunk);
        }
        finishing
    }

    /// Gives a buffer back. An appending side that is gone needs none.
    pub(super) fn give_back(&mut self, buffer: B) {
        let _ = self.free.push(buffer);
    }

    /// Sleeps until woken, or for `limit`.
    pub(super) fn wait(&self, limit: Duration) {
        park(limit);
    }

    /// The account that the appending side ended with.
    pub(super) fn account(&self) -> A {
        let account = self.end.account.lock().unwrap_or_else(PoisonError::into_inner);
        account.unwrap_or_default()
    }
}

#[cfg(all(test, loom))]
mod model;
