//! The interface's own counters over the time of a run, read beside those of the socket.

use std::time::{Duration, Instant};

use sys::link::{LinkStatistics, LinkStatisticsReader};
use sys::namespace::Namespace;

use crate::counters::DeviceCount;
use crate::error::Result;

/// A device whose counters lag behind (drivers refresh them about once a second) gets this long.
const COUNTERS_LAG: Duration = Duration::from_millis(2_500);

/// Between two readings that tell whether frames are passing at the moment.
const QUIET: Duration = Duration::from_millis(2);

/// Reads the counters of one interface from a beginning on. The interface may vanish and return:
/// what it counted before is kept.
#[derive(Debug)]
pub struct Device {
    namespace: Namespace,
    name: String,
    reader: LinkStatisticsReader,
    before: LinkStatistics,
    last: LinkStatistics,
    sum: LinkStatistics,
    /// Whether every reading succeeded: else the figures are a lower bound.
    pub(crate) is_complete: bool,
}

impl Device {
    /// Begins to count on an interface of the calling thread's namespace.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn open(name: &str) -> Result<Self> {
        let namespace = Namespace::current()?;
        let mut reader = LinkStatisticsReader::open(&namespace, name)?;
        let before = reader.read()?;
        Ok(Self {
            namespace,
            name: name.into(),
            reader,
            before,
            last: before,
            sum: LinkStatistics::default(),
            is_complete: true,
        })
    }

    /// Begins again, from now on.
    pub(crate) fn restart(&mut self) -> Result<()> {
        self.before = self.reader.read()?;
        self.last = self.before;
        self.sum = LinkStatistics::default();
        Ok(())
    }

    /// What it has sent and what it dropped instead; `None` if it was away meanwhile.
    pub fn sent(&mut self) -> Option<DeviceCount> {
        let counted = self.counted();
        self.is_complete.then_some(DeviceCount {
            packets_min: counted.tx_packets,
            packets_max: counted.tx_packets,
            dropped_packets: counted.tx_dropped + counted.tx_errors,
            unexplained_packets: 0,
        })
    }

    /// Waits for it to have sent as many frames as it was given, for as long after `begun` as its counters may
    /// lag behind. An account that is not whole is held against nobody: it is not waited for either.
    pub(crate) fn wait_sent(&mut self, packets: u64, begun: Instant, timeout: Duration) {
        let deadline = begun + COUNTERS_LAG.min(timeout);
        while self.sent().is_some_and(|sent| sent.packets_max < packets)
            && Instant::now() < deadline
        {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Whether frames are being received just now.
    pub(crate) fn is_receiving(&mut self) -> Result<bool> {
        let first = self.reader.read()?;
        std::thread::sleep(QUIET);
        Ok(self.reader.read()?.rx_packets != first.rx_packets)
    }

    /// What was counted since the beginning. While the interface is away: as of the last reading.
    pub(crate) fn counted(&mut self) -> LinkStatistics {
        match self.reader.read() {
            Ok(now) => self.last = now,
            Err(_) => self.is_complete = false,
        }
        add(&self.sum, &self.last.since(&self.before))
    }

    /// The interface was replaced by another of the same name: goes on with that one.
    pub(crate) fn reopen(&mut self) -> Result<()> {
        let mut reader = LinkStatisticsReader::open(&self.namespace, &self.name)?;
        let now = reader.read()?;
        self.sum = add(&self.sum, &self.last.since(&self.before));
        self.reader = reader;
        self.before = now;
        self.last = now;
        self.is_complete = false;
        Ok(())
    }
}

/// The sums that ports use.
fn add(one: &LinkStatistics, other: &LinkStatistics) -> LinkStatistics {
    LinkStatistics {
        rx_packets: one.rx_packets + other.rx_packets,
        tx_packets: one.tx_packets + other.tx_packets,
        rx_dropped: one.rx_dropped + other.rx_dropped,
        tx_dropped: one.tx_dropped + other.tx_dropped,
        tx_errors: one.tx_errors + other.tx_errors,
        rx_missed_errors: one.rx_missed_errors + other.rx_missed_errors,
        rx_fifo_errors: one.rx_fifo_errors + other.rx_fifo_errors,
        rx_over_errors: one.rx_over_errors + other.rx_over_errors,
        ..LinkStatistics::default()
    }
}
