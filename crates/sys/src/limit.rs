//! Limits that a process meets: open files, memory, threads (getrlimit(2), cgroups(7)).

use std::io;

/// What the process or the machine gave no more of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Limit {
    /// Files that this process has open (`RLIMIT_NOFILE`).
    OpenFiles,
    /// Files that all processes of the machine have open.
    MachineFiles,
    /// Memory, or addresses for it (`RLIMIT_AS`).
    Memory,
    /// Memory that may not be paged out (`RLIMIT_MEMLOCK`).
    LockedMemory,
    /// Threads and processes (`RLIMIT_NPROC`), or memory for their stacks.
    Threads,
}

impl Limit {
    /// The limit that a call met, if its error says so. `EAGAIN` does so only where a thread or a
    /// process is started: [`crate::Error::of_thread`].
    pub fn met(error: &io::Error) -> Option<Self> {
        match error.raw_os_error() {
            Some(libc::EMFILE) => Some(Self::OpenFiles),
            Some(libc::ENFILE) => Some(Self::MachineFiles),
            Some(libc::ENOMEM) => Some(Self::Memory),
            Some(_) => None,
            // The standard library had no memory for what was to be read.
            None => (error.kind() == io::ErrorKind::OutOfMemory).then_some(Self::Memory),
        }
    }

    /// What helps, as an imperative sentence without a full stop.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::OpenFiles => "raise the limit of open files (ulimit -n)",
            Self::MachineFiles => {
                "end programs that have many files open, or raise the machine's limit of open files \
                 (sysctl fs.file-max)"
            }
            Self::Memory => {
                "ask for less memory (smaller rings, a smaller pool), free some, or raise the limit of \
                 memory (ulimit -v, ulimit -l, that of the container)"
            }
            Self::LockedMemory => {
                "raise the limit of locked memory (ulimit -l), ask for less (a smaller ring), or give the \
                 program the right to go beyond it (setcap cap_ipc_lock+ep PROGRAM)"
            }
            Self::Threads => {
                "raise the limit of threads (ulimit -u, pids.max of the container) or that of memory \
                 for their stacks (ulimit -v)"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_told_by_their_errors() {
        let met = |number| Limit::met(&io::Error::from_raw_os_error(number));
        assert_eq!(met(libc::EMFILE), Some(Limit::OpenFiles));
        assert_eq!(met(libc::ENFILE), Some(Limit::MachineFiles));
        assert_eq!(met(libc::ENOMEM), Some(Limit::Memory));
        assert_eq!(met(libc::EAGAIN), None);
        assert_eq!(Limit::met(&io::ErrorKind::OutOfMemory.into()), Some(Limit::Memory));
        assert_eq!(Limit::met(&io::ErrorKind::NotFound.into()), None);
    }
}
