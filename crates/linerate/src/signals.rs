//! SIGINT, SIGTERM and SIGHUP: the first ends the run in order, a second one ends the program at once.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use engine::Stop;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Not among those that `signal_hook` names; the same on all architectures of Linux but MIPS and
/// PA-RISC (signal(7)).
const SIGXFSZ: i32 = 25;

/// Exit code of a program that was told twice.
const AT_ONCE: i32 = 130;

/// Whether a signal was the cause that a run ended.
#[derive(Debug, Clone)]
pub struct Signals {
    seen: Arc<AtomicBool>,
}

impl Signals {
    /// From now on a signal raises `stop`, a second one ends the program.
    pub fn install(stop: &Stop) -> sys::Result<Self> {
        let seen = Arc::new(AtomicBool::new(false));
        let hangup = (!hangup_is_ignored()).then_some(SIGHUP);
        for signal in [SIGINT, SIGTERM].into_iter().chain(hangup) {
            // In this order: the first signal finds `seen` down and only raises it.
            signal_hook::flag::register_conditional_shutdown(signal, AT_ONCE, Arc::clone(&seen))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&seen)))
                .and_then(|_| signal_hook::flag::register(signal, stop.flag()))
                .map_err(|source| {
                    sys::Error::new("installing the handler of SIGINT, SIGTERM and SIGHUP", source)
                })?;
        }
        Ok(Self { seen })
    }

    /// Whether a signal came.
    pub fn seen(&self) -> bool {
        self.seen.load(std::sync::atomic::Ordering::Relaxed)
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
