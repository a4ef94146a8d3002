//! A file that is written past the page cache, where its file system can.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FallocateFlags, OFlags, StatxFlags};
use rustix::io::{Errno, retry_on_intr};

use crate::{Error, Result};

/// Alignment of memory and offsets where the kernel does not say: the largest block in common use.
const ALIGNMENT_ASSUMED_BYTES: u32 = 4096;

/// How the file's writes reach the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// `O_DIRECT`: from the caller's memory to the device.
    Direct {
        /// Whether the kernel stated the alignment (statx(2) `STATX_DIOALIGN`, Linux 6.1); if not,
        /// 4096 bytes are assumed. File systems in memory (tmpfs) do not state one: they accept
        /// the flag and copy all the same.
        alignment_stated: bool,
    },
    /// Through the page cache, since direct I/O was refused.
    Buffered {
        /// What refused it.
        reason: String,
    },
}

/// What [`DirectFile::preallocate`] could do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Preallocation {
    /// The blocks are reserved: writes within the size cannot run out of space.
    Reserved,
    /// Only the size is set; the blocks are found at each write, which can run out of space.
    Sparse {
        /// Why no blocks could be reserved.
        reason: String,
    },
}

/// An open file for aligned writes at given offsets, with its path for messages.
#[derive(Debug)]
pub struct DirectFile {
    file: File,
    path: PathBuf,
    mode: Mode,
    memory_alignment_bytes: u32,
    offset_alignment_bytes: u32,
}

impl DirectFile {
    /// Makes a new file, readable and writable by its owner and readable by its group.
    ///
    /// # Errors
    /// [`Kind::Busy`](crate::Kind::Busy) when the path exists (nothing is ever overwritten), and
    /// what open(2) reports otherwise.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o640);
        let file = options.open(path).map_err(|source| {
            let exists = source.raw_os_error() == Some(libc::EEXIST);
            let error = Error::new(format!("creating {}", path.display()), source);
            if exists { error.remedy("choose another name, or remove the old file") } else { error }
        })?;
        Self::from_file(file, path)
    }

    /// Opens an existing file for overwriting; its length and contents stay as they are.
    ///
    /// # Errors
    /// What open(2) reports.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file =
            OpenOptions::new().read(true).write(true).open(path).map_err(|source| {
                Error::new(format!("opening {} to write", path.display()), source)
            })?;
        Self::from_file(file, path)
    }

    fn from_file(file: File, path: &Path) -> Result<Self> {
        let stated = stated_alignment(&file);
        let (mode, memory, offset) = match stated {
            Some((_, 0) | (0, _)) => {
                let reason = "the file system states no alignment for direct I/O".to_owned();
                (Mode::Buffered { reason }, 1, 1)
            }
            // The flag is set on the open file instead of by open(2): a file system that refuses
            // it there has already made the file.
            _ => match set_direct(&file) {
                Ok(()) => {
                    let assumed = (ALIGNMENT_ASSUMED_BYTES, ALIGNMENT_ASSUMED_BYTES);
                    let (memory, offset) = stated.unwrap_or(assumed);
                    (Mode::Direct { alignment_stated: stated.is_some() }, memory, offset)
                }
                Err(errno) if errno == Errno::INVAL || errno == Errno::OPNOTSUPP => {
                    let reason = format!("O_DIRECT was refused: {errno}");
                    (Mode::Buffered { reason }, 1, 1)
                }
                Err(errno) => {
                    let action = format!("switching {} to direct I/O", path.display());
                    return Err(Error::new(action, errno));
                }
            },
        };
        Ok(Self {
            file,
            path: path.to_owned(),
            mode,
            memory_alignment_bytes: memory,
            offset_alignment_bytes: offset,
        })
    }

    /// Where the file was opened; the name may have changed since.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether writes go past the page cache.
    pub fn mode(&self) -> &Mode {
        &self.mode
    }

    /// What the address of a written buffer must be a multiple of: 1 when buffered.
    pub fn memory_alignment_bytes(&self) -> u32 {
        self.memory_alignment_bytes
    }

    /// What offsets and lengths of writes must be multiples of: 1 when buffered.
    pub fn offset_alignment_bytes(&self) -> u32 {
        self.offset_alignment_bytes
    }

    /// The open file. Reading through it follows the same alignment rules.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Whether it has no name any more: its content is gone with this handle.
    pub fn is_removed(&self) -> bool {
        self.file.metadata().is_ok_and(|metadata| metadata.nlink() == 0)
    }

    /// Whether it has less than `bytes` bytes.
    pub fn is_shorter_than(&self, bytes: u64) -> bool {
        self.size_bytes().is_ok_and(|size| size < bytes)
    }

    /// The present size in bytes.
    ///
    /// # Errors
    /// What fstat(2) reports.
    pub fn size_bytes(&self) -> Result<u64> {
        self.file
            .metadata()
            .map(|metadata| metadata.len())
            .map_err(|source| self.failed("reading the size of", source))
    }

    /// Reserves the blocks of the first `bytes` bytes and makes the file at least that large, so
    /// that later writes neither extend it nor look for space (fallocate(2)).
    ///
    /// # Errors
    /// [`Kind::NoSpace`](crate::Kind::NoSpace) when the disk or quota is full: the file is then as
    /// large as before. `EFBIG` beyond the largest file size. A file system without reservation is
    /// no error: the size alone is set.
    pub fn preallocate(&self, bytes: u64) -> Result<Preallocation> {
        let before_bytes = self.size_bytes()?;
        let reserve = || rustix::fs::fallocate(&self.file, FallocateFlags::empty(), 0, bytes);
        match retry_on_intr(reserve) {
            Ok(()) => Ok(Preallocation::Reserved),
            Err(errno @ (Errno::OPNOTSUPP | Errno::NOSYS)) => {
                if bytes > before_bytes {
                    self.truncate(bytes)?;
                }
                let reason = format!("the file system cannot reserve space: {errno}");
                Ok(Preallocation::Sparse { reason })
            }
            Err(errno) => {
                // Some file systems keep what they reserved before they ran out.
                if self.size_bytes()? > before_bytes {
                    self.truncate(before_bytes)?;
                }
                Err(self.failed(&format!("reserving {bytes} bytes for"), errno.into()))
            }
        }
    }

    /// Sets the size in bytes: cuts the tail off, or adds a hole.
    ///
    /// # Errors
    /// What ftruncate(2) reports.
    pub fn truncate(&self, bytes: u64) -> Result<()> {
        let action = "setting the size of";
        self.file.set_len(bytes).map_err(|source| self.failed(action, source))
    }

    /// Waits until what has been written would survive a loss of power (fdatasync(2)).
    ///
    /// # Errors
    /// What fdatasync(2) reports: `EIO` means that some earlier write is lost.
    pub fn sync_data(&self) -> Result<()> {
        self.file.sync_data().map_err(|source| self.failed("flushing", source))
    }

    pub(super) fn failed(&self, action: &str, source: io::Error) -> Error {
        let full = matches!(source.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT));
        let error = Error::new(format!("{action} {}", self.path.display()), source);
        if full { error.remedy("free some space, or write to another disk") } else { error }
    }
}

/// Memory and offset alignment as the kernel states them: zero where direct I/O is impossible,
/// `None` where it does not say.
fn stated_alignment(file: &File) -> Option<(u32, u32)> {
    let stat = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    StatxFlags::from_bits_retain(stat.stx_mask)
        .contains(StatxFlags::DIOALIGN)
        .then_some((stat.stx_dio_mem_align, stat.stx_dio_offset_align))
}

fn set_direct(file: &File) -> Result<(), Errno> {
    let flags = rustix::fs::fcntl_getfl(file)?;
    rustix::fs::fcntl_setfl(file, flags | OFlags::DIRECT)
}
