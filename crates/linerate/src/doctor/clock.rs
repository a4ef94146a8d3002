//! What tells the time.

use std::time::{Duration, Instant};

use serde_json::json;
use sys::clock::{Clock, ClockReport, ClockSources};

use super::{Area, Finding, Severity};
use crate::units::ns_in_words;

/// How long the clock is watched.
const WATCH: Duration = Duration::from_millis(600);
/// A clock this far from the kernel's spoils latencies.
const DEVIATION_NS_MAX: u64 = 100_000;
/// A reading that takes longer is a system call.
const READING_NS_MAX: u64 = 200;
const READINGS: u32 = 20_000;

/// Watches a clock for a while. Returns what it found.
pub fn watch() -> sys::Result<(ClockReport, u64)> {
    let mut clock = Clock::new()?;
    let reading_ns = reading_ns(&clock);
    let end_ns = clock.now_ns() + WATCH.as_nanos() as u64;
    while clock.kept_ns() < end_ns {
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok((clock.report(), reading_ns))
}

fn reading_ns(clock: &Clock) -> u64 {
    let begun = Instant::now();
    for _ in 0..READINGS {
        std::hint::black_box(clock.now_ns());
    }
    (begun.elapsed().as_nanos() / u128::from(READINGS)) as u64
}

/// Source and precision.
pub fn look(
    sources: &sys::Result<ClockSources>,
    report: ClockReport,
    reading_ns: u64,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Ok(sources) = sources {
        findings.push(source(sources, reading_ns));
    }
    findings.push(deviation(report));
    findings
}

fn source(sources: &ClockSources, reading_ns: u64) -> Finding {
    let counter = if sources.counter_is_trusted() { "is used" } else { "is not used" };
    let seen = format!(
        "{} (of {}); the time stamp counter {counter}; a reading takes {reading_ns} ns",
        sources.current,
        sources.available.join(", ")
    );
    let why = "the clock is read for each batch, to pace and to stamp";
    let finding = Finding::new(Area::Clock, "source", seen, why).facts(json!({
        "current": sources.current,
        "available": sources.available,
        "counter_is_constant": sources.counter_is_constant,
        "counter_is_used": sources.counter_is_trusted(),
        "reading_ns": reading_ns,
    }));
    if sources.counter_is_trusted() {
        return finding;
    }
    let is_slow = reading_ns > READING_NS_MAX;
    let severity = if is_slow { Severity::Warning } else { Severity::Note };
    if sources.counter_is_constant && sources.available.iter().any(|name| name == "tsc") {
        return finding.is(severity, "let the kernel use the time stamp counter").command(
            "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource",
        );
    }
    finding
        .is(severity, "nothing here: the machine offers no time stamp counter that can be trusted")
}

fn deviation(report: ClockReport) -> Finding {
    let seen = format!(
        "{}, at most {} from the kernel's clock in {} ms",
        report.source,
        ns_in_words(report.deviation_ns_max),
        WATCH.as_millis()
    );
    let why = "latencies and gaps are as exact as this, beside what the kernel itself adds";
    let finding = Finding::new(Area::Clock, "deviation", seen, why).facts(json!({
        "source": report.source,
        "deviation_ns_max": report.deviation_ns_max,
        "realtime_step_ns": report.realtime_step_ns,
    }));
    if report.deviation_ns_max <= DEVIATION_NS_MAX {
        return finding;
    }
    finding.is(Severity::Warning, "let nothing else run: the CPU was taken away in a comparison")
}
