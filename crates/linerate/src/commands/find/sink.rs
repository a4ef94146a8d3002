//! Where `--write` puts packets: a file, or a pipe for as long as somebody reads it.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use engine::Stop;
use store::StoreError;
use store::new_file::Sink;
use sys::pipe::Pipe;

/// Longest wait for a reader without a look at the stop flag.
const WAIT: Duration = Duration::from_millis(100);

/// How long a reader may take nothing after a stop was asked for.
const GRACE: Duration = Duration::from_secs(1);

/// A sink that is waited for until the run is told to end, and then for as long as its reader goes on.
/// When that is over, writes fail with [`ErrorKind::TimedOut`].
pub(super) struct PatientSink {
    sink: Sink,
    stop: Stop,
}

impl PatientSink {
    pub(super) fn new(sink: Sink, stop: &Stop) -> Self {
        Self { sink, stop: stop.clone() }
    }

    /// Standard output without a buffer in front: what was written and what was not is then known.
    pub(super) fn stdout(stop: &Stop) -> sys::Result<Self> {
        let stdout = stdout()?;
        let pipe = stdout.try_clone().and_then(Pipe::inherited).map_err(not_opened)?;
        Ok(Self::new(pipe.map_or(Sink::File(stdout), Sink::Pipe), stop))
    }
}

impl Write for PatientSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut asked: Option<Instant> = None;
        loop {
            match self.sink.write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                outcome => return outcome,
            }
            if self.stop.is_requested() {
                let since = asked.get_or_insert_with(Instant::now).elapsed();
                if since >= GRACE || matches!(self.sink, Sink::Unread) {
                    return Err(ErrorKind::TimedOut.into());
                }
            }
            self.sink.wait(WAIT)?;
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

/// A handle of standard output.
pub(super) fn stdout() -> sys::Result<File> {
    io::stdout().as_fd().try_clone_to_owned().map(File::from).map_err(not_opened)
}

fn not_opened(source: io::Error) -> sys::Error {
    sys::Error::new("opening standard output for packets", source)
}

/// Whether the reader of the output went away.
pub(super) fn is_closed(error: &StoreError) -> bool {
    error.io_kind() == Some(ErrorKind::BrokenPipe)
}

/// Whether a signal ended the run while nobody read the output.
pub(super) fn is_unread(error: &StoreError) -> bool {
    match error {
        // The kernel's own (of a remote disk) has a number.
        StoreError::Incomplete { source, .. } => {
            source.kind() == ErrorKind::TimedOut && source.raw_os_error().is_none()
        }
        _ => false,
    }
}
