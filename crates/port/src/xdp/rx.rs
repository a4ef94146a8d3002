//! Receiving by AF_XDP: batches take the chunks of the memory that the kernel filled, without a copy.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use sys::link::{Link, LinkStatistics, Links};
use sys::namespace::Namespace;
use sys::xsk::{Waited, settle, wait_for_frames};
use sys::{Error, Kind};

use super::input::{Input, Seen};
use super::queues::{Way, choose};
use super::rung::{Require, Rung};
use crate::batch::Batch;
use crate::counters::{DeviceCount, Reason, RxCounters};
use crate::error::{PortError, Result};
use crate::packet::RxOptions;
use crate::packet::device::Device;
use crate::queue::{Event, PortDescription, RxQueue};
use crate::spec::Queues;

/// Memory of the ring unless told otherwise, in bytes: 50 ms of 2.6 million small frames a second.
pub const RX_RING_BYTES: usize = 256 << 20;

/// How often an interface that is quiet or away is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Frames since the last wait from which on more are expected soon: waiting is then a nap, and the kernel,
/// which receives on another or on this very processor, has nobody to wake.
const NAP_FRAMES: u64 = 16;

/// Frames that a driver may have counted, and given to our program before it gave them to us: the budget
/// of one NAPI poll (NAPI_POLL_WEIGHT, linux/netdevice.h).
const POLL_FRAMES: u64 = 64;

/// The receiving queues of an interface, as one.
#[derive(Debug)]
pub struct XdpRx {
    name: String,
    wanted: Option<Queues>,
    options: RxOptions,
    require: Option<Require>,
    input: Input,
    namespace: Namespace,
    links: Links,
    device: Device,
    description: PortDescription,
    /// What was seen by inputs of interfaces that are gone.
    past: Seen,
    /// Whether a frame of the device is one that our program saw.
    is_one_to_one: bool,
    /// Frames under way uncounted when the run began.
    slack_packets: u64,
    is_started: bool,
    /// Frames delivered when it was last waited for.
    waited_packets: u64,
    /// The device's figures just before the input was stopped.
    at_stop: Option<LinkStatistics>,
    delivered_packets: u64,
    delivered_bytes: u64,
    copied_packets: u64,
    /// Frames for which a batch had no room.
    homeless_packets: u64,
    is_down: bool,
    /// It has been down since the run began.
    was_down: bool,
    is_gone: bool,
    looked: Instant,
    events: VecDeque<Event>,
}

impl XdpRx {
    /// Opens queues of an interface of the calling thread's network namespace, all of them unless told
    /// otherwise, by AF_XDP.
    ///
    /// # Errors
    /// [`PortError::Unsupported`] for queues that are not there, and for less than `require` asks for. Of the
    /// kernel: [`Kind::NotFound`], [`Kind::Down`]; [`Kind::Busy`] where another program or socket is;
    /// [`Kind::Permission`]; [`Kind::Limit`] for too little memory that may be locked; [`Kind::Unsupported`].
    pub fn open(
        interface: &str,
        queues: Option<Queues>,
        options: &RxOptions,
        require: Option<Require>,
    ) -> Result<Self> {
        let mut links = Links::current()?;
        let (input, link) = open_input(&mut links, interface, queues, options, require)?;
        let mut description = crate::packet::describe(interface, input.mechanism(), &link);
        description.spec = match queues {
            Some(queues) => format!("xdp:{interface}@{queues}"),
            None => format!("xdp:{interface}"),
        };
        let is_one_to_one = queues.is_none() && input.rung >= Rung::Native;
        Ok(Self {
            name: interface.into(),
            wanted: queues,
            options: *options,
            require,
            input,
            namespace: Namespace::current()?,
            links,
            device: Device::open(interface)?,
            description,
            past: Seen::default(),
            is_one_to_one,
            slack_packets: 0,
            is_started: false,
            waited_packets: 0,
            at_stop: None,
            delivered_packets: 0,
            delivered_bytes: 0,
            copied_packets: 0,
            homeless_packets: 0,
            is_down: false,
            was_down: false,
            is_gone: false,
            looked: Instant::now(),
            events: VecDeque::new(),
        })
    }

    /// The rung of the ladder that serves this port.
    pub fn rung(&self) -> Rung {
        self.input.rung
    }

    /// Looks whether the interface is still there, is up, is the same.
    fn look(&mut self) -> Result<()> {
        self.looked = Instant::now();
        let link = match self.links.named(&self.name) {
            Ok(link) => link,
            Err(error) if error.kind() == Kind::NotFound => {
                self.went_down();
                if !std::mem::replace(&mut self.is_gone, true) {
                    self.events.push_back(Event::Gone);
                }
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        if !link.up {
            if !self.is_down {
                self.events.push_back(Event::Down);
            }
            self.went_down();
            return Ok(());
        }
        if link.index != self.input.index {
            self.went_down();
            self.reopen()?;
        }
        if std::mem::take(&mut self.is_down) {
            self.is_gone = false;
            self.events.push_back(Event::Up);
        }
        Ok(())
    }

    fn went_down(&mut self) {
        (self.is_down, self.was_down) = (true, true);
    }

    /// Another interface has the name by now: goes on with that one.
    fn reopen(&mut self) -> Result<()> {
        let seen = self.input.seen()?;
        let Self { namespace, links, name, wanted, options, require, .. } = self;
        let (input, _) =
            namespace.run(|| open_input(links, name, *wanted, options, *require))??;
        self.past.add(&seen);
        self.input = input;
        self.device.reopen()?;
        if self.is_started && self.at_stop.is_none() {
            self.input.admit()?;
        }
        Ok(())
    }
}

/// Opens the input and says whether it is what was asked for.
fn open_input(
    links: &mut Links,
    interface: &str,
    wanted: Option<Queues>,
    options: &RxOptions,
    require: Option<Require>,
) -> Result<(Input, Link)> {
    let link = links.named(interface)?;
    link.check_up()?;
    let queues = choose(&link, wanted, Way::In)?;
    let input = Input::open(&link, queues, options)?;
    match require {
        Some(require) if input.rung < require.least() => Err(PortError::Unsupported {
            port: format!("xdp:{interface}"),
            reason: format!(
                "{} is required and {} is what there is: {}; leave out --require, or ask for less",
                require.least(),
                input.rung,
                input.reasons.join("; ")
            ),
        }),
        _ => Ok((input, link)),
    }
}

impl RxQueue for XdpRx {
    fn start(&mut self) -> Result<()> {
        let live = self.device.is_receiving()?;
        self.device.restart()?;
        self.input.admit()?;
        self.is_started = true;
        self.slack_packets = if live { self.device.counted().rx_packets + POLL_FRAMES } else { 0 };
        Ok(())
    }

    fn receive(&mut self, batch: &mut Batch) -> Result<usize> {
        // Its chunks go back to the memory before the kernel is given new ones.
        batch.clear();
        let lost = self.input.receive(batch)?;
        self.homeless_packets += lost;
        if self.input.is_multi_buffer {
            self.copied_packets += batch.len() as u64;
        }
        if self.options.snap_bytes < u32::MAX {
            batch.snap(self.options.snap_bytes);
        }
        self.delivered_packets += batch.len() as u64;
        self.delivered_bytes += batch.bytes();
        Ok(batch.len())
    }

    fn wait(&mut self, timeout: Duration) -> Result<()> {
        let since = self.delivered_packets - self.waited_packets;
        self.waited_packets = self.delivered_packets;
        if self.is_down {
            std::thread::sleep(timeout.min(LOOK_AGAIN.saturating_sub(self.looked.elapsed())));
        } else if since >= NAP_FRAMES {
            std::thread::sleep(timeout.min(self.input.nap()));
            return Ok(());
        } else {
            match wait_for_frames(&self.input.sockets(), timeout)? {
                Waited::Ready => return Ok(()),
                Waited::Nothing => {}
                Waited::Gone => return self.look(),
            }
        }
        if self.looked.elapsed() >= LOOK_AGAIN { self.look() } else { Ok(()) }
    }

    /// After the grace period no frame comes to the sockets any more: what is in the rings is all.
    fn stop(&mut self) -> Result<()> {
        self.at_stop = Some(self.device.counted());
        self.input.shut()?;
        settle();
        Ok(())
    }

    fn is_finished(&mut self) -> Result<bool> {
        Ok(self.at_stop.is_some() && self.input.is_empty())
    }

    /// `wire` is what came to the sockets, what the kernel lost at them, and what the interface says that it
    /// lost before. Frames that the device counted and our program did not see are charged to the
    /// interface as far as its drop counter goes (which holds the kernel's losses at the sockets, too);
    /// the rest is unexplained. An interface that went down is charged with all of them.
    fn counters(&mut self) -> Result<RxCounters> {
        let mut seen = self.input.seen()?;
        seen.add(&self.past);
        let outer = self.device.counted();
        let inner = self.at_stop.unwrap_or(outer);
        let missed = outer.rx_missed_errors + outer.rx_fifo_errors + outer.rx_over_errors;
        let packets_min = inner.rx_packets.saturating_sub(self.slack_packets);
        let is_comparable = self.is_one_to_one && self.device.is_complete && self.at_stop.is_some();
        let gap = if is_comparable { packets_min.saturating_sub(seen.packets()) } else { 0 };
        let dropped_before = outer.rx_dropped.saturating_sub(seen.lost_packets());
        let charged = if self.was_down { gap } else { gap.min(dropped_before) };
        let mut counters = RxCounters {
            wire_packets: seen.packets() + missed + charged,
            delivered_packets: self.delivered_packets,
            delivered_bytes: self.delivered_bytes,
            copied_packets: self.copied_packets,
            ring_freezes: seen.fill_ring_empty,
            device: Some(DeviceCount {
                packets_min,
                packets_max: outer.rx_packets,
                dropped_packets: outer.rx_dropped,
                unexplained_packets: gap - charged,
            }),
            ..RxCounters::default()
        };
        counters.dropped.add(Reason::Interface, missed + charged);
        counters.dropped.add(Reason::KernelRing, seen.ring_packets);
        counters.dropped.add(Reason::TooLong, seen.long_packets);
        counters.dropped.add(Reason::NoBuffer, self.homeless_packets);
        Ok(counters)
    }

    fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn describe(&self) -> PortDescription {
        self.description.clone()
    }
}

/// An error of AF_XDP that another rung cannot help against either.
pub(super) fn is_hopeless(error: &Error) -> bool {
    matches!(
        error.kind(),
        Kind::Busy | Kind::Limit | Kind::Permission | Kind::NotFound | Kind::Down
    )
}
