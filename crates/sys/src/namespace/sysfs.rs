//! The sysfs of one network namespace, mounted nowhere.
//!
//! `/sys/class/net` shows the interfaces of the namespace from which that sysfs was mounted, which
//! is seldom the one that is meant. Here a fresh sysfs is made inside the namespace and kept as a
//! descriptor (fsopen(2), fsmount(2), Linux 5.2); no other process sees it, and it vanishes with
//! the descriptor.
//!
//! Limit: some settings ask for rights over the machine and stay closed in a user namespace.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::fs::{Mode, OFlags};

use super::mounts::leave_mounts;
use super::{Namespace, in_thread};
use crate::link::{Link, Links};
use crate::{Error, Kind, Result};

// Constants of linux/mount.h.
const FSOPEN_CLOEXEC: libc::c_uint = 1;
const FSCONFIG_CMD_CREATE: libc::c_uint = 6;
const FSMOUNT_CLOEXEC: libc::c_uint = 1;
const MOUNT_ATTR_NOSUID: libc::c_uint = 2;
const MOUNT_ATTR_NODEV: libc::c_uint = 4;
const MOUNT_ATTR_NOEXEC: libc::c_uint = 8;

/// A private view of `/sys` with the interfaces of one namespace.
#[derive(Debug)]
pub struct Sysfs {
    root: OwnedFd,
}

impl Sysfs {
    /// Mounts the sysfs of `namespace`.
    ///
    /// # Errors
    /// [`Kind::Permission`] without `CAP_SYS_ADMIN` over the namespace, or in a container that
    /// hides parts of its own `/sys`; [`Kind::Unsupported`] before Linux 5.2.
    pub fn of(namespace: &Namespace) -> Result<Self> {
        const ACTION: &str = "mounting the sysfs of a network namespace";
        // Always in a thread of its own, since the mount namespace may have to change.
        in_thread(ACTION, || {
            if !namespace.is_current() {
                namespace.enter()?;
            }
            let first = mount();
            let mounted = match &first {
                // In a user namespace the mount namespace still belongs to somebody else.
                Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
                    leave_mounts().and_then(|()| mount())
                }
                _ => first,
            };
            mounted.map(|root| Self { root }).map_err(|source| {
                let error = Error::new(ACTION, source);
                match error.kind() {
                    Kind::Permission => {
                        error.remedy("run as root, or where /sys is whole and mounts are allowed")
                    }
                    Kind::Unsupported => error.remedy("use Linux 5.2 or later"),
                    _ => error,
                }
            })
        })?
    }

    /// The sysfs of `namespace` for reading: mounted as by [`Sysfs::of`], or, where that is not
    /// allowed, the one at `/sys` if it shows the same interfaces.
    ///
    /// # Errors
    /// What [`Sysfs::of`] reports.
    pub fn to_read(namespace: &Namespace) -> Result<Self> {
        Self::of(namespace).or_else(|error| Self::visible(namespace).ok_or(error))
    }

    /// `/sys`, if each interface of the namespace has its number and address there.
    fn visible(namespace: &Namespace) -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open("/sys", flags, Mode::empty()).ok()?;
        let sysfs = Self { root };
        let shows = |link: &Link| {
            let read = |name: &str| sysfs.read(&format!("class/net/{}/{name}", link.name)).ok();
            let address = link.mac.map(|mac| mac.to_string());
            read("ifindex") == Some(link.index.to_string())
                && (address.is_none() || read("address") == address)
        };
        let links = Links::of(namespace).ok()?.list().ok()?;
        links.iter().all(shows).then_some(sysfs)
    }

    /// Reads a file, `path` relative to `/sys`; trailing white space is cut off.
    ///
    /// # Errors
    /// What openat(2) and read(2) report.
    pub fn read(&self, path: &str) -> Result<String> {
        let mut content = String::new();
        self.open(path, OFlags::RDONLY)
            .and_then(|mut file| file.read_to_string(&mut content))
            .map_err(|source| Error::new(format!("reading /sys/{path}"), source))?;
        content.truncate(content.trim_end().len());
        Ok(content)
    }

    /// Writes a file, `path` relative to `/sys`.
    ///
    /// # Errors
    /// What openat(2) and write(2) report; the kernel decides in write(2) about most settings.
    pub fn write(&self, path: &str, content: &str) -> Result<()> {
        self.open(path, OFlags::WRONLY)
            .and_then(|mut file| file.write_all(content.as_bytes()))
            .map_err(|source| Error::new(format!("writing {content} to /sys/{path}"), source))
    }

    /// The names in a folder, `path` relative to `/sys`, sorted.
    ///
    /// # Errors
    /// What openat(2) and getdents(2) report.
    pub fn names(&self, path: &str) -> Result<Vec<String>> {
        let read = || -> io::Result<Vec<String>> {
            let folder = self.open(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
            let mut names = Vec::new();
            for entry in rustix::fs::Dir::read_from(&folder)? {
                let name = entry?.file_name().to_string_lossy().into_owned();
                if name != "." && name != ".." {
                    names.push(name);
                }
            }
            names.sort();
            Ok(names)
        };
        read().map_err(|source| Error::new(format!("listing /sys/{path}"), source))
    }

    fn open(&self, path: &str, flags: OFlags) -> io::Result<File> {
        let file = rustix::fs::openat(&self.root, path, flags | OFlags::CLOEXEC, Mode::empty())?;
        Ok(File::from(file))
    }
}

/// A detached sysfs of the calling thread's network namespace.
fn mount() -> io::Result<OwnedFd> {
    const NAME: &CStr = c"sysfs";
    // SAFETY: fsopen(2) reads a zero-terminated string, which is static.
    let context =
        descriptor(unsafe { libc::syscall(libc::SYS_fsopen, NAME.as_ptr(), FSOPEN_CLOEXEC) })?;
    let none = std::ptr::null::<libc::c_char>();
    // SAFETY: FSCONFIG_CMD_CREATE takes neither key nor value; the descriptor is ours and open.
    let created = unsafe {
        libc::syscall(
            libc::SYS_fsconfig,
            context.as_raw_fd(),
            FSCONFIG_CMD_CREATE,
            none,
            none,
            0 as libc::c_int,
        )
    };
    if created < 0 {
        return Err(io::Error::last_os_error());
    }
    // The attributes are those of /sys everywhere; a user namespace may not have fewer.
    let attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
    // SAFETY: fsmount(2) takes numbers only; the descriptor is ours and open.
    descriptor(unsafe {
        libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), FSMOUNT_CLOEXEC, attributes)
    })
}

fn descriptor(returned: libc::c_long) -> io::Result<OwnedFd> {
    match libc::c_int::try_from(returned) {
        // SAFETY: the system call has just returned this descriptor to us alone.
        Ok(number) if number >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(number) }),
        _ => Err(io::Error::last_os_error()),
    }
}
