//! A clock that is cheap enough to read once per batch: the time stamp counter, held to the kernel's
//! clocks.
//!
//! *Monotonic* times are ns of CLOCK_MONOTONIC, *real* times ns since the Unix epoch
//! (CLOCK_REALTIME). The counter is used only where the kernel itself uses it (its clocksource is
//! `tsc`) and the CPU promises a constant rate; elsewhere every reading asks the kernel.
//! [`Clock::resync`], about once a second, compares with the kernel and steers by changing the
//! rate, so that a clock never runs backwards. Limit: between two comparisons the clocks drift apart
//! by what the rate is wrong, a few µs at most; the largest distance seen is
//! [`Clock::deviation_ns_max`].

use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::{Error, Result};

/// How long the rate of the counter is measured at first.
const CALIBRATION: Duration = Duration::from_millis(20);
/// Length of a comparison's window: the pair of readings with the shortest one counts.
const ATTEMPTS: usize = 8;
/// Time over which a deviation is steered out.
const STEER_NS: i128 = 1_000_000_000;
/// A change of real time against monotonic time by more than this was a step.
const STEP_NS: i64 = 1_000_000;
/// The kernel wakes a sleeper this late at most, on an idle machine: the rest is spun away.
const SPIN_NS: u64 = 60_000;
/// Parts of a ns in which the rate is kept.
const FRACTION_BITS: u32 = 32;

const NS_PER_S: i128 = 1_000_000_000;

/// A clock of one thread; clone it for another.
#[derive(Debug, Clone)]
pub struct Clock {
    counter: Option<Counter>,
    /// Real time less monotonic time.
    real_offset_ns: i64,
    deviation_ns_max: u64,
    step_ns: i64,
}

/// How counter values become ns.
#[derive(Debug, Clone)]
struct Counter {
    /// The very first pair, for the rate over a long time.
    first: (u64, u64),
    /// The pair from which readings are counted.
    anchor: (u64, u64),
    /// ns per tick, in units of 2^-32 ns.
    rate: u64,
}

impl Clock {
    /// Sets the clock by the kernel's; takes about 20 ms where the counter is used.
    pub fn new() -> Result<Self> {
        // Sleeps end when they should, not up to 50 µs later (PR_SET_TIMERSLACK, prctl(2)).
        // Where it is refused, sleeps are longer: the spin at their end is then shorter.
        set_timer_slack();
        let counter = counter_is_trusted().then(Counter::calibrate);
        let real_offset_ns = real_offset_ns();
        Ok(Self { counter, real_offset_ns, deviation_ns_max: 0, step_ns: 0 })
    }

    /// Monotonic time in ns.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        match &self.counter {
            Some(counter) => counter.ns_at(read_counter()),
            None => kernel_ns(ClockId::Monotonic),
        }
    }

    /// Real time in ns since the Unix epoch.
    #[inline]
    pub fn realtime_ns(&self) -> u64 {
        self.now_ns().saturating_add_signed(self.real_offset_ns)
    }

    /// Compares with the kernel's clocks and steers towards them. To be called about once a second.
    pub fn resync(&mut self) {
        if let Some(counter) = &mut self.counter {
            let deviation_ns = counter.resync();
            self.deviation_ns_max = self.deviation_ns_max.max(deviation_ns);
        }
        let offset_ns = real_offset_ns();
        let change_ns = offset_ns - self.real_offset_ns;
        if change_ns.abs() > STEP_NS {
            self.step_ns += change_ns;
        }
        self.real_offset_ns = offset_ns;
    }

    /// The largest distance from the kernel's monotonic clock that a comparison has found, in ns.
    pub fn deviation_ns_max(&self) -> u64 {
        self.deviation_ns_max
    }

    /// By how much somebody has set real time since the clock was made, in ns.
    pub fn realtime_step_ns(&self) -> i64 {
        self.step_ns
    }

    /// Which clock this is, for people.
    pub fn description(&self) -> &'static str {
        match self.counter {
            Some(_) => "time stamp counter, held to CLOCK_MONOTONIC",
            None => "CLOCK_MONOTONIC of the kernel",
        }
    }

    /// Sleeps until a monotonic time: in the kernel for most of it, spinning for the last 60 µs.
    pub fn sleep_until(&self, time_ns: u64) {
        loop {
            let left_ns = time_ns.saturating_sub(self.now_ns());
            if left_ns == 0 {
                return;
            }
            if left_ns > SPIN_NS {
                std::thread::sleep(Duration::from_nanos(left_ns - SPIN_NS));
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

impl Counter {
    fn calibrate() -> Self {
        let first = compare();
        std::thread::sleep(CALIBRATION);
        let anchor = compare();
        Self { first, anchor, rate: rate_between(first, anchor) }
    }

    fn ns_at(&self, ticks: u64) -> u64 {
        let (anchor_ticks, anchor_ns) = self.anchor;
        // Another CPU's counter may be a hair behind that of the last comparison.
        let since = ticks.saturating_sub(anchor_ticks);
        anchor_ns + ((u128::from(since) * u128::from(self.rate)) >> FRACTION_BITS) as u64
    }

    /// Returns the distance found, in ns.
    fn resync(&mut self) -> u64 {
        let (ticks, kernel_ns) = compare();
        let mine_ns = self.ns_at(ticks);
        let ahead_ns = i128::from(mine_ns) - i128::from(kernel_ns);
        let rate = i128::from(rate_between(self.first, (ticks, kernel_ns)));
        // The rate that meets the kernel's time in a second, within a tenth of the true one.
        let correction = (rate * ahead_ns / STEER_NS).clamp(-rate / 10, rate / 10);
        // Going on from where this clock stands keeps it from running backwards; far behind
        // (the machine was suspended) it may jump ahead.
        let stand_ns = if -ahead_ns > STEER_NS { kernel_ns } else { mine_ns };
        self.anchor = (ticks, stand_ns);
        self.rate = u64::try_from(rate - correction).unwrap_or(self.rate);
        ahead_ns.unsigned_abs().try_into().unwrap_or(u64::MAX)
    }
}

fn rate_between(from: (u64, u64), to: (u64, u64)) -> u64 {
    let ticks = u128::from(to.0.saturating_sub(from.0)).max(1);
    let ns = u128::from(to.1.saturating_sub(from.1));
    ((ns << FRACTION_BITS) / ticks) as u64
}

/// A counter value and the kernel's monotonic time of the same moment, as closely as a few
/// attempts get.
fn compare() -> (u64, u64) {
    let mut best = (u64::MAX, 0, 0);
    for _ in 0..ATTEMPTS {
        let before = read_counter();
        let ns = kernel_ns(ClockId::Monotonic);
        let window = read_counter().saturating_sub(before);
        if window < best.0 {
            best = (window, before + window / 2, ns);
        }
    }
    (best.1, best.2)
}

fn kernel_ns(clock: ClockId) -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(clock);
    u64::try_from(i128::from(tv_sec) * NS_PER_S + i128::from(tv_nsec)).unwrap_or(0)
}

fn real_offset_ns() -> i64 {
    let mut best = (u64::MAX, 0);
    for _ in 0..ATTEMPTS {
        let before = kernel_ns(ClockId::Monotonic);
        let real = kernel_ns(ClockId::Realtime);
        let window = kernel_ns(ClockId::Monotonic).saturating_sub(before);
        if window < best.0 {
            let offset = i128::from(real) - i128::from(before + window / 2);
            best = (window, i64::try_from(offset).unwrap_or(0));
        }
    }
    best.1
}

/// The kernel has tested the counter on all CPUs before it chose it as its own clock source.
fn counter_is_trusted() -> bool {
    const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    cfg!(target_arch = "x86_64")
        && std::fs::read_to_string(SOURCE).is_ok_and(|source| source.trim() == "tsc")
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn read_counter() -> u64 {
    // SAFETY: RDTSC reads a register and touches no memory. The kernel allows it in user space
    // where its clock source is tsc, which is when this is called.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn read_counter() -> u64 {
    kernel_ns(ClockId::Monotonic)
}

fn set_timer_slack() {
    // SAFETY: PR_SET_TIMERSLACK takes one number and no pointer.
    let outcome = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64, 0_u64, 0_u64, 0_u64) };
    debug_assert!(outcome == 0, "{}", Error::last("setting the timer slack"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_forward_and_with_the_kernel() {
        let mut clock = Clock::new().unwrap();
        let mut before = clock.now_ns();
        let end = before + 300_000_000;
        let mut next_sync = before;
        while before < end {
            let now = clock.now_ns();
            assert!(now >= before, "{now} after {before}");
            if now >= next_sync {
                clock.resync();
                next_sync = now + 10_000_000;
            }
            before = now;
        }
        let distance = clock.now_ns().abs_diff(kernel_ns(ClockId::Monotonic));
        // A virtual CPU may lose the processor between two readings, for milliseconds.
        assert!(distance < 50_000_000, "{distance} ns from the kernel's clock");
    }

    #[test]
    fn real_time_is_that_of_the_system() {
        let clock = Clock::new().unwrap();
        let system = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        assert!(clock.realtime_ns().abs_diff(system.as_nanos() as u64) < 50_000_000);
        assert_eq!(clock.realtime_step_ns(), 0);
    }

    #[test]
    fn sleeps_no_shorter_than_asked() {
        let clock = Clock::new().unwrap();
        for span_ns in [0, 10_000, 100_000, 2_000_000] {
            let until = clock.now_ns() + span_ns;
            clock.sleep_until(until);
            assert!(clock.now_ns() >= until);
        }
    }

    #[test]
    fn a_clock_ahead_of_the_kernel_is_slowed_not_set_back() {
        let mut counter = Counter::calibrate();
        counter.anchor.1 += 1_000_000;
        let rate = counter.rate;
        let before = counter.ns_at(read_counter());
        let found = counter.resync();
        assert!(found >= 500_000, "{found}");
        assert!(counter.rate < rate);
        assert!(counter.ns_at(read_counter()) >= before);
    }
}
