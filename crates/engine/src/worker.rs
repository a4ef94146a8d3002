//! One thread that runs queues to completion: receive → stage → transmit.

use std::sync::Arc;
use std::time::Duration;

use port::{Batch, Event, Losses, Reason, RxCounters, RxQueue, TxQueue};
use sys::clock::{Clock, ClockReport};

use crate::error::Result;
use crate::live::Live;
use crate::stages::Stage;
use crate::stop::Stop;

/// Longest sleep without a look at the stop flag.
const WAIT: Duration = Duration::from_millis(10);

/// Time between two looks at counters that cost a system call.
const TICK_NS: u64 = 100_000_000;

/// Time that a port which takes nothing gets to take the last frames after a stop was asked for, and that
/// the reader of a pipe may pause then. A port that has taken nothing for as long when the run is to
/// end had it already.
const GRACE_NS: u64 = 1_000_000_000;

/// The same when the source's own time is over.
const EXPIRED_GRACE_NS: u64 = 100_000_000;

/// How long accepted frames get to leave the port at the end.
const FLUSH: Duration = Duration::from_secs(5);

/// A receiving queue, a stage and a sending queue, before or during their run.
#[derive(Debug)]
pub struct Worker<R, S, T> {
    /// Where frames come from.
    pub rx: R,
    /// What is done with them.
    pub stage: S,
    /// Where they go.
    pub tx: T,
    /// The CPU to stay on.
    pub cpu: Option<usize>,
    /// Ends the run.
    pub stop: Stop,
    /// Shows the run.
    pub live: Arc<Live>,
}

/// A worker after its run: everything that it was made of, to be asked for its account.
#[derive(Debug)]
pub struct Finished<R, S, T> {
    /// Where frames came from.
    pub rx: R,
    /// What was done with them.
    pub stage: S,
    /// Where they went.
    pub tx: T,
    /// Frames that were received and did not reach the sending port, by reason.
    pub unsent: Losses,
    /// Things that happened to the ports: time in monotonic ns, which side, what.
    pub events: Vec<(u64, &'static str, Event)>,
    /// CPU time of the thread in ns.
    pub cpu_ns: u64,
    /// Time from start to the last frame handed over, in ns.
    pub elapsed_ns: u64,
    /// What the worker's clock was and how well it kept time.
    pub clock: ClockReport,
    /// What ended the run early.
    pub error: Option<crate::EngineError>,
}

impl<R: RxQueue, S: Stage, T: TxQueue> Worker<R, S, T> {
    /// Runs until the source ends, the stop flag is raised or something fails. Never panics on a
    /// port's account: a failure is part of the result, and so is what was counted until then.
    /// The calling thread stays on the worker's CPU, and threads that it starts later inherit that.
    pub fn run(self, clock: Clock) -> Finished<R, S, T> {
        if let Some(cpu) = self.cpu {
            // A CPU that may not be used is a matter of speed, not of truth: the plan says so.
            let _ = sys::cpu::pin_thread(cpu);
        }
        let mut run = Run {
            worker: self,
            clock,
            unsent: Losses::default(),
            events: Vec::new(),
            tick_ns: 0,
            refused_ns: None,
            give_up_ns: None,
        };
        let start_ns = run.clock.now_ns();
        let error = run.work().err();
        let elapsed_ns = run.clock.now_ns() - start_ns;
        let error = error.or(run.finish().err());
        let Run { worker, clock, unsent, events, .. } = run;
        Finished {
            rx: worker.rx,
            stage: worker.stage,
            tx: worker.tx,
            unsent,
            events,
            cpu_ns: sys::cpu::thread_cpu_ns(),
            elapsed_ns,
            clock: clock.report(),
            error,
        }
    }
}

struct Run<R, S, T> {
    worker: Worker<R, S, T>,
    clock: Clock,
    unsent: Losses,
    events: Vec<(u64, &'static str, Event)>,
    tick_ns: u64,
    /// Since when the port takes nothing.
    refused_ns: Option<u64>,
    /// Set when the run is to end: from then on a port that takes nothing is not waited for.
    give_up_ns: Option<u64>,
}

impl<R: RxQueue, S: Stage, T: TxQueue> Run<R, S, T> {
    fn work(&mut self) -> Result<()> {
        let mut batch = Batch::default();
        self.worker.rx.start()?;
        self.worker.live.started.set(1);
        loop {
            self.housekeep()?;
            if self.worker.rx.receive(&mut batch)? == 0 {
                if self.worker.rx.is_finished()? {
                    return Ok(());
                }
                self.worker.rx.wait(WAIT)?;
                continue;
            }
            self.worker.live.received_packets.add(batch.len() as u64);
            self.worker.live.received_bytes.add(batch.bytes());
            self.worker.stage.process(&mut batch)?;
            self.transmit(&mut batch)?;
        }
    }

    /// Hands a batch over, however often the port wants to be asked.
    fn transmit(&mut self, batch: &mut Batch) -> Result<()> {
        self.refused_ns = None;
        while !batch.is_empty() {
            let bytes = batch.bytes();
            let accepted = self.worker.tx.transmit(batch).inspect_err(|_| {
                self.unsent.add(Reason::Rejected, batch.len() as u64);
            })?;
            if accepted > 0 {
                self.refused_ns = None;
                self.worker.live.transmitted_packets.add(accepted as u64);
                self.worker.live.transmitted_bytes.add(bytes - batch.bytes());
                continue;
            }
            if self.refused_ns.is_none() {
                self.refused_ns = Some(self.clock.now_ns());
            }
            self.worker.tx.wait(WAIT)?;
            self.housekeep()?;
            if self.give_up_ns.is_none() && self.worker.rx.is_expired() {
                self.end(EXPIRED_GRACE_NS)?;
            }
            if self.give_up_ns.is_some_and(|give_up_ns| self.clock.now_ns() > give_up_ns) {
                self.unsent.add(Reason::RingFull, batch.len() as u64);
                batch.clear();
            }
        }
        Ok(())
    }

    /// Once per batch: the flag and the clock. Ten times a second: counters that cost more.
    fn housekeep(&mut self) -> Result<()> {
        let now_ns = self.clock.kept_ns();
        if self.give_up_ns.is_none() && self.worker.stop.is_requested() {
            self.end(GRACE_NS)?;
        }
        if now_ns.saturating_sub(self.tick_ns) >= TICK_NS {
            self.tick_ns = now_ns;
            self.tick(now_ns)?;
        }
        Ok(())
    }

    fn end(&mut self, grace_ns: u64) -> Result<()> {
        let since_ns = self.refused_ns.unwrap_or_else(|| self.clock.now_ns());
        self.give_up_ns = Some(since_ns + grace_ns);
        Ok(self.worker.rx.stop()?)
    }

    fn tick(&mut self, now_ns: u64) -> Result<()> {
        let counters = self.worker.rx.counters()?;
        // What waits for its turn is lost only if the run ends before.
        let waiting = counters.dropped.get(Reason::Interrupted);
        self.worker.live.dropped_packets.set(counters.dropped.total() - waiting);
        self.worker.stage.tick(now_ns, &counters, &self.worker.live)?;
        self.note_events(now_ns);
        Ok(())
    }

    fn note_events(&mut self, now_ns: u64) {
        while let Some(event) = self.worker.rx.next_event() {
            self.events.push((now_ns, "receive", event));
        }
        while let Some(event) = self.worker.tx.next_event() {
            self.events.push((now_ns, "transmit", event));
        }
    }

    fn finish(&mut self) -> Result<()> {
        self.note_events(self.clock.now_ns());
        let counters: RxCounters = self.worker.rx.counters()?;
        self.worker.live.dropped_packets.set(counters.dropped.total());
        self.worker.stage.finish(&counters)?;
        self.flush()
    }

    /// Accepted frames leave. Whoever reads them may take his time until a stop is asked for or the
    /// source's time is over, and then as long as he goes on.
    fn flush(&mut self) -> Result<()> {
        let tx = &mut self.worker.tx;
        let Some(mut taken_bytes) = tx.taken_bytes() else {
            tx.flush(FLUSH)?;
            return Ok(());
        };
        let mut moved_ns = self.clock.now_ns();
        while !tx.flush(WAIT)? {
            let now_ns = self.clock.now_ns();
            let before_bytes = std::mem::replace(&mut taken_bytes, tx.taken_bytes().unwrap_or(0));
            let is_over = self.worker.stop.is_requested() || self.worker.rx.is_expired();
            if taken_bytes > before_bytes || !is_over {
                moved_ns = now_ns;
            } else if now_ns - moved_ns > GRACE_NS {
                tx.abandon();
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
