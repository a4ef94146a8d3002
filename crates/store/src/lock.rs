//! Locks on files (flock(2)): who holds one alone is at work there.
//!
//! A lock that is held is not always one that stays: readers ask for it for a moment, and the kernel
//! keeps the files of a killed recorder until its last writes have ended and its io_uring is taken
//! down, which it does some time after the process is gone. So whoever asks waits a little.

use std::fs::{File, TryLockError};
use std::io;
use std::thread;
use std::time::{Duration, Instant};

/// Longer than a reader asks.
pub(crate) const MOMENT: Duration = Duration::from_millis(200);
/// Longer than the kernel has writes of a killed recorder in flight, unless its disk hangs.
pub(crate) const TEARDOWN: Duration = Duration::from_secs(2);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(5);

/// Takes the lock alone, for as long as the file stays open; false if somebody holds it until
/// `deadline`.
pub(crate) fn take(file: &File, deadline: Instant) -> io::Result<bool> {
    attempt(|| file.try_lock(), deadline)
}

/// Whether somebody holds the lock alone, and still does so at `deadline`.
pub(crate) fn is_held(file: &File, deadline: Instant) -> bool {
    let free = attempt(|| file.try_lock_shared(), deadline);
    // The file may stay open for long.
    let _ = file.unlock();
    matches!(free, Ok(false))
}

fn attempt(lock: impl Fn() -> Result<(), TryLockError>, deadline: Instant) -> io::Result<bool> {
    loop {
        match lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(PAUSE),
            Err(TryLockError::WouldBlock) => return Ok(false),
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}
