//! Exit codes: a contract with scripts, listed in `--help` and docs/exit-codes.md.

use std::io;
use std::process::ExitCode;

use engine::Ledger;
use port::{PortError, Reason};
use store::StoreError;
use sys::Limit;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done, and the ledger balances.
    Success = 0,
    /// The run ended early or its ledger does not balance.
    Failure = 1,
    /// The command line makes no sense.
    Usage = 2,
    /// A right is missing.
    Permission = 3,
    /// A port is unknown, down or cannot do what was asked.
    Port = 4,
    /// A directory or disk cannot be written, or not all of it.
    Storage = 5,
    /// A capture is damaged or none; what could be read was used.
    Capture = 6,
    /// The process or the machine gives no more open files, memory or threads.
    Limit = 7,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// The exit code that belongs to an error, found by what lies underneath it.
pub fn of_error(error: &anyhow::Error) -> Exit {
    for cause in error.chain() {
        if let Some(system) = cause.downcast_ref::<sys::Error>() {
            return of_system(system);
        }
        if let Some(store) = cause.downcast_ref::<StoreError>() {
            return of_store(store);
        }
        if let Some(port) = cause.downcast_ref::<PortError>() {
            return of_port(port);
        }
        if let Some(engine) = cause.downcast_ref::<engine::EngineError>() {
            return of_engine(engine);
        }
        if cause.downcast_ref::<io::Error>().and_then(Limit::met).is_some() {
            return Exit::Limit;
        }
        if cause.is::<Usage>() {
            return Exit::Usage;
        }
    }
    Exit::Failure
}

/// The exit code of a run that ended in order. What its disk did not take was asked for and is missing,
/// though the ledger says where it went.
pub fn of_ledger(ledger: &Ledger) -> Exit {
    if !ledger.is_balanced() {
        Exit::Failure
    } else if ledger.lost_to(Reason::Storage) > 0 {
        Exit::Storage
    } else {
        Exit::Success
    }
}

fn of_system(error: &sys::Error) -> Exit {
    match error.kind() {
        sys::Kind::Permission => Exit::Permission,
        sys::Kind::Limit => Exit::Limit,
        sys::Kind::NoSpace | sys::Kind::ReadOnly => Exit::Storage,
        _ => Exit::Port,
    }
}

fn of_store(error: &StoreError) -> Exit {
    match error {
        _ if error.is_limit() => Exit::Limit,
        _ if error.io_kind() == Some(io::ErrorKind::PermissionDenied) => Exit::Permission,
        StoreError::System(system) if system.kind() == sys::Kind::Permission => Exit::Permission,
        StoreError::System(_)
        | StoreError::Directory { .. }
        | StoreError::Locked { .. }
        | StoreError::Write { .. }
        | StoreError::Incomplete { .. } => Exit::Storage,
        StoreError::Recording { .. } => Exit::Usage,
        _ => Exit::Capture,
    }
}

fn of_port(error: &PortError) -> Exit {
    match error {
        PortError::Spec { .. } => Exit::Usage,
        PortError::System(system) => of_system(system),
        PortError::File { source, .. } => {
            source.downcast_ref::<StoreError>().map_or(Exit::Capture, of_store)
        }
        _ => Exit::Port,
    }
}

fn of_engine(error: &engine::EngineError) -> Exit {
    match error {
        engine::EngineError::Port(port) => of_port(port),
        engine::EngineError::Store(store) => of_store(store),
        engine::EngineError::System(system) => of_system(system),
        engine::EngineError::Job { .. } => Exit::Usage,
        _ => Exit::Failure,
    }
}

/// An error of the command line that only shows once values are put together.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// The text for `--help`.
pub const HELP: &str = "\
Exit codes:
  0  done, and the ledger balances to the packet
  1  the run ended early, or packets are unexplained
  2  the command line makes no sense
  3  a right is missing (CAP_NET_RAW, CAP_NET_ADMIN, file modes)
  4  a port is unknown, down, or cannot do what was asked
  5  a directory or disk cannot be written, or a recording lost packets to it
  6  a capture is damaged or none; what could be read was used
  7  a limit was met: open files (ulimit -n), memory (-v), threads (-u)
  130  a second SIGINT, SIGTERM or SIGHUP ended the program at once";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_follow_the_cause() {
        let denied = sys::Error::new("x", io::Error::from_raw_os_error(1));
        assert_eq!(of_error(&anyhow::Error::new(denied).context("opening")), Exit::Permission);
        let none = StoreError::Empty { name: "x".into() };
        let port = PortError::File { port: "pcap:x".into(), source: Box::new(none) };
        let engine = engine::EngineError::Port(port);
        assert_eq!(of_error(&engine.into()), Exit::Capture);
        let unreadable = || StoreError::Open {
            name: "x".into(),
            source: io::ErrorKind::PermissionDenied.into(),
        };
        assert_eq!(of_error(&unreadable().into()), Exit::Permission);
        let port = PortError::File { port: "pcap:x".into(), source: Box::new(unreadable()) };
        assert_eq!(of_error(&port.into()), Exit::Permission);
        let read_only = sys::Error::new("x", io::Error::from_raw_os_error(30));
        assert_eq!(of_error(&StoreError::System(read_only).into()), Exit::Storage);
        assert_eq!(of_error(&Usage("x".into()).into()), Exit::Usage);
        let open_files = || io::Error::from_raw_os_error(24);
        let opening = || StoreError::Open { name: "x".into(), source: open_files() };
        let port = PortError::File { port: "pcap:x".into(), source: Box::new(opening()) };
        let limits: [anyhow::Error; 4] = [
            open_files().into(),
            sys::Error::new("x", open_files()).into(),
            opening().into(),
            engine::EngineError::Port(port).into(),
        ];
        for limit in limits {
            assert_eq!(of_error(&limit), Exit::Limit, "{limit}");
        }
        let thread = sys::Error::of_thread("x", io::Error::from_raw_os_error(11));
        assert_eq!(of_error(&StoreError::System(thread).into()), Exit::Limit);
        assert_eq!(of_error(&anyhow::anyhow!("x")), Exit::Failure);
    }
}
