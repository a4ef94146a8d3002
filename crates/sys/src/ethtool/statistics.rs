//! The counters that a driver keeps beside the common ones, by names of its own.

use super::Ethtool;
use super::request::{self, ChannelCounts, DriverInformation, Variable};
use crate::netlink::text;
use crate::{Error, Kind, Result};

/// `ETH_SS_STATS` of `enum ethtool_stringset`, the names of the counters.
const NAMES_OF_COUNTERS: u32 = 1;
/// `ETH_GSTRING_LEN`.
const NAME_BYTES: usize = 32;
/// More counters than any driver has by far; beyond it the request is refused.
const COUNTERS_MAX: usize = 1 << 20;

impl Ethtool {
    /// The driver's own counters by name, in the driver's order (`ETHTOOL_GSTATS`); what
    /// `ethtool -S` shows. Empty when it keeps none.
    ///
    /// Drops inside the hardware and per queue are often found only here. For a veth:
    /// `rx_queue_N_drops`, `rx_queue_N_xdp_drops`, `tx_queue_N_xdp_xmit_errors`, and others of
    /// veth_get_strings in drivers/net/veth.c.
    ///
    /// # Errors
    /// [`Kind::NotFound`] when the interface is gone.
    pub fn statistics(&self) -> Result<Vec<(String, u64)>> {
        const ACTION: &str = "reading the driver's counters";
        let mut driver = DriverInformation::default();
        match self.perform(ACTION, &mut driver) {
            // Interfaces without any driver setting, such as the loopback.
            Err(error) if error.kind() == Kind::Unsupported => return Ok(Vec::new()),
            result => result?,
        }
        let now = driver.statistics;
        if now == 0 {
            return Ok(Vec::new());
        }
        let room = self.room(now)?;
        let count = |answer: &[u8], at: usize| -> usize {
            let word = answer.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
            word.map_or(0, u32::from_ne_bytes) as usize
        };
        let names =
            self.variable(ACTION, Variable::names(NAMES_OF_COUNTERS, now, room, NAME_BYTES))?;
        let values = self.variable(ACTION, Variable::counters(now, room))?;
        // The counts come back as the kernel found them, or as 0 from kernels that noticed a
        // change themselves.
        if [count(&names, 8), count(&values, 4)] != [now as usize; 2] {
            let source = std::io::Error::from_raw_os_error(libc::EBUSY);
            return Err(Error::new(format!("{ACTION} of {}", self.name()), source)
                .remedy("repeat it: the driver's queues were changed meanwhile"));
        }
        let names = names.get(12..).unwrap_or_default().chunks_exact(NAME_BYTES).map(text);
        let numbers = values.get(8..).unwrap_or_default().as_chunks::<8>().0;
        let numbers = numbers.iter().map(|bytes| u64::from_ne_bytes(*bytes));
        Ok(names.zip(numbers).take(now as usize).collect())
    }

    /// How many counters there may be at most while they are read.
    ///
    /// The kernel writes as many as there are at that moment, whatever room was announced. Their
    /// number grows only with channels, and a channel has at most as many as all there are now.
    fn room(&self, now: u32) -> Result<usize> {
        let channels: ChannelCounts = match self.channel_counts() {
            Err(error) if error.kind() == Kind::Unsupported => ChannelCounts::default(),
            result => result?,
        };
        let more = [channels.max_rx, channels.max_tx, channels.max_combined, channels.max_other];
        let channels_max = more.iter().fold(1, |sum: usize, max| sum.saturating_add(*max as usize));
        let room = (now as usize).saturating_mul(channels_max);
        if room > COUNTERS_MAX {
            let source = std::io::Error::from_raw_os_error(libc::EOPNOTSUPP);
            return Err(Error::new(
                format!("reading the {room} possible counters of {}", self.name()),
                source,
            ));
        }
        Ok(room)
    }

    fn variable(&self, action: &str, mut variable: Variable) -> Result<Vec<u8>> {
        request::perform_variable(&self.socket, &self.name, &mut variable)
            .map_err(|source| Error::new(format!("{action} of {}", self.name), source))?;
        Ok(variable.into_bytes())
    }
}
