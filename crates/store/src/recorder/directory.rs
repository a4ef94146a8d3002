//! The directory of a recording: made, locked, and left in order for what comes.

use std::fs::{self, File, OpenOptions};
use std::path::Path;
use std::time::Instant;

use crate::error::{Result, StoreError};
use crate::lock;
use crate::recover::{Claim, RecoveryReport, Repair, recover_claimed};
use crate::segment;

/// Makes the directory if need be and takes the lock of `stream` in it, which lasts as long as the
/// file returned stays open.
pub(super) fn take(directory: &Path, stream: u16) -> Result<File> {
    let failed = |action: &str, error: std::io::Error| {
        sys::Error::new(format!("recording to {}: {action}", directory.display()), error)
    };
    fs::create_dir_all(directory).map_err(|error| {
        failed("making the directory", error).remedy("choose a path that can be made")
    })?;
    let lock = segment::lock_name(stream);
    let path = directory.join(&lock);
    if !segment::is_regular(&path) {
        return Err(StoreError::Directory {
            directory: directory.display().to_string(),
            reason: format!(
                "{lock}, the name of the recorder's lock, is there and no file; remove or rename it"
            ),
        });
    }
    match try_lock(directory, stream) {
        Ok(Some(lock)) => Ok(lock),
        Ok(None) => Err(StoreError::Locked {
            directory: directory.display().to_string(),
            stream,
            file: path.display().to_string(),
        }),
        Err(error) => Err(failed("making the lock file in it", error)
            .remedy("give this user the right to write there, or choose another directory")
            .into()),
    }
}

/// `None` if somebody else holds it.
fn try_lock(directory: &Path, stream: u16) -> std::io::Result<Option<File>> {
    let path = directory.join(segment::lock_name(stream));
    if !segment::is_regular(&path) {
        // Opening a pipe would wait for its other end. Nobody holds what is no lock.
        return Ok(None);
    }
    let file = OpenOptions::new().create(true).append(true).open(path)?;
    let taken = lock::take(&file, Instant::now() + lock::MOMENT)?;
    Ok(taken.then_some(file))
}

/// Recovers unsealed segments: this stream's, whose lock is held, and those of streams that nobody
/// records at present.
///
/// Errors: somebody writes to a segment of this stream, though nobody held its lock: the file for
/// that had been removed ([`StoreError::Locked`]).
pub(super) fn recover(directory: &Path, own_stream: u16) -> Result<RecoveryReport> {
    recover_claimed(directory, Repair::Seal, |entry| {
        if entry.stream == own_stream {
            return Some(Claim::Sole);
        }
        let lock = try_lock(directory, entry.stream).ok().flatten();
        lock.map(|lock| Claim::OfStream { _lock: lock })
    })
}

/// One more than the highest segment number of the stream.
pub(super) fn next_number(directory: &Path, stream: u16) -> Result<u32> {
    let entries = segment::list(directory)?;
    let highest = entries.iter().filter(|entry| entry.stream == stream).map(|e| e.number).max();
    Ok(highest.map_or(1, |number| number.wrapping_add(1)))
}
