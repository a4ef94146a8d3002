//! The generator: frames of a template at a rate, as a source that a worker receives from.

use std::time::Duration;

use port::null::FRAME_BYTES_MAX;
use port::{BATCH_FRAMES, Batch, Losses, PortDescription, Reason, RxCounters, RxQueue};
use sys::clock::Clock;
use wire::template::Template;

use crate::pacer::{Due, Pacer, PacingReport, Rate};

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
    start_ns: u64,
    wake_ns: u64,
    stopped: bool,
    expired: bool,
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
            start_ns: 0,
            wake_ns: 0,
            stopped: false,
            expired: false,
            made_packets: 0,
            made_bytes: 0,
        }
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
            None => unsent.add(Reason::Late, self.pacer.slipped_packets()),
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

    fn left(&self) -> u64 {
        self.limit.packets.map_or(u64::MAX, |packets| packets - self.made_packets)
    }

    fn make(&mut self, batch: &mut Batch, count: usize) {
        let (template, time_ns) = (&mut self.template, self.clock.realtime_ns());
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
        self.start_ns = self.clock.now_ns();
        Ok(())
    }

    fn receive(&mut self, batch: &mut Batch) -> port::Result<usize> {
        batch.clear();
        if self.stopped || self.left() == 0 {
            return Ok(0);
        }
        let now_ns = self.clock.kept_ns();
        if self.limit.duration_ns.is_some_and(|duration_ns| now_ns >= self.start_ns + duration_ns) {
            self.expired = true;
            self.stopped = true;
            return Ok(0);
        }
        let limit = self.left().min(BATCH_FRAMES as u64) as usize;
        match self.pacer.due(now_ns, limit, self.frame_bytes()) {
            Due::Now(count) => {
                self.make(batch, count);
                Ok(count)
            }
            Due::At(wake_ns) => {
                self.wake_ns = wake_ns;
                Ok(0)
            }
        }
    }

    fn wait(&mut self, timeout: Duration) -> port::Result<()> {
        let latest_ns = self.clock.now_ns() + timeout.as_nanos() as u64;
        let end_ns = self.limit.duration_ns.map_or(u64::MAX, |ns| self.start_ns + ns);
        self.clock.sleep_until(self.wake_ns.min(latest_ns).min(end_ns));
        Ok(())
    }

    fn stop(&mut self) -> port::Result<()> {
        self.stopped = true;
        Ok(())
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
            link_type: 1,
            speed_bps: None,
        }
    }
}
