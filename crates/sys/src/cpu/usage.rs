//! What time a thread or the process spends on CPUs.

use rustix::time::{ClockId, clock_gettime};

use crate::{Error, Result};

/// CPU time in user code and in the kernel, and how often the CPU was given up or taken away, since
/// the thread or the process began (getrusage(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Time in user code, in ns; the kernel counts it to µs at best.
    pub user_ns: u64,
    /// Time in the kernel on its behalf, in ns.
    pub system_ns: u64,
    /// How often it waited for something.
    pub voluntary_switches: u64,
    /// How often another thread got its CPU.
    pub involuntary_switches: u64,
}

impl Usage {
    /// What was used since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(before.user_ns),
            system_ns: self.system_ns.saturating_sub(before.system_ns),
            voluntary_switches: self.voluntary_switches.saturating_sub(before.voluntary_switches),
            involuntary_switches: self
                .involuntary_switches
                .saturating_sub(before.involuntary_switches),
        }
    }
}

/// What the calling thread has used.
///
/// # Errors
/// What getrusage(2) reports, which it does not for these arguments.
pub fn thread_usage() -> Result<Usage> {
    usage(libc::RUSAGE_THREAD)
}

/// What all threads of this process have used.
///
/// # Errors
/// As for [`thread_usage`].
pub fn process_usage() -> Result<Usage> {
    usage(libc::RUSAGE_SELF)
}

/// CPU time that the calling thread has used, in ns (CLOCK_THREAD_CPUTIME_ID).
pub fn thread_cpu_ns() -> u64 {
    cpu_ns(ClockId::ThreadCPUTime)
}

/// CPU time that all threads of this process have used, in ns (CLOCK_PROCESS_CPUTIME_ID).
pub fn process_cpu_ns() -> u64 {
    cpu_ns(ClockId::ProcessCPUTime)
}

fn usage(who: libc::c_int) -> Result<Usage> {
    // SAFETY: rusage consists of integers, for which zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills the structure that the pointer refers to, which outlives the call.
    if unsafe { libc::getrusage(who, &mut usage) } != 0 {
        return Err(Error::last("reading the CPU time in use"));
    }
    let count = |value: libc::c_long| u64::try_from(value).unwrap_or(0);
    Ok(Usage {
        user_ns: timeval_ns(usage.ru_utime),
        system_ns: timeval_ns(usage.ru_stime),
        voluntary_switches: count(usage.ru_nvcsw),
        involuntary_switches: count(usage.ru_nivcsw),
    })
}

fn timeval_ns(time: libc::timeval) -> u64 {
    let ns = i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_usec) * 1_000;
    u64::try_from(ns).unwrap_or(0)
}

fn cpu_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let ns = i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
    u64::try_from(ns).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_grows_with_work() {
        let before = thread_cpu_ns();
        let mut value = 1u64;
        while thread_cpu_ns() < before + 20_000_000 {
            value = std::hint::black_box(value.wrapping_mul(3));
        }
        assert!(process_cpu_ns() >= 20_000_000);
        let used = process_usage().unwrap();
        assert!(used.user_ns + used.system_ns > 0, "{used:?}");
    }

    #[test]
    fn waiting_is_a_voluntary_switch() {
        let before = thread_usage().unwrap();
        for _ in 0..5 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let used = thread_usage().unwrap().since(&before);
        assert!(used.voluntary_switches >= 5, "{used:?}");
    }
}
