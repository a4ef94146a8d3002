//! SIGINT, SIGTERM and SIGHUP: the first ends the run in order, a later one ends the program at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use engine::Stop;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals as Pending;

/// Not among those that `signal_hook` names; the same on all architectures of Linux but MIPS and
/// PA-RISC (signal(7)).
const SIGXFSZ: i32 = 25;

/// Exit code of a program that was told twice.
const AT_ONCE: i32 = 130;
/// Signals within this time are one: timeout(1) tells its child and then their process group, and so do
/// shells and terminals that pass on a signal which the group has got.
const ONE_SIGNAL: Duration = Duration::from_millis(300);
/// The thread that waits for the first signal does little else.
const STACK_BYTES: usize = 64 << 10;

/// Whether a signal was the cause that a run ended.
#[derive(Debug, Clone)]
pub struct Signals {
    seen: Arc<AtomicBool>,
}

impl Signals {
    /// From now on a signal raises `stop`, and one that comes later than [`ONE_SIGNAL`] after it ends the
    /// program. To be called once.
    pub fn install(stop: &Stop) -> sys::Result<Self> {
        let doing = |source| {
            sys::Error::new("installing the handler of SIGINT, SIGTERM and SIGHUP", source)
        };
        let (seen, armed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let hangup = (!hangup_is_ignored()).then_some(SIGHUP);
        let signals: Vec<i32> = [SIGINT, SIGTERM].into_iter().chain(hangup).collect();
        for signal in &signals {
            signal_hook::flag::register(*signal, stop.flag())
                .and_then(|_| signal_hook::flag::register(*signal, Arc::clone(&seen)))
                .and_then(|_| {
                    let armed = Arc::clone(&armed);
                    signal_hook::flag::register_conditional_shutdown(*signal, AT_ONCE, armed)
                })
                .map_err(doing)?;
        }
        let pending = Pending::new(&signals).map_err(doing)?;
        arm_later(pending, armed)?;
        Ok(Self { seen })
    }

    /// Whether a signal came.
    pub fn seen(&self) -> bool {
        self.seen.load(Ordering::Relaxed)
    }
}

/// Raises `armed` when the first signal is [`ONE_SIGNAL`] old. In a thread of its own, since whatever the
/// others wait for must not keep a second signal from ending the program.
fn arm_later(mut pending: Pending, armed: Arc<AtomicBool>) -> sys::Result<()> {
    let builder = thread::Builder::new().name("signals".into()).stack_size(STACK_BYTES);
    let started = builder.spawn(move || {
        if pending.forever().next().is_some() {
            thread::sleep(ONE_SIGNAL);
            armed.store(true, Ordering::Relaxed);
        }
    });
    match started {
        Ok(_) => Ok(()),
        Err(source) => Err(sys::Error::of_thread("starting the thread signals", source)),
    }
}

/// Whether somebody (nohup) wants the program to outlive its terminal: bit 0 of `SigIgn` in
/// /proc/self/status (proc(5)).
fn hangup_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & 1 != 0)
}

/// A file that reaches its limit (ulimit -f) is an error of the write, as a full disk is, and not the
/// end of the program.
pub fn survive_size_limits() {
    // Without it the kernel's default stays, which loses the account and no packet.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
}
