//! The receive ring: opened silent, started at an exact moment, stopped at another, drained to
//! the last frame.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use super::block::Block;
use super::fanout::Fanout;
use super::filter::{self, BpfInstruction};
use super::hardware_time;
use super::interface::Interface;
use super::mapping::Mapping;
use super::slot::Slot;
use super::socket::{self, set_option};
use super::statistics::RingStatistics;
use super::walk::Limits;
use crate::{Error, Kind, Limit, Result};

/// Room before each frame: four bytes for a restored VLAN tag, and two more so that frames of
/// Ethernet start at a multiple of 8 in the block.
const RESERVE_BYTES: u32 = 6;
/// Not used by TPACKET_V3, but checked by the kernel against the block size.
const NOMINAL_FRAME_BYTES: u32 = 2048;
/// What a frame of 60 bytes takes in a block, headers included.
const SMALL_FRAME_SLOT_BYTES: usize = 152;
/// Ethernet header and two tags.
const LONGEST_HEADER_BYTES: u32 = 14 + 8;

/// How to open a [`PacketRing`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RingConfig {
    /// Name of the interface.
    pub interface: String,
    /// Bytes of a block: a multiple of the page size. A block should hold the longest frame
    /// with room to spare: 64 KiB and more where GRO merges frames.
    pub block_bytes: usize,
    /// Number of blocks, at least 2.
    pub block_count: usize,
    /// After how many ms the kernel hands over a block that is not full but has frames: the most
    /// that the ring adds to the delay of a frame is about twice this. At least 1.
    pub retire_timeout_ms: u32,
    /// Share the interface's frames with other sockets.
    pub fanout: Option<Fanout>,
    /// Receive frames that are addressed to others too.
    pub promiscuous: bool,
    /// Most bytes to keep of each frame.
    pub snap_bytes: u32,
    /// Make room for the descriptors of all blocks now instead of when they are first used.
    pub prefault: bool,
    /// Let the kernel compute the flow hash of each frame; costs about 50 ns a frame where the
    /// interface does not give one.
    pub flow_hash: bool,
    /// Have the interface stamp the frames. Opening fails with [`Kind::Unsupported`] when it
    /// cannot. This setting of the interface outlives the ring.
    pub hardware_time: bool,
}

impl RingConfig {
    /// The usual ring for an interface: 64 blocks of 1 MiB, handed over after 10 ms at the latest,
    /// promiscuous, whole frames, the kernel's own time.
    pub fn new(interface: impl Into<String>) -> Self {
        Self {
            interface: interface.into(),
            block_bytes: 1 << 20,
            block_count: 64,
            retire_timeout_ms: 10,
            fanout: None,
            promiscuous: true,
            snap_bytes: u32::MAX,
            prefault: true,
            flow_hash: false,
            hardware_time: false,
        }
    }

    fn check(&self) -> Result<()> {
        let page = rustix::param::page_size();
        let wrong = if self.block_bytes == 0 || !self.block_bytes.is_multiple_of(page) {
            Some(format!("use a block size that is a multiple of {page} bytes"))
        } else if self.block_count < 2 {
            Some("use at least 2 blocks".to_owned())
        } else if self.block_bytes.checked_mul(self.block_count).is_none_or(|all| all > 1 << 40)
            || u32::try_from(self.block_bytes).is_err()
        {
            Some("use a ring of at most 1 TiB in blocks of less than 4 GiB".to_owned())
        } else if self.retire_timeout_ms == 0 {
            Some("use a retire timeout of at least 1 ms".to_owned())
        } else if self.snap_bytes == 0 {
            Some("keep at least 1 byte of each frame".to_owned())
        } else {
            None
        };
        match wrong {
            None => Ok(()),
            Some(remedy) => Err(Error::new(
                format!("setting up a packet ring for {}", self.interface),
                io::Error::from_raw_os_error(libc::EINVAL),
            )
            .remedy(remedy)),
        }
    }
}

/// What [`PacketRing::wait`] saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// A block is ready.
    Ready,
    /// Nothing came in the time given, or a signal came.
    TimedOut,
    /// The interface went down or was removed. Blocks filled before may still be there. When it
    /// comes up again the ring goes on by itself; when it was removed, see
    /// [`PacketRing::reopen`].
    Down,
}

/// A TPACKET_V3 receive ring on one interface.
#[derive(Debug)]
pub struct PacketRing {
    mapping: Arc<Mapping>,
    config: RingConfig,
    limits: Limits,
    /// The block that the kernel fills next.
    head: usize,
    /// Number of the last filling that was taken.
    sequence: u64,
    program: Option<Vec<BpfInstruction>>,
    /// In its fan-out group, if it has one.
    member: bool,
    statistics: RingStatistics,
    delivered: u64,
    malformed: u64,
}

impl PacketRing {
    /// Opens the ring. It receives nothing before [`PacketRing::start`].
    ///
    /// Errors: [`Kind::NotFound`] without such an interface, [`Kind::Down`] when it is down,
    /// [`Kind::Permission`] without CAP_NET_RAW in the network namespace, [`Kind::Invalid`] for
    /// impossible sizes, and what the kernel says when there is no memory for the ring.
    pub fn open(config: &RingConfig) -> Result<Self> {
        config.check()?;
        let (mapping, interface) = open_mapping(config)?;
        if let Some(fanout) = config.fanout {
            fanout.join(mapping.socket(), &config.interface)?;
        }
        let mut ring = Self {
            mapping: Arc::new(mapping),
            config: config.clone(),
            limits: Limits {
                snap_bytes: config.snap_bytes,
                frame_bytes: interface.mtu_bytes.saturating_add(LONGEST_HEADER_BYTES),
            },
            head: 0,
            sequence: 0,
            program: None,
            member: true,
            statistics: RingStatistics::default(),
            delivered: 0,
            malformed: 0,
        };
        // The counters begin with the first frame that the caller's filter lets in.
        ring.statistics()?;
        ring.statistics = RingStatistics::default();
        Ok(ring)
    }

    /// Lets frames in: all of them when `filter` is empty, else those for which the classic BPF
    /// program returns a length. Frames that the interface receives after this returns are seen,
    /// frames from before the call are not. May be called again with another filter.
    pub fn start(&mut self, filter: &[BpfInstruction]) -> Result<()> {
        let program = filter::limited(filter, self.config.snap_bytes);
        filter::attach(self.mapping.socket(), &program)?;
        self.program = Some(program);
        Ok(())
    }

    /// Lets no more frames in. When this returns the counters are final, and what was received
    /// is in the ring: take blocks until [`PacketRing::is_drained`]; then
    /// `packets - drops == delivered`.
    pub fn stop(&mut self) -> Result<()> {
        filter::attach_drop_all(self.mapping.socket())?;
        // A CPU may still be at work with the filter from before.
        socket::wait_for_receivers();
        self.program = None;
        Ok(())
    }

    /// Takes the next filled block; nothing if there is none now. Never waits.
    pub fn next_block(&mut self) -> Option<Block> {
        let (block, walk) = Block::take(&self.mapping, self.head, self.limits)?;
        self.head = (self.head + 1) % self.mapping.block_count();
        self.sequence = walk.sequence;
        self.delivered += block.descriptors().len() as u64;
        self.malformed += u64::from(walk.malformed);
        Some(block)
    }

    /// After [`PacketRing::stop`]: nothing more can come out of [`PacketRing::next_block`]. A
    /// block that the kernel has begun to fill is handed over within about twice the retire
    /// timeout; until then the ring is not drained.
    pub fn is_drained(&self) -> bool {
        self.program.is_none() && !self.holds_frames()
    }

    /// There are frames in the ring that were not taken yet.
    fn holds_frames(&self) -> bool {
        let held = self.mapping.slot(self.head).is_none_or(Slot::is_held);
        if held {
            // The reader itself has the block that comes next, so all the others are taken too.
            return false;
        }
        if self.mapping.is_filled(self.head) {
            return true;
        }
        // A header with an old number is left from the block's last filling.
        let glimpse = self.mapping.glimpse(self.head);
        glimpse.sequence > self.sequence && glimpse.frames > 0
    }

    /// Waits until a block is ready, the interface goes down, or `timeout` is over.
    pub fn wait(&self, timeout: Duration) -> Result<Event> {
        let deadline = Instant::now() + timeout;
        loop {
            if self.is_ready() {
                return Ok(Event::Ready);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let seen = socket::poll(self.mapping.socket(), PollFlags::IN, left)?;
            if seen.contains(PollFlags::ERR)
                && let Some(error) = socket::take_error(self.mapping.socket())?
            {
                return self.event_of(error);
            }
            if self.is_ready() {
                return Ok(Event::Ready);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || !seen.contains(PollFlags::IN) {
                return Ok(Event::TimedOut);
            }
            // The kernel calls the socket readable as long as the reader holds the block before
            // the one that is being filled: poll cannot wait for the next one then.
            std::thread::sleep(left.min(self.retire_timeout() / 4));
        }
    }

    fn event_of(&self, error: io::Error) -> Result<Event> {
        match error.raw_os_error() {
            Some(libc::ENETDOWN) => Ok(Event::Down),
            _ => Err(Error::new(format!("receiving from {}", self.config.interface), error)),
        }
    }

    fn is_ready(&self) -> bool {
        let status = self.mapping.status(self.head);
        self.mapping.slot(self.head).is_some_and(|slot| slot.is_ready(status))
    }

    /// The time after which the kernel hands over a block that is not full.
    pub fn retire_timeout(&self) -> Duration {
        Duration::from_millis(u64::from(self.config.retire_timeout_ms))
    }

    /// What the ring counted since it was opened. Call it at least every few minutes at high
    /// rates: the kernel's own counters have 32 bits.
    pub fn statistics(&mut self) -> Result<RingStatistics> {
        self.statistics.add_from(self.mapping.socket())?;
        Ok(self.statistics)
    }

    /// Frames that came out of [`PacketRing::next_block`].
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Frames in taken blocks whose headers made no sense and which were left out. Anything but
    /// 0 is a fault of the kernel or of the memory.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Name of the interface.
    pub fn interface(&self) -> &str {
        &self.config.interface
    }

    /// Takes up receiving again after the interface was removed and made anew under the same
    /// name. Counters go on. Does nothing while the ring is bound to the interface of that name.
    ///
    /// Errors: [`Kind::NotFound`] or [`Kind::Down`] while the interface is not there or not up,
    /// to be tried again. A member of a fan-out group must become a new socket with a new ring:
    /// [`Kind::Busy`] while there are frames or blocks of the old one, and while other
    /// members have not given up their old sockets by their own `reopen`.
    pub fn reopen(&mut self) -> Result<()> {
        let interface = Interface::look_up_running(self.mapping.socket(), &self.config.interface)?;
        let bound = socket::bound_index(self.mapping.socket())? == interface.index;
        match self.config.fanout {
            _ if bound && self.member => Ok(()),
            None => {
                // What is pending is that the old interface went away.
                socket::take_error(self.mapping.socket())?;
                bind(&self.mapping, interface, &self.config)
            }
            Some(fanout) => {
                if !bound {
                    self.replace_mapping()?;
                }
                self.join_again(fanout)
            }
        }
    }

    fn replace_mapping(&mut self) -> Result<()> {
        if self.holds_frames() || Arc::strong_count(&self.mapping) > 1 {
            return Err(self.busy("take and drop the remaining blocks first"));
        }
        self.statistics()?;
        let (mapping, _) = open_mapping(&self.config)?;
        self.mapping = Arc::new(mapping);
        self.member = false;
        (self.head, self.sequence) = (0, 0);
        Ok(())
    }

    /// The group of the old interface lives as long as one of its sockets does.
    fn join_again(&mut self, fanout: Fanout) -> Result<()> {
        match fanout.join(self.mapping.socket(), &self.config.interface) {
            Err(error) if error.kind() == Kind::Invalid => {
                return Err(self.busy("reopen the other members of the fan-out group too"));
            }
            outcome => outcome?,
        }
        self.member = true;
        match &self.program {
            Some(program) => filter::attach(self.mapping.socket(), program),
            None => Ok(()),
        }
    }

    fn busy(&self, remedy: &str) -> Error {
        Error::new(
            format!("reopening the packet ring of {}", self.config.interface),
            io::Error::from_raw_os_error(libc::EBUSY),
        )
        .remedy(remedy)
    }
}

/// A bound socket with a mapped ring and a filter that drops everything.
///
/// The socket has protocol 0 until the ring is there and the filter is attached, so that no
/// frame of before can get in.
fn open_mapping(config: &RingConfig) -> Result<(Mapping, Interface)> {
    let socket = socket::open(&config.interface)?;
    let fd = std::os::fd::AsFd::as_fd(&socket);
    let interface = Interface::look_up_running(fd, &config.interface)?;
    let option = |name, value: u32, what: &str| {
        set_option(fd, libc::SOL_PACKET, name, &value, || {
            format!("{what} for {}", config.interface)
        })
    };
    let version = libc::tpacket_versions::TPACKET_V3 as u32;
    option(libc::PACKET_VERSION, version, "choosing TPACKET_V3")?;
    option(libc::PACKET_RESERVE, RESERVE_BYTES, "reserving room for VLAN tags")?;
    if config.hardware_time {
        hardware_time::enable(fd, &config.interface)?;
        let source = libc::SOF_TIMESTAMPING_RAW_HARDWARE;
        option(libc::PACKET_TIMESTAMP, source, "choosing hardware timestamps")?;
    }
    set_up_ring(fd, config)?;
    filter::attach_drop_all(fd)?;
    option(libc::PACKET_IGNORE_OUTGOING, 1, "leaving out our own frames")?;

    let frames = if config.prefault { config.block_bytes / SMALL_FRAME_SLOT_BYTES } else { 0 };
    let slots = (0..config.block_count).map(|_| Slot::with_room_for(frames)).collect();
    let mapping = Mapping::new(socket, config.block_bytes, slots)?;
    bind(&mapping, interface, config)?;
    Ok((mapping, interface))
}

fn set_up_ring(fd: std::os::fd::BorrowedFd<'_>, config: &RingConfig) -> Result<()> {
    // `RingConfig::check` has bounded both.
    let (block_bytes, block_count) = (config.block_bytes as u32, config.block_count as u32);
    let request = libc::tpacket_req3 {
        tp_block_size: block_bytes,
        tp_block_nr: block_count,
        tp_frame_size: NOMINAL_FRAME_BYTES,
        tp_frame_nr: block_bytes / NOMINAL_FRAME_BYTES * block_count,
        tp_retire_blk_tov: config.retire_timeout_ms,
        tp_sizeof_priv: 0,
        tp_feature_req_word: if config.flow_hash { libc::TP_FT_REQ_FILL_RXHASH } else { 0 },
    };
    set_option(fd, libc::SOL_PACKET, libc::PACKET_RX_RING, &request, || {
        format!(
            "allocating a packet ring of {block_count} blocks of {block_bytes} bytes for {}",
            config.interface
        )
    })
    .map_err(|error| match error.errno() {
        // The ring needs that much memory which is never swapped.
        Some(libc::ENOMEM | libc::ENOBUFS) => error.limited(Limit::Memory),
        _ => error,
    })
}

fn bind(mapping: &Mapping, interface: Interface, config: &RingConfig) -> Result<()> {
    let (fd, name) = (mapping.socket(), &config.interface);
    socket::bind(fd, interface.index, libc::ETH_P_ALL as u16, name)?;
    // Binding to an interface that has just gone down succeeds with a pending error.
    if let Some(error) = socket::take_error(fd)? {
        return Err(match error.raw_os_error() {
            Some(libc::ENETDOWN) => super::interface::down(name),
            _ => Error::new(format!("binding a packet socket to {name}"), error),
        });
    }
    if config.promiscuous {
        socket::join_promiscuous(fd, interface, name)?;
    }
    Ok(())
}
