//! Disks that are soon full.

use std::panic::resume_unwind;
use std::path::Path;
use std::thread;

use sys::Kind;
use sys::namespace::mount_memory;

use crate::{Outcome, skip};

/// Runs `body` in a thread that has, at the path it is given, an empty file system of `bytes`
/// bytes in memory. Only that thread and those that it starts see it, and it ends with them.
///
/// # Errors
/// What `body` returns; skips the test where nothing can be mounted.
pub fn on_small_disk(bytes: u64, body: impl FnOnce(&Path) -> Outcome + Send) -> Outcome {
    let directory = tempfile::tempdir()?;
    let path = directory.path();
    thread::scope(|scope| {
        let thread = scope.spawn(move || match mount_memory(path, bytes) {
            Err(error) if error.kind() == Kind::Permission => skip(error),
            Err(error) => Err(error.into()),
            Ok(()) => body(path),
        });
        thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}
