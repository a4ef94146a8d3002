//! Turns a rate into «how many frames are due now», exactly over any length of time.
//!
//! The schedule is arithmetic, not accumulated sleeps: frame `n` is due at `start + n / rate`, so
//! rounding never drifts. After a stall the frames that fell due in the meantime are sent at once,
//! up to a bound ([`CATCH_UP_NS`]); beyond it the schedule slips. Neither happens unsaid: stalls,
//! late frames and the slip are counted in [`PacingReport`].

/// Preamble, start of frame delimiter, frame check sequence and inter-frame gap: what a frame takes
/// on an Ethernet wire beside its bytes without FCS (IEEE 802.3 clause 4.4.2).
pub const L1_OVERHEAD_BYTES: u64 = 24;

/// The frame check sequence, which a layer-2 bit rate counts (RFC 1242 3.12, RFC 2544 section 9).
pub const FCS_BYTES: u64 = 4;

/// A frame sent this much after its time is late, and the pause before it was a stall.
pub const STALL_NS: u64 = 1_000_000;

/// Frames owed from longer ago than this are not sent in a burst: the schedule slips instead.
pub const CATCH_UP_NS: u64 = 100_000_000;

/// Frames are gathered for this long into one hand-over when many are due.
const GATHER_NS: u64 = 20_000;

/// Parts that a unit is divided into, so that rates such as 0.5 pps are whole numbers.
const MILLI: u128 = 1_000;
const NS_PER_S: u128 = 1_000_000_000;

/// How fast frames are to be sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rate {
    /// As fast as the port takes them.
    Unlimited,
    /// Frames per second.
    Packets(f64),
    /// Bits per second with the given overhead per frame in bytes.
    Bits {
        /// Bits per second.
        bps: f64,
        /// [`L1_OVERHEAD_BYTES`] for a rate on the wire, [`FCS_BYTES`] for one of frames.
        overhead_bytes: u64,
    },
}

/// What the pacer did about its schedule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PacingReport {
    /// Times that a frame left more than [`STALL_NS`] after its time.
    pub stalls: u64,
    /// The longest such delay in ns.
    pub stall_ns_max: u64,
    /// Frames that left more than [`STALL_NS`] late, in a burst after a stall.
    pub late_packets: u64,
    /// By how much the schedule slipped, in ns.
    pub slipped_ns: u64,
}

/// The answer to «what now?».
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// This many frames, at least 1.
    Now(usize),
    /// Nothing before this monotonic time in ns.
    At(u64),
}

/// A schedule of frames.
#[derive(Debug)]
pub struct Pacer {
    /// Units per 1000 seconds; a unit is a frame or a bit. 0 = unlimited.
    rate_milli: u128,
    overhead_bytes: Option<u64>,
    /// How many pacers share the schedule: every so many frames is this one's.
    shares: u64,
    start_ns: Option<u64>,
    /// Units before this pacer's first frame.
    first_units: u128,
    charged_units: u128,
    charged_packets: u64,
    report: PacingReport,
    stalled: bool,
}

impl Pacer {
    /// A schedule at `rate`; it starts with the first question. A rate that is not positive and
    /// finite is taken as the smallest one, 0.001 units per second.
    pub fn new(rate: Rate) -> Self {
        let milli = |units: f64| ((units * MILLI as f64).round() as u128).max(1);
        let (rate_milli, overhead_bytes) = match rate {
            Rate::Unlimited => (0, None),
            Rate::Packets(pps) => (milli(pps), None),
            Rate::Bits { bps, overhead_bytes } => (milli(bps), Some(overhead_bytes)),
        };
        Self {
            rate_milli,
            overhead_bytes,
            shares: 1,
            start_ns: None,
            first_units: 0,
            charged_units: 0,
            charged_packets: 0,
            report: PacingReport::default(),
            stalled: false,
        }
    }

    /// Takes frames `number`, `number + shares`, … of the schedule, so that `shares` pacers together
    /// keep it evenly, to the frame; `frame_bytes` is as for [`Pacer::due`].
    #[must_use]
    pub fn share(mut self, number: u64, shares: u64, frame_bytes: usize) -> Self {
        self.shares = shares.max(1);
        self.first_units = u128::from(number) * u128::from(self.cost(frame_bytes));
        self.charged_units = self.first_units;
        self
    }

    /// Starts the schedule at this monotonic time instead of with the first question.
    pub fn start_at(&mut self, start_ns: u64) {
        self.start_ns = Some(start_ns);
    }

    /// How many frames to send at `now_ns`, at most `limit`; `frame_bytes` is the length of the
    /// next frame (or a guess of it) in bytes without FCS, which bit rates need.
    pub fn due(&mut self, now_ns: u64, limit: usize, frame_bytes: usize) -> Due {
        if self.rate_milli == 0 {
            return Due::Now(limit.max(1));
        }
        let start_ns = *self.start_ns.get_or_insert(now_ns);
        let next_ns = start_ns + self.units_to_ns(self.charged_units);
        if now_ns < next_ns {
            self.stalled = false;
            return Due::At(self.gathered(next_ns, frame_bytes));
        }
        self.note_delay(now_ns - next_ns);
        let start_ns = self.start_ns.unwrap_or(start_ns);
        let elapsed_ns = u128::from(now_ns - start_ns);
        let count = self.owed_packets(elapsed_ns, frame_bytes).max(1);
        Due::Now(usize::try_from(count).unwrap_or(limit).min(limit.max(1)))
    }

    /// Records that frames of `bytes` in all, without FCS, were taken from the schedule.
    pub fn charge(&mut self, packets: usize, bytes: u64) {
        if self.stalled {
            self.report.late_packets += packets as u64;
        }
        self.charged_packets += packets as u64;
        let units = match self.overhead_bytes {
            None => packets as u128,
            Some(overhead) => u128::from((bytes + overhead * packets as u64) * 8),
        };
        self.charged_units += units * u128::from(self.shares);
    }

    /// Frames that the schedule would have asked for but for its slips.
    pub fn slipped_packets(&self, frame_bytes: usize) -> u64 {
        if self.rate_milli == 0 {
            return 0;
        }
        let units = u128::from(self.report.slipped_ns) * self.rate_milli / (NS_PER_S * MILLI);
        (units / u128::from(self.gap_units(frame_bytes))) as u64
    }

    /// Frames due by `now_ns` and not taken, those of slips included.
    pub fn missed_packets(&self, now_ns: u64, frame_bytes: usize) -> u64 {
        let Some(elapsed_ns) = self.start_ns.and_then(|start_ns| now_ns.checked_sub(start_ns))
        else {
            return 0;
        };
        let owed = match self.rate_milli {
            0 => 0,
            _ => self.owed_packets(elapsed_ns.into(), frame_bytes) as u64,
        };
        owed + self.slipped_packets(frame_bytes)
    }

    /// Whether there is no rate to keep.
    pub fn is_unlimited(&self) -> bool {
        self.rate_milli == 0
    }

    /// By how much the next frame is behind its time, in ns; 0 if it is not due or there is no rate.
    pub fn delay_ns(&self, now_ns: u64) -> u64 {
        match self.start_ns {
            Some(start_ns) if self.rate_milli > 0 => {
                now_ns.saturating_sub(start_ns + self.units_to_ns(self.charged_units))
            }
            _ => 0,
        }
    }

    /// Frames of this pacer that are due and not taken. One unit more than elapsed: the first frame
    /// is due at once.
    fn owed_packets(&self, elapsed_ns: u128, frame_bytes: usize) -> u128 {
        let due_units = elapsed_ns * self.rate_milli / (NS_PER_S * MILLI) + 1;
        let owed = due_units.saturating_sub(self.charged_units);
        owed.div_ceil(u128::from(self.gap_units(frame_bytes)))
    }

    /// From the first frame's time to the last one's, as the rate asks, in ns; 0 if unlimited.
    pub fn asked_ns(&self) -> u64 {
        match (self.rate_milli, u128::from(self.charged_packets)) {
            (0, _) | (_, 0) => 0,
            (_, packets) => {
                let units = self.charged_units - self.first_units;
                self.units_to_ns(units - units / packets)
            }
        }
    }

    /// Stalls, late frames and slips so far.
    pub fn report(&self) -> PacingReport {
        self.report
    }

    fn cost(&self, frame_bytes: usize) -> u64 {
        self.overhead_bytes.map_or(1, |overhead| (frame_bytes as u64 + overhead) * 8)
    }

    /// Units from one frame of this pacer to its next.
    fn gap_units(&self, frame_bytes: usize) -> u64 {
        self.cost(frame_bytes) * self.shares
    }

    fn units_to_ns(&self, units: u128) -> u64 {
        u64::try_from((units * NS_PER_S * MILLI).div_ceil(self.rate_milli)).unwrap_or(u64::MAX / 2)
    }

    /// Where more than one frame is due within [`GATHER_NS`], it pays to wait for them: one system
    /// call instead of several, at the price of that much unevenness.
    fn gathered(&self, next_ns: u64, frame_bytes: usize) -> u64 {
        let gap_ns = self.units_to_ns(u128::from(self.gap_units(frame_bytes)));
        if gap_ns < GATHER_NS { next_ns + GATHER_NS - gap_ns } else { next_ns }
    }

    fn note_delay(&mut self, delay_ns: u64) {
        if delay_ns <= STALL_NS {
            self.stalled = false;
            return;
        }
        if !self.stalled {
            self.stalled = true;
            self.report.stalls += 1;
        }
        self.report.stall_ns_max = self.report.stall_ns_max.max(delay_ns);
        if delay_ns > CATCH_UP_NS {
            let slip = delay_ns - CATCH_UP_NS;
            self.report.slipped_ns += slip;
            self.start_ns = self.start_ns.map(|start| start + slip);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a schedule against a clock that obeys it; returns (frames, time of the last one).
    fn run(pacer: &mut Pacer, until_ns: u64, frame_bytes: usize) -> u64 {
        let mut now = 1_000;
        let mut frames = 0;
        while now < 1_000 + until_ns {
            match pacer.due(now, 64, frame_bytes) {
                Due::Now(count) => {
                    pacer.charge(count, (count * frame_bytes) as u64);
                    frames += count as u64;
                }
                Due::At(next) => {
                    assert!(next > now, "time goes on");
                    now = next;
                }
            }
        }
        frames
    }

    #[test]
    fn packet_rates_are_exact_over_ten_seconds() {
        for pps in [0.5, 1.0, 3.0, 999.0, 200_000.0, 1_234_567.0, 14_880_952.0] {
            let mut pacer = Pacer::new(Rate::Packets(pps));
            let frames = run(&mut pacer, 10_000_000_000, 60);
            let expected = 10.0 * pps;
            let gather = pps * GATHER_NS as f64 / 1e9;
            assert!(
                (frames as f64 - expected).abs() <= 1.0 + gather,
                "{pps}: {frames} for {expected}"
            );
            assert_eq!(pacer.report(), PacingReport::default());
        }
    }

    #[test]
    fn bit_rates_count_what_they_say() {
        for (bps, overhead_bytes, frame_bytes) in
            [(1e9, L1_OVERHEAD_BYTES, 1514), (1e9, FCS_BYTES, 1514), (1e7, L1_OVERHEAD_BYTES, 60)]
        {
            let mut pacer = Pacer::new(Rate::Bits { bps, overhead_bytes });
            let frames = run(&mut pacer, 2_000_000_000, frame_bytes);
            let bits = frames as f64 * (frame_bytes as f64 + overhead_bytes as f64) * 8.0;
            let slack = (frame_bytes as f64 + 24.0) * 8.0 * 2.0 + bps * GATHER_NS as f64 / 1e9;
            assert!((bits - 2.0 * bps).abs() <= slack, "{bps}: {bits}");
        }
    }

    #[test]
    fn line_rate_of_ten_gigabit_is_the_textbook_number() {
        let mut pacer = Pacer::new(Rate::Bits { bps: 1e10, overhead_bytes: L1_OVERHEAD_BYTES });
        let frames = run(&mut pacer, 1_000_000_000, 60);
        assert!(frames.abs_diff(14_880_952) <= 64 + 300, "{frames}");
    }

    #[test]
    fn a_stall_is_caught_up_and_said() {
        let mut pacer = Pacer::new(Rate::Packets(1_000_000.0));
        assert_eq!(pacer.due(0, 64, 60), Due::Now(1));
        pacer.charge(1, 60);
        // 5 ms late: 5,000 frames are owed and come in full batches.
        assert_eq!(pacer.due(5_000_000, 64, 60), Due::Now(64));
        let mut sent = 1;
        while let Due::Now(count) = pacer.due(5_000_000, 64, 60) {
            pacer.charge(count, 0);
            sent += count;
        }
        assert_eq!(sent, 5_001);
        let report = pacer.report();
        assert_eq!((report.stalls, report.slipped_ns), (1, 0));
        assert_eq!(report.stall_ns_max, 5_000_000 - 1_000);
        assert!(report.late_packets >= 4_000, "{report:?}");
    }

    #[test]
    fn a_long_stall_slips_instead_of_bursting() {
        let mut pacer = Pacer::new(Rate::Packets(1_000.0));
        assert_eq!(pacer.due(0, 64, 60), Due::Now(1));
        pacer.charge(1, 60);
        let now = 2_001_000_000;
        let mut burst = 0;
        while let Due::Now(count) = pacer.due(now, 64, 60) {
            pacer.charge(count, 0);
            burst += count;
        }
        assert_eq!(burst as u64, CATCH_UP_NS / 1_000_000 + 1);
        assert_eq!(pacer.report().slipped_ns, 1_900_000_000);
        assert_eq!(pacer.slipped_packets(60), 1_900);
        assert_eq!(pacer.missed_packets(now, 60), 1_900);
        assert_eq!(pacer.missed_packets(now + 50_000_000, 60), 1_950);
    }

    #[test]
    fn what_was_never_asked_for_is_missed() {
        let mut pacer = Pacer::new(Rate::Packets(1_000.0));
        assert_eq!(pacer.missed_packets(1_000, 60), 0, "it has not started");
        pacer.start_at(1_000);
        assert_eq!(pacer.missed_packets(1_000, 60), 1);
        assert_eq!(pacer.missed_packets(1_000 + 999_999_999, 60), 1_000);
        assert_eq!(pacer.delay_ns(1_000 + 5_000_000), 5_000_000);
        let mut unlimited = Pacer::new(Rate::Unlimited);
        unlimited.start_at(0);
        assert_eq!((unlimited.missed_packets(9_000, 60), unlimited.delay_ns(9_000)), (0, 0));
        let bits = Rate::Bits { bps: 8.0 * 64.0 * 1_000.0, overhead_bytes: FCS_BYTES };
        let mut pacer = Pacer::new(bits);
        pacer.start_at(0);
        assert_eq!(pacer.missed_packets(999_999_999, 60), 1_000);
    }

    #[test]
    fn shares_of_a_schedule_are_evenly_spaced_and_add_up() {
        for (shares, pps, until_ns) in [
            (1, 1_000.0, 1_000_000_000),
            (3, 1_000.0, 500_000_000),
            (4, 7_000.0, 1_000_000_000),
            (3, 100.0, 1_000_000_000_000),
        ] {
            let mut times = Vec::new();
            for number in 0..shares {
                let mut pacer = Pacer::new(Rate::Packets(pps)).share(number, shares, 60);
                pacer.start_at(0);
                let mut now = 0;
                while now < until_ns {
                    match pacer.due(now, 64, 60) {
                        Due::Now(count) => {
                            assert_eq!(count, 1, "{number} of {shares}");
                            pacer.charge(count, 60);
                            times.push(now);
                        }
                        Due::At(next) => now = next,
                    }
                }
            }
            times.sort_unstable();
            assert_eq!(times.len() as f64, pps * until_ns as f64 / 1e9);
            let gap_ns = 1e9 / pps;
            for pair in times.windows(2) {
                assert!(((pair[1] - pair[0]) as f64 - gap_ns).abs() <= 1.0, "{pair:?}");
            }
        }
    }
}
