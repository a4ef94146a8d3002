//! The generator: frames of a template at a rate, as a source that a worker receives from.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use port::null::FRAME_BYTES_MAX;
use port::{BATCH_FRAMES, Batch, Losses, PortDescription, Reason, RxCounters, RxQueue};
use sys::clock::Clock;
use wire::template::Template;

use crate::pacer::{Due, Pacer, PacingReport, Rate, STALL_NS};

/// Generators that share a schedule begin it this long after the first of them is ready: their
/// threads need a moment.
const START_AHEAD_NS: u64 = 2_000_000;

/// What generators have in common that share one schedule.
#[derive(Debug, Default)]
pub struct Common {
    /// When all of them begin; set by the first that is ready.
    start_ns: OnceLock<u64>,
    /// The first frame that none of them has made. Each batch takes the next numbers, so that none
    /// is left out, however unequally the generators get on.
    next_frame: AtomicU64,
}

/// When a generator is done. Without any limit it runs until it is stopped.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limit {
    /// After this many frames.
    pub packets: Option<u64>,
    /// After this time in ns.
    pub duration_ns: Option<u64>,
}

/// What a generator meant to do, and why it did not do all of it.
#[derive(Debug, Clone, Copy)]
pub struct GeneratorReport {
    /// Frames made and handed over.
    pub made_packets: u64,
    /// Bytes of these without FCS.
    pub made_bytes: u64,
    /// Frames meant and not made, by reason.
    pub unsent: Losses,
    /// Stalls and slips of the schedule.
    pub pacing: PacingReport,
}

/// Makes frames when they are due. To a worker it is a receiving queue.
#[derive(Debug)]
pub struct Generator {
    template: Template,
    pacer: Pacer,
    clock: Clock,
    limit: Limit,
    /// Only of one that shares its schedule.
    common: Option<Arc<Common>>,
    start_ns: u64,
    wake_ns: u64,
    stopped: bool,
    expired: bool,
    /// Its time is over before it starts.
    is_overdue: bool,
    /// Frames that were due when it was stopped.
    missed_packets: u64,
    made_packets: u64,
    made_bytes: u64,
}

impl Generator {
    /// A generator that has made nothing yet.
    pub fn new(template: Template, rate: Rate, limit: Limit, clock: Clock) -> Self {
        Self {
            template,
            pacer: Pacer::new(rate),
            clock,
            limit,
            common: None,
            start_ns: 0,
            wake_ns: 0,
            stopped: false,
            expired: false,
            is_overdue: false,
            missed_packets: 0,
            made_packets: 0,
            made_bytes: 0,
        }
    }

    /// Takes every `shares`-th time of the schedule, from time `number` on, and for each the next frame
    /// that none of those that share `common` has made.
    #[must_use]
    pub fn share(mut self, number: u64, shares: u64, common: &Arc<Common>) -> Self {
        self.pacer = self.pacer.share(number, shares, self.template.frame_bytes_max());
        self.common = (shares > 1).then(|| Arc::clone(common));
        self
    }

    /// Begins its time so early that it is over at the start, since nobody came to take frames: those that
    /// were meant are late.
    #[must_use]
    pub fn overdue(mut self) -> Self {
        self.is_overdue = true;
        self
    }

    /// Intentions and what came in their way.
    pub fn report(&self) -> GeneratorReport {
        let mut unsent = Losses::default();
        match self.limit.packets {
            Some(packets) => {
                let rest = packets - self.made_packets;
                let reason = if self.expired { Reason::Late } else { Reason::Interrupted };
                unsent.add(reason, rest);
            }
            None => {
                let slipped = self.pacer.slipped_packets(self.frame_bytes());
                unsent.add(Reason::Late, self.missed_packets.max(slipped));
            }
        }
        GeneratorReport {
            made_packets: self.made_packets,
            made_bytes: self.made_bytes,
            unsent,
            pacing: self.pacer.report(),
        }
    }

    /// The clock that schedules and stamps, for its report.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    fn end_ns(&self) -> u64 {
        self.limit.duration_ns.map_or(u64::MAX, |ns| self.start_ns.saturating_add(ns))
    }

    /// Nothing is made any more. What was due and is more than a moment late is missed.
    fn end(&mut self, now_ns: u64) {
        if std::mem::replace(&mut self.stopped, true) {
            return;
        }
        let end_ns = self.end_ns();
        self.expired = now_ns >= end_ns;
        if self.expired || self.pacer.delay_ns(now_ns) > STALL_NS {
            let last_ns = now_ns.min(end_ns - 1);
            self.missed_packets = self.pacer.missed_packets(last_ns, self.frame_bytes());
        }
    }

    fn left(&self) -> u64 {
        self.limit.packets.map_or(u64::MAX, |packets| packets - self.made_packets)
    }

    fn make(&mut self, batch: &mut Batch, count: usize) {
        let (template, time_ns) = (&mut self.template, self.clock.realtime_ns());
        if let Some(common) = &self.common {
            template.seek(common.next_frame.fetch_add(count as u64, Ordering::Relaxed), 1);
        }
        batch.reserve(template.frame_bytes_max());
        batch.write(count, |slab, stride, lengths| template.fill(slab, stride, lengths, time_ns));
        let bytes = batch.bytes();
        self.pacer.charge(count, bytes);
        self.made_packets += count as u64;
        self.made_bytes += bytes;
    }

    /// Mean length so far, which a bit rate needs to know how many frames are due.
    fn frame_bytes(&self) -> usize {
        match self.made_packets {
            0 => self.template.frame_bytes_max(),
            packets => self.made_bytes.div_ceil(packets) as usize,
        }
    }
}

impl RxQueue for Generator {
    fn start(&mut self) -> port::Result<()> {
        let now_ns = self.clock.now_ns();
        self.start_ns = match &self.common {
            Some(common) => *common.start_ns.get_or_init(|| now_ns + START_AHEAD_NS),
            None if self.is_overdue => {
                now_ns.saturating_sub(self.limit.duration_ns.unwrap_or_default())
            }
            None => now_ns,
        };
        self.pacer.start_at(self.start_ns);
        Ok(())
    }

    fn receive(&mut self, batch: &mut Batch) -> port::Result<usize> {
        batch.clear();
        if self.stopped || self.left() == 0 {
            return Ok(0);
        }
        let now_ns = self.clock.kept_ns();
        let last_ns = self.end_ns() - 1;
        let is_over = now_ns > last_ns;
        // What was due within the time still goes if it is a moment late only: then as many frames
        // as rate and time ask for are sent.
        if is_over && (self.pacer.is_unlimited() || self.pacer.delay_ns(now_ns) > STALL_NS) {
            self.end(now_ns);
            return Ok(0);
        }
        let limit = self.left().min(BATCH_FRAMES as u64) as usize;
        match self.pacer.due(now_ns.min(last_ns), limit, self.frame_bytes()) {
            Due::Now(count) => {
                self.make(batch, count);
                Ok(count)
            }
            Due::At(_) if is_over => {
                self.end(now_ns);
                Ok(0)
            }
            Due::At(wake_ns) => {
                self.wake_ns = wake_ns;
                Ok(0)
            }
        }
    }

    fn wait(&mut self, timeout: Duration) -> port::Result<()> {
        let latest_ns = self.clock.now_ns() + timeout.as_nanos() as u64;
        self.clock.sleep_until(self.wake_ns.min(latest_ns).min(self.end_ns()));
        Ok(())
    }

    fn stop(&mut self) -> port::Result<()> {
        let now_ns = self.clock.now_ns();
        self.end(now_ns);
        Ok(())
    }

    fn is_expired(&mut self) -> bool {
        self.limit.duration_ns.is_some() && self.clock.now_ns() >= self.end_ns()
    }

    fn is_finished(&mut self) -> port::Result<bool> {
        Ok(self.stopped || self.left() == 0)
    }

    fn counters(&mut self) -> port::Result<RxCounters> {
        Ok(RxCounters {
            wire_packets: self.made_packets,
            delivered_packets: self.made_packets,
            delivered_bytes: self.made_bytes,
            ..RxCounters::default()
        })
    }

    fn describe(&self) -> PortDescription {
        PortDescription {
            spec: "generator".into(),
            mechanism: "frames made from a template".into(),
            frame_bytes_max: FRAME_BYTES_MAX,
            longer_frames: None,
            link_type: 1,
            speed_bps: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::template::TemplateSpec;

    fn generator(rate: Rate, limit: Limit) -> Generator {
        let template = TemplateSpec::default().compile(1).unwrap();
        Generator::new(template, rate, limit, Clock::new().unwrap())
    }

    /// Runs to the end, as a worker with a port that takes everything does.
    fn run(generator: &mut Generator) {
        let mut batch = Batch::default();
        while generator.receive(&mut batch).unwrap() > 0 || !generator.is_finished().unwrap() {
            generator.wait(Duration::from_millis(10)).unwrap();
        }
    }

    fn limit(packets: Option<u64>, ms: u64) -> Limit {
        Limit { packets, duration_ns: Some(ms * 1_000_000) }
    }

    #[test]
    fn rate_and_time_give_the_number_of_frames_meant() {
        for (pps, ms, expected) in [(1_000.0, 50, 50), (20_000.0, 50, 1_000), (30.0, 50, 2)] {
            let mut generator = generator(Rate::Packets(pps), limit(None, ms));
            generator.start().unwrap();
            run(&mut generator);
            let report = generator.report();
            let late = report.unsent.get(Reason::Late);
            assert_eq!(report.made_packets + late, expected, "{pps}: {report:?}");
            assert_eq!(report.unsent.total(), late);
        }
    }

    #[test]
    fn frames_owed_when_the_time_is_over_are_late() {
        for packets in [None, Some(100)] {
            let mut generator = generator(Rate::Packets(1_000.0), limit(packets, 20));
            generator.start().unwrap();
            // A port that takes nothing: nobody asks for frames until the time is long over.
            std::thread::sleep(Duration::from_millis(40));
            assert!(generator.is_expired());
            generator.stop().unwrap();
            let report = generator.report();
            let expected = packets.unwrap_or(20);
            assert_eq!(report.unsent.get(Reason::Late), expected, "{report:?}");
            assert_eq!((report.made_packets, report.unsent.total()), (0, expected));
        }
    }

    #[test]
    fn a_stop_before_the_time_is_over_interrupts() {
        let mut generator = generator(Rate::Packets(1.0), limit(Some(100), 60_000));
        generator.start().unwrap();
        generator.stop().unwrap();
        let report = generator.report();
        assert_eq!(report.unsent.get(Reason::Interrupted), 100, "{report:?}");
    }

    #[test]
    fn shares_begin_together_and_add_up() {
        let common = Arc::new(Common::default());
        let mut generators: Vec<_> = (0..3)
            .map(|number| {
                generator(Rate::Packets(10_000.0), limit(None, 30)).share(number, 3, &common)
            })
            .collect();
        for generator in &mut generators {
            generator.start().unwrap();
        }
        let mut meant = 0;
        for generator in &mut generators {
            assert_eq!(generator.start_ns, *common.start_ns.get().unwrap());
            run(generator);
            let report = generator.report();
            meant += report.made_packets + report.unsent.total();
        }
        assert_eq!(meant, 300);
    }

    #[test]
    fn shares_leave_no_number_out_however_unequal_they_are() {
        let common = Arc::new(Common::default());
        let mut generators: Vec<_> = (0..3)
            .map(|number| generator(Rate::Unlimited, limit(None, 60_000)).share(number, 3, &common))
            .collect();
        let mut batch = Batch::default();
        let mut numbers = Vec::new();
        for (generator, batches) in generators.iter_mut().zip([5, 0, 1]) {
            generator.start().unwrap();
            for _ in 0..batches {
                assert_eq!(generator.receive(&mut batch).unwrap(), BATCH_FRAMES);
                numbers.extend(batch.frames().map(|frame| {
                    let headers = wire::parse::parse_ethernet(frame.data);
                    wire::stamp::read(headers.payload(frame.data)).unwrap().sequence
                }));
            }
        }
        assert_eq!(numbers, (0..6 * 64).collect::<Vec<u64>>());
    }
}
