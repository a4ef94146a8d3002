//! Sockets on the queues of one interface, their memory, and the program that gives them frames.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use sys::Result;
use sys::bpf::{Support, XdpMode};
use sys::link::Link;
use sys::packet::Promiscuity;
use sys::xsk::{
    CHUNK_BYTES, CopyMode, HEADROOM_BYTES, Receiver, Socket, SocketConfig, Umem, chunk_bytes_for,
};

use super::arrival::{Arrivals, Now};
use super::depth::Depth;
use super::redirect::Redirect;
use super::rung::Rung;
use super::rx::is_hopeless;
use crate::batch::Batch;
use crate::packet::RxOptions;
use crate::spec::Queues;

/// What tags may add to a frame beyond the MTU: two of 802.1Q.
const TAGS_BYTES: usize = 8;

/// The least entries of a queue's ring.
const ENTRIES_MIN: usize = 64;
/// The most: beyond it the kernel's rings take hundreds of MiB by themselves.
const ENTRIES_MAX: usize = 1 << 22;

/// Entries of a ring that holds what comes during a long nap many times over.
const DEEP_ENTRIES: u32 = 16_384;
const LONG_NAP: Duration = Duration::from_micros(500);
const SHORT_NAP: Duration = Duration::from_micros(50);

/// Chunks beyond those of the rings, for batches that somebody reads: the rings stay full meanwhile.
const READER_CHUNKS: u32 = 1024;

/// What came to the sockets of an input, and what the kernel lost there.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seen {
    /// In the rings, or taken out of them.
    pub(super) ring_arrived: u64,
    /// Lost since the ring was full or had no empty chunk.
    pub(super) ring_packets: u64,
    /// Dropped by our program, since they were longer than a chunk.
    pub(super) long_packets: u64,
    /// Times that an empty chunk was wanted and not there.
    pub(super) fill_ring_empty: u64,
}

impl Seen {
    pub(super) fn add(&mut self, other: &Self) {
        self.ring_arrived += other.ring_arrived;
        self.ring_packets += other.ring_packets;
        self.long_packets += other.long_packets;
        self.fill_ring_empty += other.fill_ring_empty;
    }

    /// All that our program saw while it gave frames away.
    pub(super) fn packets(&self) -> u64 {
        self.ring_arrived + self.lost_packets()
    }

    /// Those that no ring holds.
    pub(super) fn lost_packets(&self) -> u64 {
        self.ring_packets + self.long_packets
    }
}

/// An open input.
#[derive(Debug)]
pub(super) struct Input {
    /// The interface's number.
    pub(super) index: u32,
    pub(super) rung: Rung,
    /// Why it is no higher one.
    pub(super) reasons: Vec<String>,
    /// Whether frames may lie in several chunks.
    pub(super) is_multi_buffer: bool,
    /// Longest frame that is received.
    pub(super) frame_bytes_max: usize,
    /// Before the sockets: frames go elsewhere before these are closed.
    redirect: Redirect,
    queues: Queues,
    sockets: Vec<Socket>,
    receivers: Vec<(Receiver, Arrivals)>,
    /// The receiver that is asked first.
    next: usize,
    umem: Arc<Umem>,
    entries: u32,
    depth: Depth,
    _promiscuity: Option<Promiscuity>,
}

impl Input {
    /// Opens the queues by the highest rung that there is. Nothing is received yet.
    pub(super) fn open(link: &Link, queues: Queues, options: &RxOptions) -> Result<Self> {
        // Without the right all else is in vain: said first, before what memory lacks.
        Support::probe().loading?;
        let frame_bytes_max = link.frame_bytes_max() as usize + TAGS_BYTES;
        let whole = chunk_bytes_for(frame_bytes_max);
        let chunk_bytes = whole.unwrap_or(CHUNK_BYTES[1]);
        let is_multi_buffer = whole.is_none();
        let count = queues.count();
        let entries = entries(options.ring_bytes / chunk_bytes / count as usize);
        let umem =
            Umem::new(entries.saturating_mul(count).saturating_add(READER_CHUNKS), chunk_bytes)?;
        let mut reasons = Vec::new();
        let config = |mode, queue| SocketConfig {
            interface: link.name.clone(),
            index: link.index,
            queue,
            mode,
            rx_entries: entries,
            tx_entries: 0,
            multi_buffer: is_multi_buffer,
            busy_poll: None,
        };
        let open = |umem: &Arc<Umem>, mode| -> Result<Vec<Socket>> {
            queues.numbers().map(|queue| Socket::open(umem, &config(mode, queue))).collect()
        };
        let room_bytes = whole.map(|bytes| bytes - HEADROOM_BYTES);
        let attach = |mode| Redirect::attach(&link.name, queues.last() + 1, room_bytes, mode);

        let (mut sockets, mut mode) = (Vec::new(), CopyMode::ZeroCopy);
        let mut umem = umem;
        for tried in [CopyMode::ZeroCopy, CopyMode::Copy] {
            match open(&umem, tried) {
                Ok(opened) => {
                    (sockets, mode) = (opened, tried);
                    break;
                }
                Err(error) if tried == CopyMode::Copy || is_hopeless(&error) => return Err(error),
                Err(error) => reasons.push(format!("no zero-copy mode: {error}")),
            }
            if umem.is_registered() {
                umem = Umem::new(umem.chunks(), chunk_bytes)?;
            }
        }
        let redirect = match attach(XdpMode::Native) {
            Ok(redirect) => redirect,
            Err(error) if is_hopeless(&error) => return Err(error),
            Err(error) => {
                reasons.push(format!("no native program: {error}"));
                if mode == CopyMode::ZeroCopy {
                    drop(std::mem::take(&mut sockets));
                    umem = Umem::new(umem.chunks(), chunk_bytes)?;
                    (sockets, mode) = (open(&umem, CopyMode::Copy)?, CopyMode::Copy);
                }
                attach(XdpMode::Generic)?
            }
        };
        let rung = match (mode, redirect.mode()) {
            (CopyMode::ZeroCopy, _) => Rung::ZeroCopy,
            (CopyMode::Copy, XdpMode::Native) => Rung::Native,
            (CopyMode::Copy, _) => Rung::Generic,
        };
        let receivers = sockets
            .iter_mut()
            .filter_map(|socket| Some((socket.receiver.take()?, Arrivals::default())))
            .collect();
        let _promiscuity =
            if options.promiscuous { Some(Promiscuity::join(&link.name)?) } else { None };
        Ok(Self {
            index: link.index,
            rung,
            reasons,
            is_multi_buffer,
            frame_bytes_max,
            redirect,
            queues,
            sockets,
            receivers,
            next: 0,
            umem,
            entries,
            depth: Depth::default(),
            _promiscuity,
        })
    }

    /// The rung, the queues and the memory in words, and why it is no higher rung.
    pub(super) fn mechanism(&self) -> String {
        let queues = if self.queues.count() == 1 { "queue" } else { "queues" };
        let mut text = format!(
            "{}, {queues} {}, {} buffers of {} bytes for each, on {}",
            self.rung,
            self.queues,
            self.entries,
            self.umem.chunk_bytes(),
            self.umem.pages(),
        );
        if self.is_multi_buffer {
            text.push_str(", longer frames in several and copied together");
        }
        if !self.reasons.is_empty() {
            text.push_str(&format!(" ({})", self.reasons.join("; ")));
        }
        text
    }

    /// From now on frames come in.
    pub(super) fn admit(&mut self) -> Result<()> {
        for (receiver, _) in &mut self.receivers {
            receiver.refill()?;
        }
        for (queue, socket) in self.queues.numbers().zip(&self.sockets) {
            self.redirect.admit(queue, socket.as_fd())?;
        }
        Ok(())
    }

    /// From now on no frame comes in but those on their way.
    pub(super) fn shut(&mut self) -> Result<()> {
        self.queues.numbers().try_for_each(|queue| self.redirect.shut(queue))
    }

    /// Fills an empty batch with the next frames of the queue whose turn it is, if there are any. Gives how
    /// many had no room in it.
    pub(super) fn receive(&mut self, batch: &mut Batch) -> Result<u64> {
        for _ in 0..self.receivers.len() {
            self.next = (self.next + 1) % self.receivers.len();
            let Some((receiver, arrivals)) = self.receivers.get_mut(self.next) else { break };
            let Some(frames) = receiver.receive()? else { continue };
            let now = Now::read();
            arrivals.begin();
            let mut lost = 0;
            if self.is_multi_buffer {
                batch.reserve(self.frame_bytes_max);
                for frame in frames.frames() {
                    let arrival = arrivals.of(frames.stamp(frame.start), now);
                    let is_there = batch.gather(frame.map(|piece| frames.piece(piece)), arrival);
                    lost += u64::from(!is_there);
                }
            } else {
                batch.hold(frames, |frames, number| arrivals.of(frames.stamp(number), now));
            }
            self.note(now.real_ns, batch.len() as u64);
            return Ok(lost);
        }
        Ok(0)
    }

    /// Takes note of frames that were taken out at `time_ns`: rings and program follow their rate.
    fn note(&mut self, time_ns: u64, packets: u64) {
        let queues = self.receivers.len() as u64;
        if let Some(chunks) = self.depth.note(time_ns, packets, queues, self.entries) {
            for (receiver, _) in &mut self.receivers {
                receiver.set_depth(chunks);
            }
            self.redirect.set_timing(!self.depth.is_shallow());
        }
    }

    /// How long to wait while frames come: the ring is far from full then, and where our program takes the
    /// times it does not matter to them.
    pub(super) fn nap(&self) -> Duration {
        let is_deep = self.entries >= DEEP_ENTRIES && !self.depth.is_shallow();
        if is_deep { LONG_NAP } else { SHORT_NAP }
    }

    pub(super) fn is_empty(&mut self) -> bool {
        self.receivers.iter_mut().all(|(receiver, _)| receiver.frames().1 == 0)
    }

    /// For waiting.
    pub(super) fn sockets(&self) -> Vec<BorrowedFd<'_>> {
        self.receivers.iter().map(|(receiver, _)| receiver.as_fd()).collect()
    }

    pub(super) fn seen(&mut self) -> Result<Seen> {
        let mut seen = Seen { long_packets: self.redirect.long_packets()?, ..Seen::default() };
        for (socket, (receiver, _)) in self.sockets.iter().zip(&mut self.receivers) {
            let counted = socket.statistics()?;
            let (taken, waiting) = receiver.frames();
            seen.ring_arrived += taken + waiting;
            seen.ring_packets += counted.rx_dropped + counted.rx_ring_full;
            seen.fill_ring_empty += counted.fill_ring_empty;
        }
        Ok(seen)
    }
}

/// The largest power of two that is not more.
fn entries(wanted: usize) -> u32 {
    let wanted = wanted.clamp(ENTRIES_MIN, ENTRIES_MAX);
    1 << wanted.ilog2()
}
