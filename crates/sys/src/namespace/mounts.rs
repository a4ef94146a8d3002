//! Mounts that only one thread sees (mount_namespaces(7)).

use std::ffi::CString;
use std::io;
use std::path::Path;

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::UnshareFlags;

use crate::{Error, Kind, Result};

/// Puts an empty file system in memory (tmpfs(5)) of `bytes` bytes onto `directory`, seen by the
/// calling thread and those that it starts from then on, and by nobody else.
///
/// The thread keeps a mount namespace of its own until it ends; the file system goes with the last
/// such thread. Works in the user namespace of [`super::enter_user_namespace`] too.
///
/// # Errors
/// [`Kind::Permission`] without `CAP_SYS_ADMIN`, or where a sandbox forbids mounts; what mount(2)
/// reports about `directory`.
pub fn mount_memory(directory: &Path, bytes: u64) -> Result<()> {
    let mounted = || -> io::Result<()> {
        let options = CString::new(format!("size={bytes}"))?;
        leave_mounts()?;
        // Otherwise the mount would spread to where this namespace was copied from.
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        mount("tmpfs", directory, "tmpfs", flags, options.as_c_str())?;
        Ok(())
    };
    mounted().map_err(|source| {
        let action = format!("mounting a file system in memory on {}", directory.display());
        let error = Error::new(action, source);
        match error.kind() {
            Kind::Permission => error.remedy("run as root, or where mounts are allowed"),
            _ => error,
        }
    })
}

/// Gives the calling thread a copy of the mounts, which it can change alone.
pub(super) fn leave_mounts() -> io::Result<()> {
    // SAFETY: only CLONE_FILES makes unshare(2) unsound for others; mounts, root and working
    // directory, which CLONE_NEWNS takes along, become private to the calling thread.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }.map_err(io::Error::from)
}
