//! What the workers of a generate run sent, added up.

use engine::generate::{Generator, GeneratorReport};
use engine::pacer::PacingReport;
use engine::{Account, Entry, Finished};
use port::{Losses, TxCounters, TxQueue};
use sys::clock::ClockReport;

/// The sum of all workers of a generate run.
pub struct Sent {
    /// What was made and what was not.
    pub made: GeneratorReport,
    /// What the port says.
    pub port: TxCounters,
    /// Time of the longest worker in ns.
    pub elapsed_ns: u64,
    /// CPU time of all workers in ns.
    pub cpu_ns: u64,
    /// The clocks of all workers; `None` without any worker.
    pub clock: Option<ClockReport>,
    /// What happened to the port.
    pub events: Vec<(u64, &'static str, port::Event)>,
    /// What ended the run early.
    pub error: Option<engine::EngineError>,
}

impl Sent {
    /// Adds up finished workers.
    pub fn of<T: TxQueue>(finished: Vec<Finished<Generator, (), T>>) -> Self {
        let mut sum = Self {
            made: GeneratorReport {
                made_packets: 0,
                made_bytes: 0,
                unsent: Losses::default(),
                pacing: PacingReport::default(),
            },
            port: TxCounters::default(),
            elapsed_ns: 0,
            cpu_ns: 0,
            clock: None,
            events: Vec::new(),
            error: None,
        };
        for mut worker in finished {
            sum.add(&worker.rx.report(), &worker.unsent);
            let clock = worker.rx.clock().report().or_worse(worker.clock);
            sum.clock = Some(sum.clock.map_or(clock, |so_far| so_far.or_worse(clock)));
            match worker.tx.counters() {
                Ok(counters) => sum.add_port(&counters),
                Err(error) => sum.error = sum.error.or(Some(error.into())),
            }
            sum.elapsed_ns = sum.elapsed_ns.max(worker.elapsed_ns);
            sum.cpu_ns += worker.cpu_ns;
            sum.events.append(&mut worker.events);
            sum.error = sum.error.or(worker.error);
        }
        sum
    }

    fn add(&mut self, report: &GeneratorReport, unsent: &Losses) {
        self.made.made_packets += report.made_packets;
        self.made.made_bytes += report.made_bytes;
        self.made.unsent.merge(&report.unsent);
        self.made.unsent.merge(unsent);
        let (sum, one) = (&mut self.made.pacing, &report.pacing);
        sum.stalls += one.stalls;
        sum.stall_ns_max = sum.stall_ns_max.max(one.stall_ns_max);
        sum.late_packets += one.late_packets;
        sum.slipped_ns = sum.slipped_ns.max(one.slipped_ns);
    }

    /// Queues of one device share its counters: each has seen all of it, the first reading counts.
    fn add_port(&mut self, counters: &TxCounters) {
        self.port.accepted_packets += counters.accepted_packets;
        self.port.accepted_bytes += counters.accepted_bytes;
        self.port.blocked_times += counters.blocked_times;
        self.port.added_packets += counters.added_packets;
        self.port.dropped.merge(&counters.dropped);
        self.port.device = match (self.port.device, counters.device) {
            (Some(one), Some(other)) if one.packets_max >= other.packets_max => Some(one),
            (one, other) => other.or(one),
        };
    }

    /// The sender's account of the run.
    pub fn account(&self, port: &str, count: Option<u64>) -> Account {
        let unsent = self.made.unsent;
        // What was made and is still in a batch was counted as unsent by the worker.
        let intended = count.unwrap_or(self.made.made_packets + self.slipped());
        let entry = if unsent.total() == 0 {
            Entry::new("intended", intended, self.made.made_bytes)
        } else {
            Entry::packets("intended", intended)
        };
        Account::of_sender(port, entry, &unsent, &self.port)
    }

    fn slipped(&self) -> u64 {
        self.made.unsent.get(port::Reason::Late)
    }
}
