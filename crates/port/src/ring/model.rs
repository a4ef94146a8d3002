//! A ring as `rtrb` has it, of loom's parts.
//!
//! The positions count all that ever went in and out. Each is written by one side, with release
//! ordering after the slot was touched, and read by the other with acquire ordering before it is.
//! The slots' locks are unknown to loom, so that they order nothing; nobody waits for one.

use std::sync::{Mutex, PoisonError};

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The memory that both ends share.
#[derive(Debug)]
pub struct RingBuffer<T> {
    slots: Vec<Mutex<Option<T>>>,
    /// Things that were taken out.
    head: AtomicUsize,
    /// Things that were put in.
    tail: AtomicUsize,
    /// One of the ends is gone.
    abandoned: AtomicBool,
}

/// The end where things are put in.
#[derive(Debug)]
pub struct Producer<T>(Arc<RingBuffer<T>>);

/// The end where things are taken out.
#[derive(Debug)]
pub struct Consumer<T>(Arc<RingBuffer<T>>);

/// What did not go in.
#[derive(Debug)]
pub enum PushError<T> {
    /// The ring was full.
    Full(T),
}

/// The ring was empty.
#[derive(Debug)]
pub struct PopError;

impl<T> RingBuffer<T> {
    /// A ring that holds `capacity` things.
    #[expect(clippy::new_ret_no_self, reason = "as rtrb has it")]
    pub fn new(capacity: usize) -> (Producer<T>, Consumer<T>) {
        let ring = Arc::new(Self {
            slots: (0..capacity).map(|_| Mutex::new(None)).collect(),
            head: AtomicUsize::new(0),
            tail: AtomicUsize::new(0),
            abandoned: AtomicBool::new(false),
        });
        (Producer(Arc::clone(&ring)), Consumer(ring))
    }

    /// Things that it holds at most.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Changes what is in the slot of a position.
    fn replace(&self, position: usize, thing: Option<T>) -> Option<T> {
        let slot = &self.slots[position % self.slots.len()];
        std::mem::replace(&mut slot.lock().unwrap_or_else(PoisonError::into_inner), thing)
    }

    /// Things in it, as seen by a thread that has just read the other side's position.
    fn len(&self) -> usize {
        self.tail.load(Ordering::Acquire) - self.head.load(Ordering::Acquire)
    }
}

impl<T> Producer<T> {
    /// Puts a thing in.
    pub fn push(&mut self, thing: T) -> Result<(), PushError<T>> {
        if self.is_full() {
            return Err(PushError::Full(thing));
        }
        let tail = self.0.tail.load(Ordering::Relaxed);
        self.0.replace(tail, Some(thing));
        self.0.tail.store(tail + 1, Ordering::Release);
        Ok(())
    }

    /// Things that go in before it is full.
    pub fn slots(&self) -> usize {
        self.0.capacity() - self.0.len()
    }

    /// Nothing goes in.
    pub fn is_full(&self) -> bool {
        self.slots() == 0
    }

    /// The other end is gone.
    pub fn is_abandoned(&self) -> bool {
        self.0.abandoned.load(Ordering::Acquire)
    }

    /// The memory.
    pub fn buffer(&self) -> &RingBuffer<T> {
        &self.0
    }
}

impl<T> Consumer<T> {
    /// Takes a thing out.
    pub fn pop(&mut self) -> Result<T, PopError> {
        if self.is_empty() {
            return Err(PopError);
        }
        let head = self.0.head.load(Ordering::Relaxed);
        let thing = self.0.replace(head, None);
        self.0.head.store(head + 1, Ordering::Release);
        thing.ok_or(PopError)
    }

    /// Things that are in it.
    pub fn slots(&self) -> usize {
        self.0.len()
    }

    /// Nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.slots() == 0
    }

    /// The other end is gone.
    pub fn is_abandoned(&self) -> bool {
        self.0.abandoned.load(Ordering::Acquire)
    }
}

impl<T> Drop for Producer<T> {
    fn drop(&mut self) {
        self.0.abandoned.store(true, Ordering::Release);
    }
}

impl<T> Drop for Consumer<T> {
    fn drop(&mut self) {
        self.0.abandoned.store(true, Ordering::Release);
    }
}
