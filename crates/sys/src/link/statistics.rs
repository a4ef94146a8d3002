//! The 64-bit counters that the kernel keeps for every interface.

use netlink_packet_route::link::{LinkMessage, Stats64};

use super::{HEADER_BYTES, Links, bytes_of};
use crate::namespace::Namespace;
use crate::netlink::{NetlinkSocket, attribute, undecodable};
use crate::{Error, Kind, Result};

/// `IFLA_STATS64` of linux/if_link.h.
const IFLA_STATS64: u16 = 23;

/// The counters of `struct rtnl_link_stats64` (linux/if_link.h), since the interface was made.
///
/// Bytes are of layer 2 without FCS where the driver follows the rule; veth counts 14 bytes less
/// per received frame when it receives by NAPI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct LinkStatistics {
    /// Frames received well, including those that the host dropped later.
    pub rx_packets: u64,
    /// Frames transmitted well.
    pub tx_packets: u64,
    /// Bytes of `rx_packets`.
    pub rx_bytes: u64,
    /// Bytes of `tx_packets`.
    pub tx_bytes: u64,
    /// Frames received damaged, all reasons together.
    pub rx_errors: u64,
    /// Frames that failed to go out, all reasons together.
    pub tx_errors: u64,
    /// Frames received well and dropped by the host: no buffer, a full backlog, or nobody who
    /// wanted them. A frame that no protocol and no packet socket takes counts here too
    /// (`__netif_receive_skb_core` in net/core/dev.c).
    pub rx_dropped: u64,
    /// Frames dropped on the way out; for veth also those that the peer did not take.
    pub tx_dropped: u64,
    /// Multicast frames received, where the hardware counts them.
    pub rx_multicast: u64,
    /// Collisions, on half-duplex media.
    pub collisions: u64,
    /// Received frames of a wrong length.
    pub rx_length_errors: u64,
    /// Received frames lost to a full ring of the receiver.
    pub rx_over_errors: u64,
    /// Received frames with a wrong FCS.
    pub rx_crc_errors: u64,
    /// Received frames that were not aligned to bytes.
    pub rx_frame_errors: u64,
    /// Received frames lost to a full FIFO of the hardware.
    pub rx_fifo_errors: u64,
    /// Frames that the host was too slow to take from the hardware; not part of `rx_packets`.
    pub rx_missed_errors: u64,
    /// Transmissions given up.
    pub tx_aborted_errors: u64,
    /// Transmissions that lost the carrier.
    pub tx_carrier_errors: u64,
    /// Transmissions lost to an empty FIFO of the hardware.
    pub tx_fifo_errors: u64,
    /// Frames received on an inactive member of a bond or team, and dropped for that.
    pub rx_nohandler: u64,
    /// Frames for another host's address that IP dropped (Linux 5.19).
    pub rx_otherhost_dropped: u64,
}

impl LinkStatistics {
    /// What was counted since `earlier`, a reading of the same interface.
    ///
    /// A counter that went backwards, as when an interface was replaced by another of the same
    /// name, counts from 0 again.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let difference = |now: u64, then: u64| now.checked_sub(then).unwrap_or(now);
        Self {
            rx_packets: difference(self.rx_packets, earlier.rx_packets),
            tx_packets: difference(self.tx_packets, earlier.tx_packets),
            rx_bytes: difference(self.rx_bytes, earlier.rx_bytes),
            tx_bytes: difference(self.tx_bytes, earlier.tx_bytes),
            rx_errors: difference(self.rx_errors, earlier.rx_errors),
            tx_errors: difference(self.tx_errors, earlier.tx_errors),
            rx_dropped: difference(self.rx_dropped, earlier.rx_dropped),
            tx_dropped: difference(self.tx_dropped, earlier.tx_dropped),
            rx_multicast: difference(self.rx_multicast, earlier.rx_multicast),
            collisions: difference(self.collisions, earlier.collisions),
            rx_length_errors: difference(self.rx_length_errors, earlier.rx_length_errors),
            rx_over_errors: difference(self.rx_over_errors, earlier.rx_over_errors),
            rx_crc_errors: difference(self.rx_crc_errors, earlier.rx_crc_errors),
            rx_frame_errors: difference(self.rx_frame_errors, earlier.rx_frame_errors),
            rx_fifo_errors: difference(self.rx_fifo_errors, earlier.rx_fifo_errors),
            rx_missed_errors: difference(self.rx_missed_errors, earlier.rx_missed_errors),
            tx_aborted_errors: difference(self.tx_aborted_errors, earlier.tx_aborted_errors),
            tx_carrier_errors: difference(self.tx_carrier_errors, earlier.tx_carrier_errors),
            tx_fifo_errors: difference(self.tx_fifo_errors, earlier.tx_fifo_errors),
            rx_nohandler: difference(self.rx_nohandler, earlier.rx_nohandler),
            rx_otherhost_dropped: difference(
                self.rx_otherhost_dropped,
                earlier.rx_otherhost_dropped,
            ),
        }
    }
}

impl From<Stats64> for LinkStatistics {
    fn from(counters: Stats64) -> Self {
        Self {
            rx_packets: counters.rx_packets,
            tx_packets: counters.tx_packets,
            rx_bytes: counters.rx_bytes,
            tx_bytes: counters.tx_bytes,
            rx_errors: counters.rx_errors,
            tx_errors: counters.tx_errors,
            rx_dropped: counters.rx_dropped,
            tx_dropped: counters.tx_dropped,
            rx_multicast: counters.multicast,
            collisions: counters.collisions,
            rx_length_errors: counters.rx_length_errors,
            rx_over_errors: counters.rx_over_errors,
            rx_crc_errors: counters.rx_crc_errors,
            rx_frame_errors: counters.rx_frame_errors,
            rx_fifo_errors: counters.rx_fifo_errors,
            rx_missed_errors: counters.rx_missed_errors,
            tx_aborted_errors: counters.tx_aborted_errors,
            tx_carrier_errors: counters.tx_carrier_errors,
            tx_fifo_errors: counters.tx_fifo_errors,
            rx_nohandler: counters.rx_nohandler,
            rx_otherhost_dropped: counters.rx_otherhost_dropped,
        }
    }
}

/// Reads the counters of one interface again and again, from any thread.
///
/// It follows the interface by number, so a new name does not disturb it. One reading is one
/// request and one answer on a socket that stays open.
#[derive(Debug)]
pub struct LinkStatisticsReader {
    socket: NetlinkSocket,
    request: Vec<u8>,
    action: String,
}

impl LinkStatisticsReader {
    /// Prepares to read the counters of the interface `name` of `namespace`.
    ///
    /// # Errors
    /// As [`Links::named`] and [`Namespace::run`].
    pub fn open(namespace: &Namespace, name: &str) -> Result<Self> {
        let mut links = Links::of(namespace)?;
        let mut message = LinkMessage::default();
        message.header.index = links.named(name)?.index;
        Ok(Self {
            request: bytes_of(&message),
            action: format!("reading the counters of {name}"),
            socket: links.socket,
        })
    }

    /// The counters as they are now.
    ///
    /// # Errors
    /// [`Kind::Down`] when the interface is gone.
    pub fn read(&mut self) -> Result<LinkStatistics> {
        let failed = |source| Error::new(&self.action, source);
        let answers = self
            .socket
            .request(&self.action, libc::RTM_GETLINK, 0, &self.request)
            .map_err(|error| match error.kind() {
                Kind::NotFound => {
                    error.with_kind(Kind::Down).remedy("the interface was removed meanwhile")
                }
                _ => error,
            })?;
        answers
            .iter()
            .filter_map(|answer| answer.payload.get(HEADER_BYTES..))
            .find_map(|attributes| attribute(attributes, IFLA_STATS64))
            .ok_or_else(|| failed(undecodable("the kernel sent no counters")))
            .and_then(|value| {
                let counters = Stats64::parse(value).map_err(undecodable);
                counters.map(LinkStatistics::from).map_err(failed)
            })
    }
}
