//! The file system that a directory lies on: its kind, where it is mounted, what room it has.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// All mounts that this process sees (proc(5)).
const MOUNTS: &str = "/proc/self/mountinfo";

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSystem {
    /// Its kind, as in mount(8): `ext4`, `xfs`, `tmpfs`, `nfs4`, …
    pub kind: String,
    /// What is mounted: a device, a remote path, or a word.
    pub source: String,
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// All blocks, in bytes.
    pub size_bytes: u64,
    /// Free blocks that this process may use, in bytes.
    pub free_bytes: u64,
    /// Whether it is mounted for reading only.
    pub is_read_only: bool,
}

impl FileSystem {
    /// The file system on which the existing `path` lies.
    ///
    /// # Errors
    /// [`crate::Kind::NotFound`] when nothing has that path; what statvfs(2) reports.
    pub fn of(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let action = || format!("looking up the file system of {}", path.display());
        let failed = |source: io::Error| Error::new(action(), source);
        let real = fs::canonicalize(path).map_err(failed)?;
        let room = rustix::fs::statvfs(&real).map_err(|errno| failed(errno.into()))?;
        let mounts = fs::read_to_string(MOUNTS).map_err(failed)?;
        let mount = mount_of(&mounts, &real)
            .ok_or_else(|| failed(io::Error::from(io::ErrorKind::InvalidData)))?;
        Ok(Self {
            kind: mount.kind,
            source: mount.source,
            mount_point: mount.point,
            size_bytes: room.f_blocks.saturating_mul(room.f_frsize),
            free_bytes: room.f_bavail.saturating_mul(room.f_frsize),
            is_read_only: room.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY),
        })
    }

    /// Whether what is written stays in memory and is gone after a restart.
    pub fn is_in_memory(&self) -> bool {
        matches!(self.kind.as_str(), "tmpfs" | "ramfs" | "devtmpfs" | "rootfs")
    }

    /// Whether writes cross a network or another program.
    pub fn is_remote(&self) -> bool {
        let kind = self.kind.as_str();
        matches!(kind, "nfs" | "nfs4" | "cifs" | "smb3" | "ceph" | "9p" | "virtiofs" | "afs")
            || kind == "fuse"
            || kind.starts_with("fuse.")
    }
}

struct Mount {
    kind: String,
    source: String,
    point: PathBuf,
}

/// The mount with the longest mount point above `path`; of several at one place the last, which
/// hides the others.
fn mount_of(mounts: &str, path: &Path) -> Option<Mount> {
    let mut found: Option<Mount> = None;
    for mount in mounts.lines().filter_map(parse) {
        let deeper = found.as_ref().is_none_or(|found| {
            mount.point.components().count() >= found.point.components().count()
        });
        if path.starts_with(&mount.point) && deeper {
            found = Some(mount);
        }
    }
    found
}

/// `ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [FIELD…] - KIND SOURCE OPTIONS`.
fn parse(line: &str) -> Option<Mount> {
    let (left, right) = line.split_once(" - ")?;
    let point = PathBuf::from(OsString::from_vec(unescaped(left.split(' ').nth(4)?)));
    let mut fields = right.split(' ');
    let kind = fields.next()?.to_owned();
    let source = String::from_utf8_lossy(&unescaped(fields.next()?)).into_owned();
    Some(Mount { kind, source, point })
}

/// Blanks and backslashes are written as three octal digits.
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) if first == b'\\' => {
                bytes.push(byte);
                rest = after.get(3..).unwrap_or_default();
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = "\
21 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
30 21 0:20 / /data rw - xfs /dev/sdb rw\n\
31 30 0:21 / /data/my\\040disk rw,nosuid master:2 propagate_from:1 - tmpfs none rw\n\
32 30 0:22 / /data rw - nfs4 host:/export rw\n";

    #[test]
    fn the_deepest_and_last_mount_counts() {
        let kind = |path: &str| mount_of(LINES, Path::new(path)).unwrap().kind;
        assert_eq!(kind("/etc"), "ext4");
        assert_eq!(kind("/database"), "ext4");
        assert_eq!(kind("/data/x"), "nfs4");
        assert_eq!(kind("/data/my disk/x"), "tmpfs");
    }

    #[test]
    fn a_directory_of_this_machine_has_room() {
        let directory = tempfile::tempdir().unwrap();
        let found = FileSystem::of(directory.path()).unwrap();
        assert!(directory.path().canonicalize().unwrap().starts_with(&found.mount_point));
        assert!(
            found.size_bytes > 0 && found.free_bytes <= found.size_bytes && !found.is_read_only
        );
        let proc = FileSystem::of("/proc/self").unwrap();
        assert_eq!(proc.kind, "proc");
        assert!(FileSystem::of(directory.path().join("none")).is_err());
    }
}
