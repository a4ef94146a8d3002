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

mod sources;

pub use sources::ClockSources;

use std::num::NonZeroU64;
use std::time::Duration;

use rustix::thread::{clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::{Error, Result};

/// How long the rate of the counter is measured at first.
const CALIBRATION: Duration = Duration::from_millis(20);
/// Length of a comparison's window: the pair of readings with the shortest one counts.
const ATTEMPTS: usize = 8;
/// Time over which a deviation is steered out.
const STEER_NS: i128 = 1_000_000_000;
/// A change of real time against monotonic time by more than this, and by more than the readings
/// are uncertain, was a step: slewing (adjtimex(2)) changes both clocks alike.
const STEP_NS: u64 = 10_000;
/// Time over which the rate of the counter is measured while the clock runs.
const RATE_WINDOW_NS: u64 = 1_000_000_000;
/// The kernel wakes a sleeper this late at most, on an idle machine: the rest is spun away.
const SPIN_NS: u64 = 60_000;
/// Parts of a ns in which the rate is kept.
const FRACTION_BITS: u32 = 32;

/// Between two comparisons of a clock that keeps itself ([`Clock::kept_ns`]).
const KEEP_NS: u64 = 100_000_000;

const NS_PER_S: i128 = 1_000_000_000;

/// A clock of one thread; clone it for another.
#[derive(Debug, Clone)]
pub struct Clock {
    counter: Option<Counter>,
    /// Real time less monotonic time.
    real_offset: RealOffset,
    deviation_ns_max: u64,
    step_ns: i64,
    /// When [`Clock::kept_ns`] compares again.
    keep_at_ns: u64,
}

/// What can be said about a clock at the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockReport {
    /// As [`Clock::source`].
    pub source: &'static str,
    /// As [`Clock::deviation_ns_max`].
    pub deviation_ns_max: u64,
    /// As [`Clock::realtime_step_ns`].
    pub realtime_step_ns: i64,
}

impl ClockReport {
    /// Of two clocks of one run: the larger deviation and the larger step.
    #[must_use]
    pub fn or_worse(self, other: Self) -> Self {
        let steps = [self.realtime_step_ns, other.realtime_step_ns];
        Self {
            deviation_ns_max: self.deviation_ns_max.max(other.deviation_ns_max),
            realtime_step_ns: steps.into_iter().max_by_key(|ns| ns.unsigned_abs()).unwrap_or(0),
            ..self
        }
    }
}

/// The distance between the kernel's real and monotonic clocks.
#[derive(Debug, Clone, Copy)]
struct RealOffset {
    ns: i64,
    /// How long the readings took from which it comes: its uncertainty.
    window_ns: u64,
}

/// How counter values become ns. Rates are ns per tick, in units of 2^-32 ns.
#[derive(Debug, Clone)]
struct Counter {
    /// The pair (ticks, ns) from which the rate is measured.
    measured_from: (u64, u64),
    /// How long the last measurement of the rate took.
    measured_ns: u64,
    /// The rate as measured.
    measured_rate: u64,
    /// The pair from which readings are counted.
    anchor: (u64, u64),
    /// The rate in use: the measured one, steered.
    rate: u64,
}

impl Clock {
    /// Sets the clock by the kernel's; takes about 20 ms where the counter is used.
    pub fn new() -> Result<Self> {
        // Where it is refused, sleeps are longer: the spin at their end is then shorter.
        let _ = set_timer_slack();
        let counter = counter_is_trusted().then(Counter::calibrate);
        let real_offset = RealOffset::read();
        Ok(Self { counter, real_offset, deviation_ns_max: 0, step_ns: 0, keep_at_ns: 0 })
    }

    /// Monotonic time in ns.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        match &self.counter {
            Some(counter) => counter.ns_at(read_counter()),
            None => kernel_ns(ClockId::Monotonic),
        }
    }

    /// Monotonic time in ns, after a comparison with the kernel's clocks where the last one was
    /// 100 ms ago: for those who own a clock that nobody else compares.
    #[inline]
    pub fn kept_ns(&mut self) -> u64 {
        let now_ns = self.now_ns();
        if now_ns < self.keep_at_ns {
            return now_ns;
        }
        self.keep_at_ns = now_ns.saturating_add(KEEP_NS);
        self.resync();
        self.now_ns()
    }

    /// Real time in ns since the Unix epoch.
    #[inline]
    pub fn realtime_ns(&self) -> u64 {
        self.now_ns().saturating_add_signed(self.real_offset_ns())
    }

    /// What is to be added to monotonic time in ns to have real time, for those who take monotonic times
    /// elsewhere.
    pub fn real_offset_ns(&self) -> i64 {
        self.real_offset.ns
    }

    /// Compares with the kernel's clocks and steers towards them. To be called about once a second.
    pub fn resync(&mut self) {
        if let Some(counter) = &mut self.counter {
            let deviation_ns = counter.resync();
            self.deviation_ns_max = self.deviation_ns_max.max(deviation_ns);
        }
        self.follow_real_time(RealOffset::read());
    }

    fn follow_real_time(&mut self, now: RealOffset) {
        let held = self.real_offset;
        let change_ns = now.ns.saturating_sub(held.ns);
        let uncertain_ns = STEP_NS.saturating_add(now.window_ns).saturating_add(held.window_ns);
        if change_ns.unsigned_abs() > uncertain_ns {
            self.step_ns = self.step_ns.saturating_add(change_ns);
            self.real_offset = now;
        } else if now.window_ns < held.window_ns / 2 {
            // Otherwise the offset stays as it is: following its noise would set real time back.
            self.real_offset = now;
        }
    }

    /// What can be said about the clock's run so far.
    pub fn report(&self) -> ClockReport {
        ClockReport {
            source: self.source(),
            deviation_ns_max: self.deviation_ns_max,
            realtime_step_ns: self.step_ns,
        }
    }

    /// Which clock this is, for programs: `tsc` or `CLOCK_MONOTONIC`.
    pub fn source(&self) -> &'static str {
        if self.counter.is_some() { "tsc" } else { "CLOCK_MONOTONIC" }
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
                // An absolute time, so that losing the CPU just before the call delays nothing.
                // After a signal the loop sleeps again.
                let _ = clock_nanosleep_absolute(
                    ClockId::Monotonic,
                    &timespec(time_ns.saturating_sub(SPIN_NS)),
                );
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

impl Counter {
    fn calibrate() -> Self {
        let measured_from = compare();
        std::thread::sleep(CALIBRATION);
        let anchor = compare();
        let rate = rate_between(measured_from, anchor);
        let measured_ns = anchor.1.saturating_sub(measured_from.1);
        Self { measured_from, measured_ns, measured_rate: rate, anchor, rate }
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
        self.measure((ticks, kernel_ns));
        let rate = i128::from(self.measured_rate);
        // The rate that meets the kernel's time in a second, within a tenth of the true one.
        let correction = (rate * ahead_ns / STEER_NS).clamp(-rate / 10, rate / 10);
        // Going on from where this clock stands keeps it from running backwards; far behind
        // (the machine was suspended) it may jump ahead.
        let stand_ns = if -ahead_ns > STEER_NS { kernel_ns } else { mine_ns };
        self.anchor = (ticks, stand_ns);
        self.rate = u64::try_from(rate - correction).unwrap_or(self.rate);
        ahead_ns.unsigned_abs().try_into().unwrap_or(u64::MAX)
    }

    /// Measures the rate over ever longer times, and from [`RATE_WINDOW_NS`] on over the last such
    /// window: the kernel's own rate changes when it is steered by NTP.
    fn measure(&mut self, now: (u64, u64)) {
        let span_ns = now.1.saturating_sub(self.measured_from.1);
        if span_ns < self.measured_ns.min(RATE_WINDOW_NS) {
            return;
        }
        self.measured_rate = rate_between(self.measured_from, now);
        self.measured_ns = span_ns;
        if span_ns >= RATE_WINDOW_NS {
            self.measured_from = now;
        }
    }
}

impl RealOffset {
    fn read() -> Self {
        let mut best = Self { ns: 0, window_ns: u64::MAX };
        for _ in 0..ATTEMPTS {
            let before = kernel_ns(ClockId::Monotonic);
            let real = kernel_ns(ClockId::Realtime);
            let window_ns = kernel_ns(ClockId::Monotonic).saturating_sub(before);
            if window_ns < best.window_ns {
                let offset = i128::from(real) - i128::from(before + window_ns / 2);
                best = Self { ns: i64::try_from(offset).unwrap_or(0), window_ns };
            }
        }
        best
    }
}

/// Real time less monotonic time in ns, as the kernel has them now: for those who read only the latter, such
/// as programs in the kernel.
pub fn realtime_offset_ns() -> i64 {
    RealOffset::read().ns
}

fn timespec(ns: u64) -> Timespec {
    let (seconds, rest) = (ns / NS_PER_S as u64, ns % NS_PER_S as u64);
    Timespec { tv_sec: i64::try_from(seconds).unwrap_or(i64::MAX), tv_nsec: rest as i64 }
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

fn counter_is_trusted() -> bool {
    ClockSources::read().is_ok_and(|sources| sources.counter_is_trusted())
}

/// Whether the CPU promises one rate in all its power states: the «invariant TSC» of Intel's and AMD's
/// manuals, bit 8 of EDX of CPUID leaf 8000_0007h.
#[cfg(target_arch = "x86_64")]
fn counter_is_constant() -> bool {
    use core::arch::x86_64::__cpuid;
    const POWER_LEAF: u32 = 0x8000_0007;
    __cpuid(0x8000_0000).eax >= POWER_LEAF && __cpuid(POWER_LEAF).edx & (1 << 8) != 0
}

#[cfg(not(target_arch = "x86_64"))]
fn counter_is_constant() -> bool {
    false
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn read_counter() -> u64 {
    use core::arch::x86_64::{_mm_lfence, _rdtsc};
    // RDTSC alone may run before instructions that precede it, another RDTSC included: without the
    // fence, as in the kernel, times could run backwards.
    // SAFETY: every x86-64 CPU has SSE2, of which the fence is a part.
    unsafe { _mm_lfence() };
    // SAFETY: RDTSC reads a register and touches no memory. The kernel allows it in user space
    // where its clock source is tsc, which is when this is called.
    unsafe { _rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn read_counter() -> u64 {
    kernel_ns(ClockId::Monotonic)
}

/// The kernel's monotonic clock (CLOCK_MONOTONIC), by which its programs take times, in ns.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// Lets the calling thread's sleeps end within a ns of their time where the kernel can, instead of
/// up to 50 µs later (`PR_SET_TIMERSLACK`, prctl(2)). Threads inherit it from the one that starts
/// them; [`Clock::new`] does it for its own.
///
/// # Errors
/// What prctl(2) reports.
pub fn set_timer_slack() -> Result<()> {
    set_current_timer_slack(NonZeroU64::new(1))
        .map_err(|source| Error::new("setting the timer slack of this thread", source))
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
    fn a_clock_that_keeps_itself_compares_every_100_ms() {
        let mut clock = Clock::new().unwrap();
        let first = clock.kept_ns();
        let due = clock.keep_at_ns;
        assert!(due <= first + KEEP_NS);
        assert!(clock.kept_ns() >= first);
        assert_eq!(clock.keep_at_ns, due, "no comparison is due yet");
        clock.sleep_until(due);
        assert!(clock.kept_ns() >= due);
        assert!(clock.keep_at_ns > due);
        let report = clock.report();
        assert_eq!(report.deviation_ns_max, clock.deviation_ns_max());
        let set = ClockReport { realtime_step_ns: -9, deviation_ns_max: 0, ..report };
        let worse = report.or_worse(set);
        assert_eq!(worse, ClockReport { realtime_step_ns: -9, ..report });
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
    fn a_step_of_real_time_is_followed_and_counted_and_noise_is_not() {
        let mut clock = Clock::new().unwrap();
        let held = RealOffset { ns: 1_000_000_000, window_ns: 100 };
        clock.real_offset = held;
        clock.follow_real_time(RealOffset { ns: held.ns - 90, window_ns: 100 });
        assert_eq!((clock.real_offset.ns, clock.realtime_step_ns()), (held.ns, 0));
        // A reading that was interrupted proves nothing.
        clock.follow_real_time(RealOffset { ns: held.ns + 400_000, window_ns: 900_000 });
        assert_eq!((clock.real_offset.ns, clock.realtime_step_ns()), (held.ns, 0));
        clock.follow_real_time(RealOffset { ns: held.ns - 50_000, window_ns: 100 });
        assert_eq!(clock.realtime_step_ns(), -50_000);
        clock.follow_real_time(RealOffset { ns: held.ns + 2_000_000_000, window_ns: 100 });
        assert_eq!(clock.realtime_step_ns(), 2_000_000_000);
        assert_eq!(clock.real_offset.ns, held.ns + 2_000_000_000);
    }

    #[test]
    fn the_rate_is_measured_over_longer_times_and_then_over_the_last_window() {
        let start = (1_000, 5_000);
        let mut counter = Counter {
            measured_from: start,
            measured_ns: 20_000_000,
            measured_rate: 7,
            anchor: start,
            rate: 7,
        };
        let at = |ms: u64, ticks_per_ns: u64| {
            (start.0 + ms * 1_000_000 * ticks_per_ns, start.1 + ms * 1_000_000)
        };
        counter.measure(at(10, 2));
        assert_eq!(counter.measured_rate, 7, "shorter than what was measured before");
        counter.measure(at(40, 2));
        assert_eq!((counter.measured_rate, counter.measured_from), (1 << 31, start));
        counter.measure(at(1_000, 2));
        assert_eq!((counter.measured_rate, counter.measured_from), (1 << 31, at(1_000, 2)));
        let (ticks, ns) = at(1_000, 2);
        counter.measure((ticks + 500_000_000, ns + 500_000_000));
        assert_eq!(counter.measured_rate, 1 << 31);
        counter.measure((ticks + 1_000_000_000, ns + 1_000_000_000));
        assert_eq!(counter.measured_rate, 1 << 32);
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
