//! The engine for machines that forbid io_uring: a few threads, each in one pwrite(2) at a time.

use std::sync::mpsc::{
    Receiver, RecvTimeoutError, SyncSender, TryRecvError, TrySendError, sync_channel,
};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use super::operation::{Operation, Step};
use super::{Completion, Refused, Wait};
use crate::{Error, Result};

/// Threads that write what they are given, in any order. Dropping it waits for all accepted writes.
#[derive(Debug)]
pub(super) struct Pool {
    /// Taken away when the pool ends, which tells the threads to finish.
    jobs: Option<SyncSender<Operation>>,
    done: Receiver<Completion>,
    threads: Vec<JoinHandle<()>>,
}

impl Pool {
    /// Starts `threads` threads for at most `depth` writes at a time.
    pub(super) fn new(threads: usize, depth: usize) -> Result<Self> {
        let (jobs, to_do) = sync_channel(depth);
        // As large as all writes in flight: a thread never waits for its result to be collected.
        let (results, done) = sync_channel(depth);
        let to_do = Arc::new(Mutex::new(to_do));
        let mut pool = Self { jobs: Some(jobs), done, threads: Vec::new() };
        for index in 0..threads {
            let (to_do, results) = (Arc::clone(&to_do), results.clone());
            let thread = thread::Builder::new()
                .name(format!("pwrite-{index}"))
                .spawn(move || work(&to_do, &results))
                .map_err(|source| {
                    Error::of_thread("starting a thread of the pwrite pool", source)
                })?;
            pool.threads.push(thread);
        }
        Ok(pool)
    }

    pub(super) fn threads(&self) -> usize {
        self.threads.len()
    }

    pub(super) fn submit(&mut self, operation: Operation) -> Result<(), Refused> {
        let Some(jobs) = &self.jobs else { return Err(operation.refused(ended())) };
        jobs.try_send(operation).map_err(|refused| match refused {
            TrySendError::Full(operation) | TrySendError::Disconnected(operation) => {
                operation.refused(ended())
            }
        })
    }

    /// Collects what has been written; waits for the first as `wait` says.
    pub(super) fn complete(&mut self, wait: Wait, out: &mut Vec<Completion>) -> Result<()> {
        let first = match wait {
            Wait::Poll => match self.done.try_recv() {
                Ok(completion) => Some(completion),
                Err(TryRecvError::Empty) => None,
                Err(TryRecvError::Disconnected) => return Err(ended()),
            },
            Wait::AtMost(limit) => {
                let left = limit.saturating_duration_since(Instant::now());
                match self.done.recv_timeout(left) {
                    Ok(completion) => Some(completion),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => return Err(ended()),
                }
            }
            Wait::One => Some(self.done.recv().map_err(|_| ended())?),
        };
        out.extend(first);
        out.extend(self.done.try_iter());
        Ok(())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // The threads write what was accepted, then find the channel closed and end.
        self.jobs = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn work(to_do: &Mutex<Receiver<Operation>>, results: &SyncSender<Completion>) {
    loop {
        // One idle thread waits for work inside the lock, the others for the lock: all of them sleep.
        let next = to_do.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(operation) = next else { return };
        if results.send(write(operation)).is_err() {
            return;
        }
    }
}

fn write(mut operation: Operation) -> Completion {
    loop {
        let outcome =
            rustix::io::pwrite(operation.file().file(), operation.rest(), operation.rest_offset());
        if let Step::Done(result) = operation.attempted(outcome.map_err(Into::into)) {
            return operation.completion(result);
        }
    }
}

fn ended() -> Error {
    let source = std::io::Error::other("its threads have ended");
    Error::new("using the pwrite pool", source)
}
