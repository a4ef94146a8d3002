//! Threads that somebody else can call back from a long system call.

use std::io;
use std::sync::OnceLock;

use crate::{Error, Result};

/// A signal that nobody misses: by default it is ignored (signal(7)).
const SIGNAL: libc::c_int = libc::SIGURG;

/// A thread whose interruptible system calls end with `EINTR` when it is [interrupted](Self::interrupt).
///
/// Keep it no longer than the thread runs: the kernel gives the number of one that has ended to another.
/// If that is a thread of this process, one of its calls may be cut short; no other process is met.
#[derive(Debug, Clone, Copy)]
pub struct Interruptible {
    process: libc::pid_t,
    thread: libc::pid_t,
}

impl Interruptible {
    /// The calling thread. In this process SIGURG does nothing from now on but interrupt.
    ///
    /// # Errors
    /// What sigaction(2) and pthread_sigmask(3) report.
    pub fn current() -> Result<Self> {
        static INSTALLED: OnceLock<i32> = OnceLock::new();
        let failed = |errno| {
            Error::new("preparing a thread for SIGURG", io::Error::from_raw_os_error(errno))
        };
        match *INSTALLED.get_or_init(|| install().err().unwrap_or(0)) {
            0 => {}
            errno => return Err(failed(errno)),
        }
        unblock().map_err(failed)?;
        // SAFETY: both calls take nothing and cannot fail.
        let (process, thread) = unsafe { (libc::getpid(), libc::gettid()) };
        Ok(Self { process, thread })
    }

    /// Ends the system call in which the thread is; if it is in none, the signal is lost. So ask again until
    /// the thread has done what it was to do.
    pub fn interrupt(&self) {
        // SAFETY: the call takes three numbers. A thread that has ended is no fault: ESRCH.
        let _ = unsafe { libc::syscall(libc::SYS_tgkill, self.process, self.thread, SIGNAL) };
    }
}

/// A handler that does nothing, without `SA_RESTART`: an ignored signal would interrupt nothing.
fn install() -> std::result::Result<(), i32> {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: all bytes zero are a valid `struct sigaction`: no flags, no signals blocked.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: the structure is initialised, the handler touches nothing and lives as long as the program.
    match unsafe { libc::sigaction(SIGNAL, &action, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL)),
    }
}

/// A mask is inherited by threads and across exec(2): somebody may have blocked it.
fn unblock() -> std::result::Result<(), i32> {
    // SAFETY: the set is initialised by sigemptyset before it is used; the calls write to it alone.
    let errno = unsafe {
        let mut signals: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut signals);
        libc::sigaddset(&mut signals, SIGNAL);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &signals, std::ptr::null_mut())
    };
    if errno == 0 { Ok(()) } else { Err(errno) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    #[test]
    fn a_sleep_is_cut_short() {
        let (sender, receiver) = mpsc::channel();
        let sleeper = std::thread::spawn(move || {
            sender.send(Interruptible::current().unwrap()).unwrap();
            let hour = libc::timespec { tv_sec: 3_600, tv_nsec: 0 };
            // SAFETY: a valid time; the rest is not asked for.
            let outcome = unsafe { libc::nanosleep(&hour, std::ptr::null_mut()) };
            (outcome, io::Error::last_os_error().raw_os_error())
        });
        let thread = receiver.recv().unwrap();
        let begun = Instant::now();
        while !sleeper.is_finished() && begun.elapsed() < Duration::from_secs(30) {
            thread.interrupt();
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(sleeper.join().unwrap(), (-1, Some(libc::EINTR)));
        // Nobody is there any more: nothing happens.
        thread.interrupt();
    }
}
