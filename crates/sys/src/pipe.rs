//! Files that pass bytes at the pace of somebody else: named pipes, terminals and other devices, sockets.
//!
//! std repeats an open, a read and a write that a signal interrupted, so that whoever waits in one never
//! looks at the flag that the signal raised. A [`Pipe`] never waits but in [`Pipe::wait_readable`] and
//! [`Pipe::wait_writable`], for a bounded time; where it would have to, it says
//! [`ErrorKind::WouldBlock`].

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};

/// A pipe that is writable takes as many bytes without waiting (pipe(7)); a socket far more.
const BYTES_AT_ONCE: usize = libc::PIPE_BUF;

/// One end of a pipe, or of another file that makes its user wait. Clones are the same end.
#[derive(Debug, Clone)]
pub struct Pipe {
    file: Arc<File>,
    is_fifo: bool,
    /// Others use the same open file: its flags are not ours to set.
    is_shared: bool,
}

impl Pipe {
    /// Opens what is at `path` for reading, without waiting for a writer; `None` if it is no pipe and no
    /// device.
    ///
    /// # Errors
    /// What open(2) reports.
    pub fn to_read(path: &Path) -> io::Result<Option<Self>> {
        Self::open(path, OpenOptions::new().read(true))
    }

    /// Opens what is at `path` for writing; `None` if it is no pipe and no device.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] as long as nobody reads the pipe; what open(2) reports.
    pub fn to_write(path: &Path) -> io::Result<Option<Self>> {
        Self::open(path, OpenOptions::new().write(true))
    }

    fn open(path: &Path, options: &mut OpenOptions) -> io::Result<Option<Self>> {
        // What is not there is for the one to report who opens it as a file.
        let Ok(kind) = path.metadata().map(|metadata| metadata.file_type()) else {
            return Ok(None);
        };
        let is_fifo = kind.is_fifo();
        if !is_fifo && !kind.is_char_device() {
            return Ok(None);
        }
        // O_NOCTTY: a terminal that is written to does not become the one that sends signals.
        match options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path) {
            Ok(file) => Ok(Some(Self { file: Arc::new(file), is_fifo, is_shared: false })),
            // fifo(7): the end to write has no reader. Devices mean something else by it.
            Err(error) if is_fifo && error.raw_os_error() == Some(libc::ENXIO) => {
                Err(ErrorKind::WouldBlock.into())
            }
            Err(error) => Err(error),
        }
    }

    /// A file to write to that was inherited, such as standard output; `None` if it is no pipe and no
    /// socket.
    ///
    /// O_NONBLOCK belongs to the open file, which the parent and whoever else inherited it use, too: set
    /// there, their writes would fail. So the pipe is opened anew. Where that is refused (a pipe of
    /// another user, no /proc) or makes no sense (a socket), the file is asked before each write, which
    /// then is as short as is certain not to wait.
    ///
    /// # Errors
    /// What fstat(2) reports.
    pub fn inherited(file: File) -> io::Result<Option<Self>> {
        let kind = file.metadata()?.file_type();
        if !kind.is_fifo() && !kind.is_socket() {
            return Ok(None);
        }
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        match Self::to_write(Path::new(&path)) {
            Ok(Some(anew)) => Ok(Some(anew)),
            // Also if its reader has gone: the first write says so.
            Ok(None) | Err(_) => Ok(Some(Self::shared(file, kind.is_fifo()))),
        }
    }

    fn shared(file: File, is_fifo: bool) -> Self {
        Self { file: Arc::new(file), is_fifo, is_shared: true }
    }

    /// Sleeps until there may be something to read, or no writer any more; at most `timeout`, and less
    /// if a signal comes.
    ///
    /// # Errors
    /// What poll(2) reports.
    pub fn wait_readable(&self, timeout: Duration) -> io::Result<()> {
        self.poll(PollFlags::IN, timeout).map(drop)
    }

    /// Sleeps until something may be written, or there is no reader any more; at most `timeout`, and less
    /// if a signal comes.
    ///
    /// # Errors
    /// What poll(2) reports.
    pub fn wait_writable(&self, timeout: Duration) -> io::Result<()> {
        self.poll(PollFlags::OUT, timeout).map(drop)
    }

    fn poll(&self, events: PollFlags, timeout: Duration) -> io::Result<PollFlags> {
        let mut waiting = [PollFd::from_borrowed_fd(self.file.as_fd(), events)];
        let limit = Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(timeout.subsec_nanos()),
        };
        match rustix::event::poll(&mut waiting, Some(&limit)) {
            Ok(_) => Ok(waiting[0].revents()),
            Err(rustix::io::Errno::INTR) => Ok(PollFlags::empty()),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl Read for Pipe {
    /// 0 only once all writers have gone.
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = (&*self.file).read(bytes)?;
            if count > 0 || !self.is_fifo || bytes.is_empty() {
                return Ok(count);
            }
            // A pipe without a writer reads as ended, also before the first one came (fifo(7));
            // poll(2) knows which.
            let seen = self.poll(PollFlags::IN, Duration::ZERO)?;
            if seen.contains(PollFlags::IN) {
                continue;
            }
            let ended = seen.contains(PollFlags::HUP);
            return if ended { Ok(0) } else { Err(ErrorKind::WouldBlock.into()) };
        }
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_shared {
            return (&*self.file).write(bytes);
        }
        if self.poll(PollFlags::OUT, Duration::ZERO)?.is_empty() {
            return Err(ErrorKind::WouldBlock.into());
        }
        (&*self.file).write(bytes.get(..BYTES_AT_ONCE).unwrap_or(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, Mode, OFlags};

    fn fifo(directory: &tempfile::TempDir) -> std::path::PathBuf {
        let path = directory.path().join("fifo");
        rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        path
    }

    fn blocks<T: std::fmt::Debug>(outcome: io::Result<T>) -> bool {
        outcome.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }

    #[test]
    fn a_pipe_ends_with_its_writers_and_not_before_the_first() {
        let directory = tempfile::tempdir().unwrap();
        let path = fifo(&directory);
        let mut reader = Pipe::to_read(&path).unwrap().unwrap();
        let mut bytes = [0; 8];
        assert!(blocks(reader.read(&mut bytes)));
        let mut writer = Pipe::to_write(&path).unwrap().unwrap();
        assert!(blocks(reader.read(&mut bytes)));
        assert_eq!(writer.write(b"abc").unwrap(), 3);
        drop(writer);
        assert_eq!(reader.read(&mut bytes).unwrap(), 3);
        assert_eq!(reader.read(&mut bytes).unwrap(), 0);
        // The next writer begins anew, for the same reader, too.
        let mut writer = Pipe::to_write(&path).unwrap().unwrap();
        assert!(blocks(reader.read(&mut bytes)));
        assert_eq!(writer.write(b"d").unwrap(), 1);
        reader.wait_readable(Duration::from_secs(60)).unwrap();
        assert_eq!(reader.read(&mut bytes).unwrap(), 1);
    }

    #[test]
    fn a_pipe_without_a_reader_cannot_be_opened_yet() {
        let directory = tempfile::tempdir().unwrap();
        let path = fifo(&directory);
        assert!(blocks(Pipe::to_write(&path)));
        let mut reader = Pipe::to_read(&path).unwrap().unwrap();
        let mut writer = Pipe::to_write(&path).unwrap().unwrap();
        let mut written = 0;
        let full = loop {
            match writer.write(&[7; 10_000]) {
                Ok(count) => written += count,
                full => break full,
            }
        };
        assert!(blocks(full) && written > 0);
        let mut bytes = vec![0; written];
        assert_eq!(reader.read(&mut bytes).unwrap(), written);
        writer.wait_writable(Duration::from_secs(60)).unwrap();
        assert_eq!(writer.write(b"x").unwrap(), 1);
        drop(reader);
        assert_eq!(writer.write(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
    }

    #[test]
    fn files_are_no_pipes() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(Pipe::to_read(file.path()).unwrap().is_none());
        assert!(Pipe::to_write(file.path()).unwrap().is_none());
        assert!(Pipe::to_read(Path::new("/nosuch")).unwrap().is_none());
        assert!(Pipe::inherited(file.into_file()).unwrap().is_none());
    }

    #[test]
    fn an_inherited_pipe_keeps_its_flags_and_never_waits() {
        // What is written by way of `make` until it would wait is what comes out.
        let check = |file: File, make: &dyn Fn(File) -> Pipe, mut reader: File| {
            let before = rustix::fs::fcntl_getfl(&file).unwrap();
            let mut pipe = make(file.try_clone().unwrap());
            let mut written = 0;
            while let Ok(count) = pipe.write(&[7; 10_000]) {
                written += count;
            }
            assert!(written >= BYTES_AT_ONCE, "{written}");
            assert_eq!(rustix::fs::fcntl_getfl(&file).unwrap(), before);
            assert!(!before.contains(OFlags::NONBLOCK));
            drop((file, pipe));
            let mut bytes = Vec::new();
            assert_eq!(reader.read_to_end(&mut bytes).unwrap(), written);
        };
        let inherited = |file| Pipe::inherited(file).unwrap().unwrap();
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        check(writer.into(), &inherited, reader.into());
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        check(writer.into(), &|file| Pipe::shared(file, true), reader.into());
        let (reader, writer) = std::os::unix::net::UnixStream::pair().unwrap();
        let file =
            |socket: std::os::unix::net::UnixStream| File::from(std::os::fd::OwnedFd::from(socket));
        check(file(writer), &inherited, file(reader));
    }
}
