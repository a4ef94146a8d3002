//! One error for everything that the kernel or the machine refuses.

use std::fmt;
use std::io;

use crate::Limit;

/// What kind of thing went wrong, so that callers can choose an exit code and
/// decide whether to wait, fall back or stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The named interface, file, directory or namespace does not exist.
    NotFound,
    /// A right is missing (capability, file mode, sandbox).
    Permission,
    /// The interface exists but is down or went away.
    Down,
    /// The disk, the file system or a quota is full.
    NoSpace,
    /// The file system is mounted read-only.
    ReadOnly,
    /// The process or the machine gives no more open files, memory or threads ([`Limit`]).
    Limit,
    /// This kernel, driver or file system cannot do it.
    Unsupported,
    /// Somebody else holds it.
    Busy,
    /// The request itself makes no sense to the kernel (sizes, ranges, names).
    Invalid,
    /// Anything else; the source error says what.
    Other,
}

/// A failed action: what was being done, to what, what the kernel said and what helps.
#[derive(Debug)]
pub struct Error {
    action: String,
    remedy: Option<String>,
    kind: Kind,
    source: io::Error,
}

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// `action` is a gerund with its object: `binding a packet socket to eth0`.
    pub fn new(action: impl Into<String>, source: impl Into<io::Error>) -> Self {
        let source = source.into();
        let error = Self { action: action.into(), remedy: None, kind: kind_of(&source), source };
        match Limit::met(&error.source) {
            Some(limit) => error.limited(limit),
            None => error,
        }
    }

    /// A thread or a process could not be started: here `EAGAIN` means a limit (pthread_create(3),
    /// fork(2)).
    pub fn of_thread(action: impl Into<String>, source: io::Error) -> Self {
        let error = Self::new(action, source);
        match error.errno() {
            Some(libc::EAGAIN | libc::ENOMEM) => error.limited(Limit::Threads),
            _ => error,
        }
    }

    /// The error of the last system call that went through `libc`.
    pub fn last(action: impl Into<String>) -> Self {
        Self::new(action, io::Error::last_os_error())
    }

    /// Adds what the user can do about it, as an imperative sentence without a full stop. Where a
    /// limit was met, what helps against that stays.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        if self.kind != Kind::Limit {
            self.remedy = Some(remedy.into());
        }
        self
    }

    /// Says that this limit is the cause, with what helps against it.
    #[must_use]
    pub fn limited(mut self, limit: Limit) -> Self {
        self.kind = Kind::Limit;
        self.remedy = Some(limit.remedy().to_owned());
        self
    }

    /// Overrides the kind derived from the error number.
    #[must_use]
    pub fn with_kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    /// What kind of failure this is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The kernel's error number, if there was one.
    pub fn errno(&self) -> Option<i32> {
        self.source.raw_os_error()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.action, self.source)?;
        match &self.remedy {
            Some(remedy) => write!(f, "; {remedy}"),
            None => Ok(()),
        }
    }
}

/// Without `source()`: the text says what the kernel said, and whoever prints a chain of causes would
/// say it again.
impl std::error::Error for Error {}

fn kind_of(source: &io::Error) -> Kind {
    match source.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => Kind::NotFound,
        Some(libc::EPERM | libc::EACCES) => Kind::Permission,
        Some(libc::EROFS) => Kind::ReadOnly,
        Some(libc::ENETDOWN) => Kind::Down,
        Some(libc::ENOSPC | libc::EDQUOT) => Kind::NoSpace,
        Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EPROTONOSUPPORT | libc::ENOPROTOOPT) => {
            Kind::Unsupported
        }
        Some(libc::EBUSY | libc::EEXIST) => Kind::Busy,
        Some(libc::EINVAL | libc::ERANGE | libc::EMSGSIZE) => Kind::Invalid,
        _ => Kind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_thing_the_action_and_the_remedy() {
        let error = Error::new(
            "opening a packet socket on eth7",
            io::Error::from_raw_os_error(libc::EPERM),
        )
        .remedy("run as root or give the program CAP_NET_RAW");
        assert_eq!(error.kind(), Kind::Permission);
        let text = error.to_string();
        assert!(text.starts_with("opening a packet socket on eth7: "), "{text}");
        assert!(text.ends_with("; run as root or give the program CAP_NET_RAW"), "{text}");
    }

    #[test]
    fn full_disks_and_missing_interfaces_are_told_apart() {
        let kind = |number| Error::new("x", io::Error::from_raw_os_error(number)).kind();
        assert_eq!(kind(libc::ENOSPC), Kind::NoSpace);
        assert_eq!(kind(libc::ENODEV), Kind::NotFound);
        assert_eq!(kind(libc::ENETDOWN), Kind::Down);
    }

    #[test]
    fn a_limit_is_named_whatever_else_would_help() {
        let error = |number| io::Error::from_raw_os_error(number);
        let files = Error::new("opening x", error(libc::EMFILE)).remedy("choose another name");
        assert_eq!(files.kind(), Kind::Limit);
        assert!(files.to_string().ends_with("(ulimit -n)"), "{files}");
        for number in [libc::EAGAIN, libc::ENOMEM] {
            let thread = Error::of_thread("starting a thread", error(number));
            assert_eq!(thread.kind(), Kind::Limit);
            assert!(thread.to_string().contains("ulimit -u"), "{thread}");
        }
        assert_eq!(Error::new("reading x", error(libc::EAGAIN)).kind(), Kind::Other);
    }
}
