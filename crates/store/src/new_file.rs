//! A capture file, or a stream into a pipe, that is being made.
//!
//! Whoever writes to it does so through [`NewFile::sink`] and hands a failure to
//! [`NewFile::settle`]: the file then ends behind its last whole packet, so that every reader opens it.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use sys::pipe::Pipe;

use crate::error::{Result, StoreError};
use crate::segment;

/// Between two looks whether somebody reads a pipe: opening it cannot be waited for.
const LOOK: Duration = Duration::from_millis(20);

/// A file of which everything was written by this program since it was opened.
#[derive(Debug)]
pub struct NewFile {
    sink: Sink,
    name: String,
}

/// What a new file is written through.
#[derive(Debug)]
pub enum Sink {
    /// A file, which takes everything at once.
    File(File),
    /// A pipe or a device: it takes what somebody else reads, and [`ErrorKind::WouldBlock`] says that this
    /// is nothing now.
    Pipe(Pipe),
    /// A pipe that nobody came to read. It takes nothing.
    Unread,
}

impl Sink {
    fn again(&self) -> io::Result<Self> {
        Ok(match self {
            Self::File(file) => Self::File(file.try_clone()?),
            Self::Pipe(pipe) => Self::Pipe(pipe.clone()),
            Self::Unread => Self::Unread,
        })
    }

    /// Sleeps until it may take something, at most `timeout`.
    pub fn wait(&self, timeout: Duration) -> io::Result<()> {
        match self {
            Self::File(_) => {}
            Self::Pipe(pipe) => pipe.wait_writable(timeout)?,
            Self::Unread => std::thread::sleep(timeout),
        }
        Ok(())
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.write(bytes),
            Self::Pipe(pipe) => pipe.write(bytes),
            Self::Unread => Err(ErrorKind::WouldBlock.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl NewFile {
    /// Creates the file, replacing one of the same name, unless that belongs to a recording
    /// ([`StoreError::Recording`]). A file that has other names, too, keeps its contents under those.
    ///
    /// A pipe that nobody reads is waited for as long as `go_on` says so; then it is [`Sink::Unread`].
    pub fn create(path: impl AsRef<Path>, go_on: impl FnMut() -> bool) -> Result<Self> {
        let path = path.as_ref();
        let name = path.display().to_string();
        if segment::is_of_recording(path) {
            return Err(StoreError::Recording { name });
        }
        let failed = |source| StoreError::Write { what: name.clone(), source };
        if let Some(sink) = pipe(path, go_on).map_err(failed)? {
            return Ok(Self { sink, name });
        }
        // One of the other names may be that of a segment.
        if path.symlink_metadata().is_ok_and(|file| file.is_file() && file.nlink() > 1) {
            std::fs::remove_file(path).map_err(failed)?;
        }
        let file = File::create(path).map_err(failed)?;
        Ok(Self { sink: Sink::File(file), name })
    }

    /// The path that it was made at.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is neither a pipe nor a device.
    pub fn is_file(&self) -> bool {
        matches!(self.sink, Sink::File(_))
    }

    /// Another handle to write through, as long as this one is not written to.
    pub fn sink(&self) -> Result<Sink> {
        self.sink.again().map_err(|source| StoreError::Write { what: self.name.clone(), source })
    }

    /// After a failed write: cuts off the beginning of a packet whose end did not fit, and names the
    /// file in the error.
    pub fn settle(&self, error: StoreError) -> StoreError {
        match error {
            StoreError::Incomplete { packets, bytes, source, .. } => {
                // Pipes and devices have nothing to cut. A file that cannot be cut is cut short for
                // readers, which tell how many packets are good: as many.
                if let Sink::File(file) = &self.sink {
                    let _ = file.set_len(bytes);
                }
                StoreError::Incomplete { what: self.name.clone(), packets, bytes, source }
            }
            other => other,
        }
    }
}

/// Opens a pipe or a device once somebody reads it; `None` if it is neither.
fn pipe(path: &Path, mut go_on: impl FnMut() -> bool) -> io::Result<Option<Sink>> {
    loop {
        match Pipe::to_write(path) {
            Ok(pipe) => return Ok(pipe.map(Sink::Pipe)),
            Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
            Err(_) if !go_on() => return Ok(Some(Sink::Unread)),
            Err(_) => std::thread::sleep(LOOK),
        }
    }
}
