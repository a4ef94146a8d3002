//! Receiving from an interface: a TPACKET_V3 ring whose blocks batches refer to without a copy.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sys::Kind;
use sys::ethtool::Ethtool;
use sys::link::{Link, LinkStatistics};
use sys::packet::{Block, PacketRing, RingConfig};

use super::device::Device;
use crate::batch::{BATCH_FRAMES, Batch};
use crate::counters::{DeviceCount, Reason, RxCounters};
use crate::error::Result;
use crate::queue::{Event, PortDescription, RxQueue};

/// How often an interface that went away is looked for.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Frames that a driver may have handed to the stack without having counted them yet: the budget
/// of one NAPI poll (NAPI_POLL_WEIGHT, linux/netdevice.h).
const POLL_FRAMES: u64 = 64;

/// Memory of the ring unless told otherwise, in bytes: 100 ms of 5 Gbit/s.
pub const RING_BYTES: usize = 64 << 20;

/// The least memory of a ring, two blocks: while one is read the other is filled.
pub const RING_BYTES_MIN: usize = 2 << 20;

/// How to receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RxOptions {
    /// Memory of the kernel's ring in bytes, at least [`RING_BYTES_MIN`]; rounded up to whole blocks of
    /// 1 MiB.
    pub ring_bytes: usize,
    /// Bytes to keep of each frame.
    pub snap_bytes: u32,
    /// Receive frames that are addressed to others.
    pub promiscuous: bool,
}

impl Default for RxOptions {
    fn default() -> Self {
        Self { ring_bytes: RING_BYTES, snap_bytes: u32::MAX, promiscuous: true }
    }
}

/// The receiving queue of an interface.
#[derive(Debug)]
pub struct PacketRx {
    ring: PacketRing,
    device: Device,
    description: PortDescription,
    /// Whether a frame of the device is a frame of the socket: nothing merges frames in between.
    is_one_to_one: bool,
    /// Frames under way uncounted when the run began.
    slack_packets: u64,
    /// The device's figures just before the input was stopped.
    at_stop: Option<LinkStatistics>,
    block: Option<Arc<Block>>,
    next: usize,
    delivered_packets: u64,
    delivered_bytes: u64,
    is_down: bool,
    /// It has been down since the run began.
    was_down: bool,
    is_gone: bool,
    looked: Instant,
    events: VecDeque<Event>,
}

impl PacketRx {
    /// Opens the queue on an interface of the calling thread's network namespace.
    pub fn open(interface: &str, options: &RxOptions) -> Result<Self> {
        let mut config = RingConfig::new(interface);
        config.block_count = options.ring_bytes.max(RING_BYTES_MIN).div_ceil(config.block_bytes);
        config.snap_bytes = options.snap_bytes;
        config.promiscuous = options.promiscuous;
        let link = Link::by_name(interface)?;
        let ring = PacketRing::open(&config)?;
        let mechanism = format!(
            "AF_PACKET TPACKET_V3, ring of {} blocks of {} KiB",
            config.block_count,
            config.block_bytes >> 10
        );
        let offloads = Ethtool::current(interface).and_then(|device| device.offloads());
        Ok(Self {
            ring,
            device: Device::open(interface)?,
            description: super::describe(interface, mechanism, &link),
            is_one_to_one: offloads.is_ok_and(|offloads| !offloads.gro && !offloads.lro),
            slack_packets: 0,
            at_stop: None,
            block: None,
            next: 0,
            delivered_packets: 0,
            delivered_bytes: 0,
            is_down: false,
            was_down: false,
            is_gone: false,
            looked: Instant::now(),
            events: VecDeque::new(),
        })
    }

    /// Says beside the mechanism why it is this one.
    pub(crate) fn explain(&mut self, why: &str) {
        self.description.mechanism.push_str(&format!(" ({why})"));
    }

    /// Refers `batch` to the next frames of the current block, or of a new one.
    fn take(&mut self, batch: &mut Batch) -> usize {
        loop {
            if let Some(block) = &self.block {
                let left = block.descriptors().len() - self.next;
                if left > 0 {
                    let count = left.min(BATCH_FRAMES);
                    batch.refer(block, self.next..self.next + count);
                    self.next += count;
                    return count;
                }
            }
            self.next = 0;
            self.block = self.ring.next_block().map(Arc::new);
            if self.block.is_none() {
                return 0;
            }
        }
    }

    /// Whether frames of the current block are still to be delivered. A block without any goes back
    /// to the kernel here, before the next one is waited for.
    fn holds_frames(&mut self) -> bool {
        let holds = self.block.as_ref().is_some_and(|block| self.next < block.descriptors().len());
        if !holds {
            self.block = None;
        }
        holds
    }

    fn went_down(&mut self) {
        if !self.is_down {
            (self.is_down, self.was_down) = (true, true);
            self.events.push_back(Event::Down);
        }
        self.looked = Instant::now();
    }

    /// Looks whether the interface is back.
    fn look(&mut self) -> Result<()> {
        self.looked = Instant::now();
        match self.ring.reopen() {
            Ok(()) => {
                if self.is_gone {
                    self.device.reopen()?;
                }
                (self.is_down, self.is_gone) = (false, false);
                self.events.push_back(Event::Up);
                Ok(())
            }
            Err(error) if error.kind() == Kind::NotFound => {
                if !self.is_gone {
                    self.is_gone = true;
                    self.events.push_back(Event::Gone);
                }
                Ok(())
            }
            Err(error) if error.kind() == Kind::Down => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl RxQueue for PacketRx {
    fn start(&mut self) -> Result<()> {
        let live = self.device.is_receiving()?;
        self.device.restart()?;
        self.ring.start(&[])?;
        self.slack_packets = if live { self.device.counted().rx_packets + POLL_FRAMES } else { 0 };
        Ok(())
    }

    fn receive(&mut self, batch: &mut Batch) -> Result<usize> {
        batch.clear();
        let count = self.take(batch);
        self.delivered_packets += count as u64;
        self.delivered_bytes += batch.bytes();
        Ok(count)
    }

    fn wait(&mut self, timeout: Duration) -> Result<()> {
        if self.holds_frames() {
            return Ok(());
        }
        if self.is_down {
            std::thread::sleep(timeout.min(LOOK_AGAIN.saturating_sub(self.looked.elapsed())));
            if self.looked.elapsed() >= LOOK_AGAIN {
                self.look()?;
            }
            return Ok(());
        }
        if self.ring.wait(timeout)? == sys::packet::Event::Down {
            self.went_down();
        }
        Ok(())
    }

    fn stop(&mut self) -> Result<()> {
        self.at_stop = Some(self.device.counted());
        Ok(self.ring.stop()?)
    }

    fn is_finished(&mut self) -> Result<bool> {
        Ok(!self.holds_frames() && self.at_stop.is_some() && self.ring.is_drained())
    }

    /// `wire` is what the socket saw plus what the interface says that it lost before the socket.
    /// Frames that the device counted and the socket never saw are charged to the interface as far
    /// as its drop counter goes; the rest is unexplained. An interface that went down is charged with
    /// all of them: the kernel empties its queues then and counts nothing (`flush_backlog`,
    /// net/core/dev.c).
    fn counters(&mut self) -> Result<RxCounters> {
        let ring = self.ring.statistics()?;
        let outer = self.device.counted();
        let inner = self.at_stop.unwrap_or(outer);
        let missed = outer.rx_missed_errors + outer.rx_fifo_errors + outer.rx_over_errors;
        let packets_min = inner.rx_packets.saturating_sub(self.slack_packets);
        let is_comparable = self.is_one_to_one && self.device.is_complete && self.at_stop.is_some();
        let gap = if is_comparable { packets_min.saturating_sub(ring.packets) } else { 0 };
        let charged = if self.was_down { gap } else { gap.min(outer.rx_dropped) };
        let mut counters = RxCounters {
            wire_packets: ring.packets + missed + charged,
            delivered_packets: self.delivered_packets,
            delivered_bytes: self.delivered_bytes,
            ring_freezes: ring.freezes,
            device: Some(DeviceCount {
                packets_min,
                packets_max: outer.rx_packets,
                dropped_packets: outer.rx_dropped,
                unexplained_packets: gap - charged,
            }),
            ..RxCounters::default()
        };
        counters.dropped.add(Reason::Interface, missed + charged);
        counters.dropped.add(Reason::KernelRing, ring.drops);
        Ok(counters)
    }

    fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn describe(&self) -> PortDescription {
        self.description.clone()
    }
}
