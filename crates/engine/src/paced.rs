//! Replay timing: frames of a source are held until their time has come.
//!
//! The time of a frame is that of its recording (at the original pace or a multiple of it) or the
//! next place in a schedule (a rate). How far the hand-over was from the time asked for is measured
//! for every frame and reported.

use std::time::Duration;

use port::{Batch, FrameMeta, PortDescription, Reason, RxCounters, RxQueue};
use sys::clock::Clock;

use crate::histogram::Histogram;
use crate::pacer::{Due, Pacer, PacingReport, Rate};

/// When recorded frames are sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// With the gaps of the recording divided by this factor.
    Recorded(f64),
    /// At a rate, whatever the recording says.
    Rate(Rate),
}

/// How well the asked times were met.
#[derive(Debug, Clone)]
pub struct PaceReport {
    /// Delay of each frame's hand-over behind its time, in ns. Empty for unlimited rates.
    pub delay_ns: Histogram,
    /// From the first frame's time to the last frame's, as asked, in ns. 0 for unlimited rates.
    pub asked_ns: u64,
    /// From the first frame's hand-over to the last frame's, in ns.
    pub achieved_ns: u64,
    /// Frames whose recorded time lies before that of the frame ahead of them; sent at once.
    pub backward_packets: u64,
    /// Stalls and slips of a rate's schedule.
    pub pacing: PacingReport,
}

/// A source whose frames are given out when their time has come.
#[derive(Debug)]
pub struct Paced<R> {
    inner: R,
    clock: Clock,
    schedule: Schedule,
    batch: Batch,
    /// First frame of `batch` that has not been given out.
    next: usize,
    wake_ns: u64,
    /// How long it gives frames out, and until when; set when it is started.
    duration_ns: Option<u64>,
    end_ns: u64,
    stopped: bool,
    first_ns: Option<u64>,
    last_ns: u64,
    given_packets: u64,
    given_bytes: u64,
}

#[derive(Debug)]
enum Schedule {
    Recorded(Recorded),
    Rate(Pacer),
}

#[derive(Debug)]
struct Recorded {
    factor: f64,
    /// Recorded time of the first frame and the monotonic time at which it was sent.
    origin: Option<(u64, u64)>,
    newest_time_ns: u64,
    backward_packets: u64,
    delay_ns: Histogram,
}

impl Recorded {
    /// Monotonic time at which a frame recorded at `time_ns` is due.
    fn due_ns(&mut self, time_ns: u64, now_ns: u64) -> u64 {
        let (origin_time_ns, origin_ns) = *self.origin.get_or_insert((time_ns, now_ns));
        let offset_ns = time_ns.saturating_sub(origin_time_ns);
        origin_ns.saturating_add((offset_ns as f64 / self.factor) as u64)
    }

    fn note(&mut self, time_ns: u64, due_ns: u64, now_ns: u64) {
        self.backward_packets += u64::from(time_ns < self.newest_time_ns);
        self.newest_time_ns = self.newest_time_ns.max(time_ns);
        self.delay_ns.record(now_ns.saturating_sub(due_ns));
    }
}

impl<R: RxQueue> Paced<R> {
    /// Gives the frames of `inner` out at `pace`.
    pub fn new(inner: R, pace: Pace, clock: Clock) -> Self {
        let schedule = match pace {
            Pace::Recorded(factor) => Schedule::Recorded(Recorded {
                factor,
                origin: None,
                newest_time_ns: 0,
                backward_packets: 0,
                delay_ns: Histogram::default(),
            }),
            Pace::Rate(rate) => Schedule::Rate(Pacer::new(rate)),
        };
        Self {
            inner,
            clock,
            schedule,
            batch: Batch::default(),
            next: 0,
            wake_ns: 0,
            duration_ns: None,
            end_ns: u64::MAX,
            stopped: false,
            first_ns: None,
            last_ns: 0,
            given_packets: 0,
            given_bytes: 0,
        }
    }

    /// Ends this long after its start, whatever is left; without a duration with the source.
    #[must_use]
    pub fn lasting(mut self, duration: Option<Duration>) -> Self {
        let ns = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.duration_ns = duration.map(ns);
        self
    }

    /// The source.
    pub fn inner(&self) -> &R {
        &self.inner
    }

    /// The clock that schedules, for its report.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// How well the asked times were met.
    pub fn report(&self) -> PaceReport {
        let achieved_ns = self.first_ns.map_or(0, |first_ns| self.last_ns - first_ns);
        match &self.schedule {
            Schedule::Recorded(recorded) => PaceReport {
                asked_ns: recorded.origin.map_or(0, |(first_ns, _)| {
                    let span_ns = recorded.newest_time_ns - first_ns.min(recorded.newest_time_ns);
                    (span_ns as f64 / recorded.factor) as u64
                }),
                achieved_ns,
                delay_ns: recorded.delay_ns.clone(),
                backward_packets: recorded.backward_packets,
                pacing: PacingReport::default(),
            },
            Schedule::Rate(pacer) => PaceReport {
                asked_ns: pacer.asked_ns(),
                achieved_ns,
                delay_ns: Histogram::default(),
                backward_packets: 0,
                pacing: pacer.report(),
            },
        }
    }

    /// Frames of the current batch that are due now; sets the time to wake up.
    fn due(&mut self, now_ns: u64) -> usize {
        let waiting = self.batch.len() - self.next;
        let frame_bytes = self.batch.frames().nth(self.next).map_or(0, |f| f.data.len());
        match &mut self.schedule {
            Schedule::Rate(pacer) => match pacer.due(now_ns, waiting, frame_bytes) {
                Due::Now(count) => count.min(waiting),
                Due::At(wake_ns) => {
                    self.wake_ns = wake_ns;
                    0
                }
            },
            Schedule::Recorded(recorded) => {
                let mut count = 0;
                for frame in self.batch.frames().skip(self.next).take(waiting) {
                    let due_ns = recorded.due_ns(frame.meta.time_ns, now_ns);
                    if due_ns > now_ns {
                        self.wake_ns = due_ns;
                        break;
                    }
                    recorded.note(frame.meta.time_ns, due_ns, now_ns);
                    count += 1;
                }
                count
            }
        }
    }

    /// Copies the next `count` frames to `batch`.
    fn give(&mut self, batch: &mut Batch, count: usize, now_ns: u64) -> usize {
        let due = self.batch.frames().skip(self.next).take(count);
        batch.reserve(due.clone().map(|frame| frame.data.len()).max().unwrap_or(0));
        for frame in due {
            // The slots were made long enough, and both batches hold 64 frames.
            let _ = batch.push(frame.data, FrameMeta { ..frame.meta });
        }
        self.next += count;
        let bytes = batch.bytes();
        if let Schedule::Rate(pacer) = &mut self.schedule {
            pacer.charge(count, bytes);
        }
        self.first_ns.get_or_insert(now_ns);
        self.last_ns = now_ns;
        self.given_packets += count as u64;
        self.given_bytes += bytes;
        count
    }
}

impl<R: RxQueue> RxQueue for Paced<R> {
    fn start(&mut self) -> port::Result<()> {
        let start_ns = self.clock.now_ns();
        self.end_ns = self.duration_ns.map_or(u64::MAX, |ns| start_ns.saturating_add(ns));
        self.inner.start()
    }

    fn receive(&mut self, batch: &mut Batch) -> port::Result<usize> {
        batch.clear();
        if self.stopped {
            return Ok(0);
        }
        let now_ns = self.clock.kept_ns();
        if now_ns >= self.end_ns {
            self.stop()?;
            return Ok(0);
        }
        if self.next >= self.batch.len() {
            self.next = 0;
            self.wake_ns = 0;
            if self.inner.receive(&mut self.batch)? == 0 {
                return Ok(0);
            }
        }
        match self.due(now_ns) {
            0 => Ok(0),
            count => Ok(self.give(batch, count, now_ns)),
        }
    }

    fn wait(&mut self, timeout: Duration) -> port::Result<()> {
        if self.next >= self.batch.len() {
            return self.inner.wait(timeout);
        }
        let latest_ns = self.clock.now_ns() + timeout.as_nanos() as u64;
        self.clock.sleep_until(self.wake_ns.min(latest_ns).min(self.end_ns));
        Ok(())
    }

    fn stop(&mut self) -> port::Result<()> {
        self.stopped = true;
        self.inner.stop()
    }

    fn is_expired(&mut self) -> bool {
        self.clock.now_ns() >= self.end_ns
    }

    fn is_finished(&mut self) -> port::Result<bool> {
        Ok(self.stopped || (self.next >= self.batch.len() && self.inner.is_finished()?))
    }

    fn counters(&mut self) -> port::Result<RxCounters> {
        let mut counters = self.inner.counters()?;
        // Frames that were read and whose time has not come: lost if the replay ends now.
        let held = counters.delivered_packets - self.given_packets;
        counters.dropped.add(Reason::Interrupted, held);
        counters.delivered_packets = self.given_packets;
        counters.delivered_bytes = self.given_bytes;
        Ok(counters)
    }

    fn describe(&self) -> PortDescription {
        self.inner.describe()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use port::{TxQueue, memory};

    /// A source of frames recorded at these times, at its recorded pace.
    fn paced(times_ns: &[u64], duration: Option<Duration>) -> Paced<memory::MemoryRx> {
        let (mut tx, rx) = memory::pair("paced", 1);
        let mut batch = Batch::new(60);
        for &time_ns in times_ns {
            assert!(batch.push(&[1; 60], FrameMeta { time_ns, ..FrameMeta::local(60) }));
        }
        assert_eq!(tx.transmit(&mut batch).unwrap(), times_ns.len());
        Paced::new(rx, Pace::Recorded(1.0), Clock::new().unwrap()).lasting(duration)
    }

    /// Runs to the end, as a worker with a port that takes everything does.
    fn run(paced: &mut Paced<memory::MemoryRx>) -> usize {
        let mut batch = Batch::default();
        let mut given = 0;
        paced.start().unwrap();
        loop {
            match paced.receive(&mut batch).unwrap() {
                0 if paced.is_finished().unwrap() => return given,
                0 => paced.wait(Duration::from_secs(3_600)).unwrap(),
                count => given += count,
            }
        }
    }

    const HOUR_NS: u64 = 3_600_000_000_000;

    #[test]
    fn the_time_ends_a_wait_for_a_frame_that_is_far_off() {
        let mut paced = paced(&[0, 1_000, HOUR_NS], Some(Duration::from_millis(20)));
        assert_eq!(run(&mut paced), 2);
        assert!(paced.is_expired());
        let counters = paced.counters().unwrap();
        assert_eq!((counters.wire_packets, counters.delivered_packets), (3, 2));
        assert_eq!(counters.dropped.get(Reason::Interrupted), 1);
    }

    #[test]
    fn what_is_due_behind_the_time_is_not_given_out() {
        let mut paced = paced(&[0, 1_000], Some(Duration::from_millis(5)));
        paced.start().unwrap();
        // A port that takes nothing: nobody asks for frames until the time is over.
        assert!(!paced.is_expired());
        std::thread::sleep(Duration::from_millis(10));
        assert!(paced.is_expired());
        let mut batch = Batch::default();
        assert_eq!(paced.receive(&mut batch).unwrap(), 0);
        assert!(paced.is_finished().unwrap());
        assert_eq!(paced.counters().unwrap().delivered_packets, 0);
    }

    #[test]
    fn without_a_time_the_source_ends_it() {
        let mut paced = paced(&[0, 1_000, 2_000], None);
        assert_eq!(run(&mut paced), 3);
        assert!(!paced.is_expired());
        assert_eq!(paced.counters().unwrap().dropped.total(), 0);
    }
}
