//! When received frames came.
//!
//! Our program puts the monotonic time in front of each frame, unless frames come so fast that it saves the
//! time for that. Whether it did cannot be seen: what stands there may be left over from an earlier frame.
//! But that time lies before those of the frames since, and no time lies in the future.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sys::clock::monotonic_ns;
use sys::packet::TimeSource;

/// A time of arrival in ns since the Unix epoch, and who took it.
pub(super) type Arrival = (u64, TimeSource);

/// Turns times of one queue into real time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Arrivals {
    /// The last time that the program put in front of a frame.
    last_ns: u64,
    /// The least that a frame of this batch may have: what stood in front of one of an earlier batch may
    /// stand there again.
    least_ns: u64,
}

/// Both clocks at one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    pub(super) real_ns: u64,
    monotonic_ns: u64,
}

/// Clocks that are read within this time are read at one moment.
const MOMENT_NS: u64 = 1_000;
/// How often that is tried: whoever is interrupted between two clocks would be wrong by that long.
const ATTEMPTS: usize = 8;

impl Now {
    pub(super) fn read() -> Self {
        let readings = (0..ATTEMPTS).map(|_| {
            let before_ns = monotonic_ns();
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
            let apart_ns = monotonic_ns().saturating_sub(before_ns);
            let monotonic_ns = before_ns + apart_ns / 2;
            (apart_ns, Self { real_ns: since.as_nanos() as u64, monotonic_ns })
        });
        Self::closest(readings)
    }

    /// The first reading of one moment, else the one that took the shortest.
    fn closest(readings: impl Iterator<Item = (u64, Self)>) -> Self {
        let mut closest: Option<(u64, Self)> = None;
        for (apart_ns, now) in readings {
            if closest.is_none_or(|(shortest_ns, _)| apart_ns < shortest_ns) {
                closest = Some((apart_ns, now));
            }
            if apart_ns <= MOMENT_NS {
                break;
            }
        }
        closest.map_or(Self { real_ns: 0, monotonic_ns: 0 }, |(_, now)| now)
    }
}

impl Arrivals {
    /// A batch begins.
    pub(super) fn begin(&mut self) {
        self.least_ns = self.last_ns + 1;
    }

    /// The arrival of the next frame of a batch, taken out of its ring `now`, in front of which `stamp_ns`
    /// stands.
    #[inline]
    pub(super) fn of(&mut self, stamp_ns: u64, now: Now) -> Arrival {
        let least_ns = self.least_ns.max(self.last_ns).max(1);
        if stamp_ns < least_ns || stamp_ns > now.monotonic_ns {
            return (now.real_ns, TimeSource::Reader);
        }
        self.last_ns = stamp_ns;
        (now.real_ns.saturating_sub(now.monotonic_ns - stamp_ns), TimeSource::Software)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_are_read_apart_are_read_again() {
        let at = |real_ns| Now { real_ns, monotonic_ns: 0 };
        let closest = |readings: &[(u64, Now)]| Now::closest(readings.iter().copied()).real_ns;
        assert_eq!(closest(&[(40, at(1)), (30, at(2))]), 1);
        assert_eq!(closest(&[(90_000, at(1)), (30, at(2)), (20, at(3))]), 2);
        assert_eq!(closest(&[(90_000, at(1)), (5_000, at(2)), (7_000, at(3))]), 2);
    }

    #[test]
    fn left_over_times_are_not_believed() {
        let now = Now { real_ns: 1_000_000, monotonic_ns: 5_000 };
        let mut arrivals = Arrivals::default();
        assert_eq!(arrivals.of(0, now), (1_000_000, TimeSource::Reader));
        assert_eq!(arrivals.of(4_000, now), (999_000, TimeSource::Software));
        assert_eq!(arrivals.of(4_000, now), (999_000, TimeSource::Software));
        assert_eq!(arrivals.of(3_999, now), (1_000_000, TimeSource::Reader));
        assert_eq!(arrivals.of(5_001, now), (1_000_000, TimeSource::Reader));
        assert_eq!(arrivals.of(5_000, now), (1_000_000, TimeSource::Software));
        arrivals.begin();
        let later = Now { real_ns: 1_003_000, monotonic_ns: 8_000 };
        assert_eq!(arrivals.of(5_000, later), (1_003_000, TimeSource::Reader));
        assert_eq!(arrivals.of(7_000, later), (1_002_000, TimeSource::Software));
    }
}
