//! Sending by AF_XDP: frames are copied once, into memory that the kernel sends from.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use sys::bpf::XdpMode;
use sys::link::{Link, Links};
use sys::namespace::Namespace;
use sys::xsk::{CHUNK_BYTES, CopyMode, Socket, SocketConfig, Stopped, Transmitter, Umem};
use sys::{Error, Kind};

use super::queues::{Way, choose};
use super::redirect::Redirect;
use super::rung::{Require, Rung};
use crate::batch::Batch;
use crate::counters::{Reason, TxCounters};
use crate::error::{PortError, Result};
use crate::packet::device::Device;
use crate::packet::far_end::FarEnd;
use crate::queue::{Event, PortDescription, TxQueue};
use crate::spec::Queues;

/// Memory of frames that are in the ring or on their way: within the 8 MiB that any user may lock.
const RING_BYTES: usize = 4 << 20;

/// Frames that are in the ring leave within this time unless the device takes nothing at all; then they
/// leave with the next call.
const SETTLE: Duration = Duration::from_millis(2);

/// A device that takes nothing is not waited for any longer at the end of a run.
const STUCK: Duration = Duration::from_secs(1);

const LOOK_FOR_LINK: Duration = Duration::from_millis(200);
const ETHERNET_HEADER_BYTES: usize = 14;
const TAG_BYTES: usize = 4;
const ETHERTYPE_VLAN: [u8; 2] = [0x81, 0x00];

/// A sending queue of an interface.
#[derive(Debug)]
pub struct XdpTx {
    name: String,
    wanted: Option<Queues>,
    output: Output,
    namespace: Namespace,
    links: Links,
    device: Device,
    far_end: FarEnd,
    description: PortDescription,
    sent: TxCounters,
    stopped: Option<Stopped>,
    is_gone: bool,
    looked: Instant,
    events: VecDeque<Event>,
}

/// A socket on a queue.
#[derive(Debug)]
struct Output {
    index: u32,
    mtu_bytes: usize,
    rung: Rung,
    queue: u32,
    entries: u32,
    reasons: Vec<String>,
    transmitter: Transmitter,
    /// Drivers send in zero-copy mode only where a program is; this one lets everything pass.
    _program: Option<Redirect>,
}

impl XdpTx {
    /// Opens a queue of an interface of the calling thread's network namespace by AF_XDP: the first of
    /// `queues` that no other socket has.
    ///
    /// # Errors
    /// As [`XdpRx::open`](super::XdpRx::open).
    pub fn open(interface: &str, queues: Option<Queues>, require: Option<Require>) -> Result<Self> {
        let mut links = Links::current()?;
        let (output, link) = Output::open(&mut links, interface, queues)?;
        if let Some(require) = require.filter(|require| output.rung < require.least()) {
            return Err(PortError::Unsupported {
                port: format!("xdp:{interface}"),
                reason: format!(
                    "{} is required and copy mode is what there is: {}; leave out --require, or ask for less",
                    require.least(),
                    output.reasons.join("; ")
                ),
            });
        }
        let mut description = crate::packet::describe(interface, output.mechanism(), &link);
        description.spec = format!("xdp:{interface}@{}", output.queue);
        Ok(Self {
            name: interface.into(),
            wanted: queues,
            output,
            namespace: Namespace::current()?,
            links,
            device: Device::open(interface)?,
            far_end: FarEnd::open(interface)?,
            description,
            sent: TxCounters::default(),
            stopped: None,
            is_gone: false,
            looked: Instant::now(),
            events: VecDeque::new(),
        })
    }

    /// The rung of the ladder that serves this port.
    pub fn rung(&self) -> Rung {
        self.output.rung
    }

    /// How long a frame may be that begins like this one, for this end and the far one.
    fn lengths(&self, frame: &[u8]) -> RangeInclusive<usize> {
        let is_tagged = frame.get(12..14).is_some_and(|kind| kind == ETHERTYPE_VLAN);
        let tag_bytes = if is_tagged { TAG_BYTES } else { 0 };
        let longest = (self.output.mtu_bytes + ETHERNET_HEADER_BYTES + tag_bytes)
            .min(self.output.transmitter.frame_bytes_max());
        ETHERNET_HEADER_BYTES..=longest.min(self.far_end.frame_bytes_max())
    }

    fn note(&mut self, stopped: Option<Stopped>) {
        if stopped == Some(Stopped::Down) && self.stopped != stopped {
            self.events.push_back(Event::Down);
        }
        self.stopped = stopped;
    }

    /// Looks at the interface: its MTU, whether it is up, whether it is another one.
    fn look(&mut self) -> Result<()> {
        self.looked = Instant::now();
        self.far_end.look();
        match self.links.named(&self.name) {
            Ok(link) if link.index == self.output.index => {
                self.output.mtu_bytes = link.mtu_bytes as usize;
                if self.stopped == Some(Stopped::Down) && link.up {
                    self.back();
                }
                Ok(())
            }
            Ok(link) if !link.up => Ok(()),
            Ok(_) => self.reopen(),
            Err(error) if error.kind() == Kind::NotFound => {
                if !std::mem::replace(&mut self.is_gone, true) {
                    self.events.push_back(Event::Gone);
                }
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// What the old interface had not taken is lost with its ring.
    fn reopen(&mut self) -> Result<()> {
        let lost = self.output.transmitter.waiting_packets();
        let Self { namespace, links, name, wanted, .. } = self;
        let (output, _) = namespace.run(|| Output::open(links, name, *wanted))??;
        self.output = output;
        self.device.reopen()?;
        self.sent.dropped.add(Reason::RingFull, lost);
        self.back();
        Ok(())
    }

    fn back(&mut self) {
        self.is_gone = false;
        self.stopped = None;
        self.events.push_back(Event::Up);
    }
}

impl Output {
    fn open(links: &mut Links, interface: &str, wanted: Option<Queues>) -> Result<(Self, Link)> {
        let link = links.named(interface)?;
        link.check_up()?;
        let queues = choose(&link, wanted, Way::Out)?;
        let frame_bytes = link.frame_bytes_max() as usize + TAG_BYTES;
        let [small, large] = CHUNK_BYTES;
        let chunk_bytes = if frame_bytes <= small { small } else { large };
        let entries = (RING_BYTES / chunk_bytes) as u32;
        let config = |mode, queue| SocketConfig {
            interface: link.name.clone(),
            index: link.index,
            queue,
            mode,
            rx_entries: 0,
            tx_entries: entries,
            multi_buffer: frame_bytes > chunk_bytes,
            busy_poll: None,
        };
        let mut reasons = Vec::new();
        let mut last = None;
        for queue in queues.numbers() {
            for mode in [CopyMode::ZeroCopy, CopyMode::Copy] {
                let umem = Umem::new(entries, chunk_bytes)?;
                match Socket::open(&umem, &config(mode, queue)) {
                    Ok(socket) => {
                        let Some(transmitter) = socket.transmitter else { continue };
                        let is_zero_copy = mode == CopyMode::ZeroCopy;
                        let output = Self {
                            index: link.index,
                            mtu_bytes: link.mtu_bytes as usize,
                            rung: if is_zero_copy { Rung::ZeroCopy } else { Rung::Native },
                            queue,
                            entries,
                            reasons,
                            transmitter,
                            _program: is_zero_copy.then(|| pass_all(interface)).flatten(),
                        };
                        return Ok((output, link));
                    }
                    Err(error) if error.kind() == Kind::Busy => {
                        last = Some(error);
                        break;
                    }
                    Err(error) if mode == CopyMode::Copy => return Err(error.into()),
                    Err(error) if is_final(&error) => return Err(error.into()),
                    Err(error) => reasons = vec![format!("no zero-copy mode: {error}")],
                }
            }
        }
        match last {
            Some(busy) => Err(busy.into()),
            None => Err(PortError::Unsupported {
                port: format!("xdp:{interface}"),
                reason: "it has no queue to send by; use packet:".into(),
            }),
        }
    }

    fn mechanism(&self) -> String {
        let way = match self.rung {
            Rung::ZeroCopy => Rung::ZeroCopy.to_string(),
            _ => "AF_XDP in copy mode".into(),
        };
        let mut text = format!("{way}, queue {}, ring of {} buffers", self.queue, self.entries);
        if !self.reasons.is_empty() {
            text.push_str(&format!(" ({})", self.reasons.join("; ")));
        }
        text
    }
}

fn is_final(error: &Error) -> bool {
    matches!(error.kind(), Kind::Limit | Kind::Permission | Kind::NotFound | Kind::Down)
}

/// A program that is there already does as well.
fn pass_all(interface: &str) -> Option<Redirect> {
    Redirect::attach(interface, 1, None, XdpMode::Native).ok()
}

impl TxQueue for XdpTx {
    fn transmit(&mut self, batch: &mut Batch) -> Result<usize> {
        if batch.is_empty() || self.stopped == Some(Stopped::Down) {
            return Ok(0);
        }
        batch.check_lengths(
            *self.lengths(&[]).end(),
            |frame| *self.lengths(frame).end(),
            || self.describe(),
        )?;
        if self.stopped.is_some() {
            // What was left over goes first, so that no more than a batch is left over.
            let stopped = self.output.transmitter.wake()?;
            self.note(stopped);
            if stopped.is_some() {
                self.sent.blocked_times += 1;
                return Ok(0);
            }
        }
        let transmitter = &mut self.output.transmitter;
        let (accepted, mut stopped) = transmitter.send(batch.frames().map(|frame| frame.data))?;
        let mut begun = None;
        while matches!(stopped, Some(Stopped::DeviceFull | Stopped::SocketFull))
            && begun.get_or_insert_with(Instant::now).elapsed() < SETTLE
        {
            transmitter.wait(SETTLE);
            stopped = transmitter.wake()?;
            self.sent.blocked_times += 1;
        }
        let bytes = batch.bytes();
        batch.drop_front(accepted);
        self.sent.accepted_packets += accepted as u64;
        self.sent.accepted_bytes += bytes - batch.bytes();
        self.sent.blocked_times += u64::from(stopped.is_some());
        self.note(stopped);
        Ok(accepted)
    }

    fn takes(&self, frame: &[u8]) -> bool {
        self.lengths(frame).contains(&frame.len())
    }

    fn wait(&mut self, timeout: Duration) -> Result<()> {
        match self.stopped {
            None => {}
            Some(Stopped::Down) => {
                let pause = LOOK_FOR_LINK.saturating_sub(self.looked.elapsed());
                std::thread::sleep(timeout.min(pause));
            }
            Some(_) => self.output.transmitter.wait(timeout),
        }
        if self.stopped.is_some() && self.looked.elapsed() >= LOOK_FOR_LINK {
            self.look()?;
        }
        Ok(())
    }

    /// Waits for the ring to be empty and all chunks to be back, then for the device to have counted what
    /// it was given.
    fn flush(&mut self, timeout: Duration) -> Result<bool> {
        let begun = Instant::now();
        let mut moved = (self.output.transmitter.waiting_packets(), begun);
        let left = loop {
            if self.output.transmitter.drain(Duration::from_millis(10))? {
                break true;
            }
            let waiting = self.output.transmitter.waiting_packets();
            if waiting != moved.0 {
                moved = (waiting, Instant::now());
            }
            if begun.elapsed() >= timeout || moved.1.elapsed() >= STUCK {
                break false;
            }
        };
        let waiting = self.output.transmitter.waiting_packets();
        let handed_over = self.sent.accepted_packets.saturating_sub(waiting);
        self.device.wait_sent(handed_over, begun, timeout);
        Ok(left)
    }

    /// Frames that are still in the ring, which nobody empties after the end of a run, are lost to it.
    fn counters(&mut self) -> Result<TxCounters> {
        let mut sent = self.sent;
        sent.dropped.add(Reason::RingFull, self.output.transmitter.waiting_packets());
        Ok(TxCounters { device: self.device.sent(), ..sent })
    }

    fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn describe(&self) -> PortDescription {
        self.far_end.limit(&self.description)
    }
}
