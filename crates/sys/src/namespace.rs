//! Network namespaces that exist only as long as somebody holds them.
//!
//! A network namespace is a network of its own: interfaces, addresses, routes, sockets, counters
//! (network_namespaces(7)). The ones made here are *anonymous*: no name under `/run/netns`, only a
//! file descriptor. The kernel removes them, with every interface in them, when the last
//! descriptor, socket and thread that refers to them is gone, so nothing remains of a process
//! that was killed.
//!
//! Limits: IPv6 is switched off in new namespaces, since the kernel would send frames of its own
//! (router solicitations, multicast reports), which spoil exact counts. Making a namespace and
//! entering another one need `CAP_SYS_ADMIN`; [`enter_user_namespace`] gives it to ordinary users.

mod mounts;
mod rights;
mod sysfs;
mod user;

pub use mounts::mount_memory;
pub use rights::Rights;
pub use sysfs::Sysfs;
pub use user::{check_user_namespace, enter_user_namespace, user_namespaces_refused};

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::thread;

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

use crate::link::Links;
use crate::{Error, Kind, Result};

/// The network namespace of the thread that opens it (proc(5)).
const OWN: &str = "/proc/thread-self/ns/net";
/// `NS_GET_NSTYPE` of linux/nsfs.h, `_IO(0xb7, 3)`; ioctl_ns(2).
const NS_GET_NSTYPE: libc::Ioctl = 0xb703;

/// A network namespace, kept alive by a file descriptor.
#[derive(Debug)]
pub struct Namespace {
    file: OwnedFd,
    identity: (u64, u64),
}

impl Namespace {
    /// Makes a new, empty namespace with its loopback up and IPv6 off.
    ///
    /// The calling thread stays where it is.
    ///
    /// # Errors
    /// [`Kind::Permission`] without `CAP_SYS_ADMIN`; [`Kind::Limit`] when `user.max_net_namespaces` is
    /// reached; what the kernel reports when `/proc/sys` cannot be written.
    pub fn create() -> Result<Self> {
        in_thread("making a network namespace", || {
            // SAFETY: only CLONE_FILES makes unshare(2) unsound for others; a new network
            // namespace for this short-lived thread takes nothing away from any other thread.
            unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }.map_err(refused)?;
            quieten()?;
            Self::current()
        })?
    }

    /// The namespace in which the calling thread is.
    ///
    /// # Errors
    /// What open(2) reports when `/proc` is not mounted.
    pub fn current() -> Result<Self> {
        Self::open(OWN)
    }

    /// Opens a namespace that has a name, for example `/run/netns/blue`, as made by `ip netns`,
    /// or `/proc/PID/ns/net`.
    ///
    /// # Errors
    /// What open(2) reports; [`Kind::Invalid`] when the file is not a network namespace.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let failed = |source| {
            Error::new(format!("opening the network namespace {}", path.display()), source)
        };
        let file = fs::File::open(path).map_err(failed)?;
        // SAFETY: this request takes no argument and only reads kernel state; on files that are
        // not of nsfs it fails with ENOTTY.
        let kind = unsafe { libc::ioctl(file.as_raw_fd(), NS_GET_NSTYPE) };
        if kind != libc::CLONE_NEWNET {
            return Err(failed(io::Error::from_raw_os_error(libc::EINVAL)).remedy(
                "give the path of a network namespace, such as /run/netns/NAME or \
                 /proc/PID/ns/net",
            ));
        }
        Self::from_file(file.into()).map_err(failed)
    }

    fn from_file(file: OwnedFd) -> io::Result<Self> {
        let status = rustix::fs::fstat(&file)?;
        Ok(Self { identity: (status.st_dev, status.st_ino), file })
    }

    /// A second descriptor of the same namespace.
    ///
    /// # Errors
    /// [`Kind::Limit`] when the process has no descriptor left.
    pub fn try_clone(&self) -> Result<Self> {
        let file = self
            .file
            .try_clone()
            .map_err(|source| Error::new("duplicating a namespace descriptor", source))?;
        Ok(Self { file, identity: self.identity })
    }

    /// The number under which `lsns` and `readlink /proc/PID/ns/net` show it.
    pub fn inode(&self) -> u64 {
        self.identity.1
    }

    /// Whether the calling thread is in this namespace.
    pub fn is_current(&self) -> bool {
        Self::current().is_ok_and(|current| current == *self)
    }

    /// Runs `action` inside the namespace and returns what it returns.
    ///
    /// It runs in a thread made for it, which ends afterwards; sockets opened there belong to the
    /// namespace for good. When the calling thread is in the namespace already, `action` simply
    /// runs, which needs no right. A panic in `action` continues in the caller.
    ///
    /// # Errors
    /// [`Kind::Permission`] without `CAP_SYS_ADMIN`; what thread creation reports.
    pub fn run<R: Send>(&self, action: impl FnOnce() -> R + Send) -> Result<R> {
        if self.is_current() {
            return Ok(action());
        }
        in_thread("entering a network namespace", || {
            self.enter()?;
            Ok(action())
        })?
    }

    /// Moves the calling thread, and no other, into the namespace for good.
    ///
    /// # Errors
    /// [`Kind::Permission`] without `CAP_SYS_ADMIN` here and in the namespace's user namespace.
    pub fn enter(&self) -> Result<()> {
        move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network)).map_err(
            |source| {
                let error = Error::new("entering a network namespace", source);
                match error.kind() {
                    Kind::Permission => error.remedy(
                        "run as root, or as the owner of the user namespace that it belongs to",
                    ),
                    _ => error,
                }
            },
        )
    }
}

impl PartialEq for Namespace {
    /// Two descriptors are equal when they refer to the same namespace.
    fn eq(&self, other: &Self) -> bool {
        self.identity == other.identity
    }
}

impl Eq for Namespace {}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Runs `work` in a fresh thread and waits for it.
fn in_thread<R: Send>(action: &str, work: impl FnOnce() -> R + Send) -> Result<R> {
    thread::scope(|scope| {
        let helper = thread::Builder::new()
            .name("namespace".into())
            .spawn_scoped(scope, work)
            .map_err(|source| Error::of_thread(action, source))?;
        helper.join().or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn refused(source: rustix::io::Errno) -> Error {
    let error = Error::new("making a network namespace", source);
    match source {
        rustix::io::Errno::PERM => error.remedy(
            "run as root, or let the program enter a user namespace first, which makes it root \
             over networks of its own",
        ),
        rustix::io::Errno::NOSPC => {
            error.remedy("raise the limit: sysctl user.max_net_namespaces").with_kind(Kind::Limit)
        }
        _ => error,
    }
}

/// Makes the namespace of the calling thread silent and its loopback usable.
fn quieten() -> Result<()> {
    for scope in ["all", "default"] {
        // These files show the network namespace of the thread that opens them
        // (proc_sys_lookup and net_ctl_root in net/sysctl_net.c).
        let path = format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6");
        match fs::write(&path, "1") {
            Ok(()) => {}
            // A kernel without IPv6 is silent already.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(Error::new(format!("switching IPv6 off by {path}"), error)
                    .remedy("make /proc/sys writable in this container"));
            }
        }
    }
    Links::current()?.set_up("lo", true)
}
