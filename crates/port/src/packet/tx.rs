//! Sending to an interface: batches handed to the kernel by one system call each, by whichever way
//! [`sys::packet`] measured as the fastest.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use sys::Kind;
use sys::link::Link;
use sys::packet::{Blocked, Method, Sender, SenderConfig};

use super::device::Device;
use super::far_end::FarEnd;
use crate::batch::Batch;
use crate::counters::TxCounters;
use crate::error::Result;
use crate::queue::{Event, PortDescription, TxQueue};

/// Between two looks at a device that was full or away.
const LOOK_AGAIN: Duration = Duration::from_micros(50);
const LOOK_FOR_LINK: Duration = Duration::from_millis(200);

/// The sending queue of an interface.
#[derive(Debug)]
pub struct PacketTx {
    config: SenderConfig,
    sender: Sender,
    device: Device,
    far_end: FarEnd,
    description: PortDescription,
    sent: TxCounters,
    blocked: Option<Blocked>,
    is_gone: bool,
    looked: Instant,
    events: VecDeque<Event>,
}

impl PacketTx {
    /// Opens the queue on an interface of the calling thread's network namespace.
    pub fn open(interface: &str) -> Result<Self> {
        let config = SenderConfig::new(interface);
        let link = Link::by_name(interface)?;
        let sender = Sender::open(&config)?;
        let way = match sender.method() {
            Method::Messages => "sendmmsg",
            _ => "transmit ring, each frame copied whole",
        };
        let mechanism = format!("AF_PACKET {way}, past the queueing discipline");
        Ok(Self {
            sender,
            device: Device::open(interface)?,
            far_end: FarEnd::open(interface)?,
            description: super::describe(interface, mechanism, &link),
            config,
            sent: TxCounters::default(),
            blocked: None,
            is_gone: false,
            looked: Instant::now(),
            events: VecDeque::new(),
        })
    }

    /// Says beside the mechanism why it is this one.
    pub(crate) fn explain(&mut self, why: &str) {
        self.description.mechanism.push_str(&format!(" ({why})"));
    }

    /// How long a frame may be that begins like this one, for this end and the far one.
    fn lengths(&self, frame: &[u8]) -> RangeInclusive<usize> {
        let (shortest, longest) = self.sender.lengths(frame).into_inner();
        shortest..=longest.min(self.far_end.frame_bytes_max())
    }

    /// A socket of an interface that was removed stays dead: a new one takes its place.
    fn look(&mut self) -> Result<()> {
        self.looked = Instant::now();
        match Sender::open(&self.config) {
            Ok(sender) => {
                self.sender = sender;
                if self.is_gone {
                    self.device.reopen()?;
                }
                self.far_end.look();
                self.is_gone = false;
                self.blocked = None;
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

impl TxQueue for PacketTx {
    fn transmit(&mut self, batch: &mut Batch) -> Result<usize> {
        if batch.is_empty() || self.blocked == Some(Blocked::Down) {
            return Ok(0);
        }
        batch.check_lengths(
            self.description.frame_bytes_max.min(self.far_end.frame_bytes_max()),
            |frame| *self.lengths(frame).end(),
            || self.describe(),
        )?;
        let outcome = self.sender.send(batch.frames().map(|frame| frame.data))?;
        let bytes = batch.bytes();
        batch.drop_front(outcome.accepted);
        self.sent.accepted_packets += outcome.accepted as u64;
        self.sent.accepted_bytes += bytes - batch.bytes();
        self.blocked = outcome.blocked;
        self.sent.blocked_times += u64::from(outcome.blocked.is_some());
        if outcome.blocked == Some(Blocked::Down) {
            self.events.push_back(Event::Down);
        }
        Ok(outcome.accepted)
    }

    fn takes(&self, frame: &[u8]) -> bool {
        self.lengths(frame).contains(&frame.len())
    }

    fn wait(&mut self, timeout: Duration) -> Result<()> {
        match self.blocked {
            None => {}
            Some(Blocked::SocketFull) => {
                self.sender.wait(timeout)?;
            }
            Some(Blocked::DeviceFull) => {
                std::thread::sleep(timeout.min(LOOK_AGAIN));
                self.far_end.look_again();
            }
            Some(Blocked::Down) => {
                let pause = LOOK_FOR_LINK.saturating_sub(self.looked.elapsed());
                std::thread::sleep(timeout.min(pause));
                if self.looked.elapsed() >= LOOK_FOR_LINK {
                    self.look()?;
                }
            }
        }
        Ok(())
    }

    /// Waits for the socket to be empty, then for the device to have counted what it was given.
    fn flush(&mut self, timeout: Duration) -> Result<bool> {
        let left = self.sender.drain(timeout)?;
        self.device.wait_sent(self.sent.accepted_packets, Instant::now(), timeout);
        Ok(left)
    }

    fn counters(&mut self) -> Result<TxCounters> {
        Ok(TxCounters { device: self.device.sent(), ..self.sent })
    }

    fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn describe(&self) -> PortDescription {
        self.far_end.limit(&self.description)
    }
}
