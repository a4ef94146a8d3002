//! The socket itself: opening, registering memory, setting rings up, binding.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use libc::{SOL_XDP, xdp_mmap_offsets, xdp_ring_offset};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::receiver::Receiver;
use super::ring::{ConsumingRing, ProducingRing};
use super::settings::{BusyPoll, CopyMode, SocketConfig, option};
use super::statistics::XskStatistics;
use super::transmitter::Transmitter;
use super::umem::Umem;
use crate::packet::socket::set_option;
use crate::{Error, Kind, Limit, Result};

/// How long a queue may be busy: the kernel takes a closed socket apart later (`xp_release_deferred`,
/// net/xdp/xsk_buff_pool.c).
const REBIND: Duration = Duration::from_secs(1);
const REBIND_AGAIN: Duration = Duration::from_millis(5);

/// `XDP_MAX_TX_SKB_BUDGET` of linux/if_xdp.h: frames that one call sends in copy mode, 32 unless set
/// (Linux 6.17).
const XDP_MAX_TX_SKB_BUDGET: i32 = 9;
const TX_BUDGET: u32 = 256;

/// Frames on their way, the kernel's overhead included.
const SEND_BUFFER_BYTES: i32 = 16 << 20;

/// A ring that is not used must be there all the same.
const UNUSED_ENTRIES: u32 = 2;

/// A socket that is bound to one queue of an interface.
#[derive(Debug)]
pub struct Socket {
    /// Receives, if the socket was opened to.
    pub receiver: Option<Receiver>,
    /// Sends, if the socket was opened to.
    pub transmitter: Option<Transmitter>,
    socket: Arc<OwnedFd>,
}

/// Whether this thread may open AF_XDP sockets in its network namespace; the socket is closed again.
///
/// # Errors
/// [`Kind::Permission`] without CAP_NET_RAW; [`Kind::Unsupported`] when the kernel has none.
pub fn check_right() -> Result<()> {
    open("a trial").map(drop)
}

impl Socket {
    /// Opens a socket on a queue of an interface of the calling thread's network namespace, with memory
    /// that it may share with others. A queue that was let go a moment ago is waited for, for a second.
    ///
    /// # Errors
    /// [`Kind::Unsupported`] when the driver cannot do what `config` asks for; [`Kind::Busy`] when another
    /// socket has the queue; [`Kind::Invalid`] when there is no such queue; [`Kind::Limit`] when less memory may
    /// be locked; [`Kind::Permission`]. In copy mode an interface that is down is none.
    pub fn open(umem: &Arc<Umem>, config: &SocketConfig) -> Result<Self> {
        let socket = open(&config.interface)?;
        let mut first = umem.first();
        let shared = first.clone();
        if shared.is_none() {
            register(socket.as_fd(), umem, &config.interface)?;
        }
        let completions =
            if config.tx_entries == 0 { UNUSED_ENTRIES } else { config.tx_entries * 2 };
        set_up_rings(socket.as_fd(), config, completions)?;
        if let Some(busy_poll) = config.busy_poll {
            busy_poll.set(socket.as_fd())?;
        }
        let offsets = offsets(socket.as_fd())?;
        let (fd, pages) = (socket.as_fd(), PageOffsets::KERNEL);
        let fill_entries = config.rx_entries.max(UNUSED_ENTRIES);
        let fill = ProducingRing::map(fd, fill_entries, pages.fill, &offsets.fr)?;
        let done = ConsumingRing::map(fd, completions, pages.completion, &offsets.cr)?;
        let filled = match config.rx_entries {
            0 => None,
            entries => Some(ConsumingRing::map(fd, entries, pages.rx, &offsets.rx)?),
        };
        let ring = match config.tx_entries {
            0 => None,
            entries => Some(ProducingRing::map(fd, entries, pages.tx, &offsets.tx)?),
        };
        bind(socket.as_fd(), config, shared.as_deref())?;
        let socket = Arc::new(socket);
        first.get_or_insert_with(|| Arc::clone(&socket));
        drop(first);
        let receiver = filled.map(|filled| Receiver {
            fill,
            filled,
            umem: Arc::clone(umem),
            depth: config.rx_entries,
            frames: 0,
            malformed: 0,
            socket: Arc::clone(&socket),
        });
        let transmitter = ring.map(|ring| {
            let mut stock = umem.stock();
            let from = stock.chunks.len().saturating_sub(config.tx_entries as usize);
            let free = stock.chunks.split_off(from);
            Transmitter {
                ring,
                done,
                umem: Arc::clone(umem),
                chunks: free.len(),
                free,
                again: Vec::new(),
                mode: config.mode,
                multi_buffer: config.multi_buffer,
                socket: Arc::clone(&socket),
            }
        });
        if config.tx_entries > 0 {
            prepare_sending(socket.as_fd(), config.tx_entries);
        }
        Ok(Self { receiver, transmitter, socket })
    }

    /// What the kernel counted since the socket was opened.
    ///
    /// # Errors
    /// What getsockopt(2) reports.
    pub fn statistics(&self) -> Result<XskStatistics> {
        XskStatistics::read(self.socket.as_fd())
    }

    /// Whether the driver uses the UMEM itself (`XDP_OPTIONS`).
    ///
    /// # Errors
    /// What getsockopt(2) reports.
    pub fn is_zero_copy(&self) -> Result<bool> {
        let empty = libc::xdp_options { flags: 0 };
        let options = option(self.socket.as_fd(), SOL_XDP, libc::XDP_OPTIONS, empty, || {
            "asking an AF_XDP socket who copies".into()
        })?;
        Ok(options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0)
    }

    /// The longest time of a busy poll in microseconds; `None` if busy polling is not preferred.
    ///
    /// # Errors
    /// What getsockopt(2) reports.
    pub fn busy_poll_us(&self) -> Result<Option<u32>> {
        BusyPoll::time_us(self.socket.as_fd())
    }
}

impl AsFd for Socket {
    /// For maps of sockets, and for poll(2).
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn open(interface: &str) -> Result<OwnedFd> {
    let action = || format!("opening an AF_XDP socket for {interface}");
    // SAFETY: no pointers are passed; a non-negative result is a new descriptor that nobody else owns.
    let number = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if number < 0 {
        let error = Error::last(action());
        return Err(match error.kind() {
            Kind::Permission => error.remedy(
                "run as root, or give the program its rights once with: setcap \
                 cap_net_raw,cap_net_admin,cap_bpf,cap_ipc_lock+ep PROGRAM",
            ),
            _ if error.errno() == Some(libc::EAFNOSUPPORT) => {
                error.with_kind(Kind::Unsupported).remedy(
                    "this kernel is older than 4.18 or has no AF_XDP (CONFIG_XDP_SOCKETS), or the sandbox \
                     forbids it: use packet:",
                )
            }
            _ => error,
        });
    }
    // SAFETY: `number` is the new descriptor from above.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Gives the kernel the memory. It counts as locked memory of the user; the soft limit is raised as far as
/// it may be.
fn register(socket: BorrowedFd<'_>, umem: &Umem, interface: &str) -> Result<()> {
    let request = libc::xdp_umem_reg_v1 {
        addr: umem.address() as u64,
        len: umem.bytes() as u64,
        chunk_size: umem.chunk_bytes() as u32,
        headroom: 0,
    };
    let set = || {
        set_option(socket, SOL_XDP, libc::XDP_UMEM_REG, &request, || {
            let mib = umem.bytes().div_ceil(1 << 20);
            format!("registering {mib} MiB of memory for AF_XDP on {interface}")
        })
    };
    let begun = Instant::now();
    loop {
        match set() {
            Err(error) if error.errno() == Some(libc::ENOBUFS) => {
                // What a socket had that was closed a moment ago is counted for some time yet.
                if !raise_lock_limit() && begun.elapsed() >= REBIND {
                    return Err(error.limited(Limit::LockedMemory));
                }
                std::thread::sleep(REBIND_AGAIN);
            }
            outcome => return outcome,
        }
    }
}

/// Raises the soft limit of locked memory to the hard one; false if it was there.
fn raise_lock_limit() -> bool {
    let limit = getrlimit(Resource::Memlock);
    limit.current != limit.maximum
        && setrlimit(Resource::Memlock, Rlimit { current: limit.maximum, ..limit }).is_ok()
}

fn set_up_rings(socket: BorrowedFd<'_>, config: &SocketConfig, completions: u32) -> Result<()> {
    let rings = [
        (libc::XDP_UMEM_FILL_RING, config.rx_entries.max(UNUSED_ENTRIES)),
        (libc::XDP_UMEM_COMPLETION_RING, completions),
        (libc::XDP_RX_RING, config.rx_entries),
        (libc::XDP_TX_RING, config.tx_entries),
    ];
    for (name, entries) in rings.into_iter().filter(|(_, entries)| *entries > 0) {
        set_option(socket, SOL_XDP, name, &entries, || {
            let interface = &config.interface;
            format!("setting up a ring of {entries} entries for AF_XDP on {interface}")
        })?;
    }
    Ok(())
}

/// What makes sending faster, where the kernel has it.
fn prepare_sending(socket: BorrowedFd<'_>, entries: u32) {
    let quiet = String::new;
    let budget = TX_BUDGET.min(entries);
    let _ = set_option(socket, SOL_XDP, XDP_MAX_TX_SKB_BUDGET, &budget, quiet);
    for name in [libc::SO_SNDBUF, libc::SO_SNDBUFFORCE] {
        let _ = set_option(socket, libc::SOL_SOCKET, name, &SEND_BUFFER_BYTES, quiet);
    }
}

/// Where the rings lie in the socket's address space.
struct PageOffsets {
    rx: u64,
    tx: u64,
    fill: u64,
    completion: u64,
}

impl PageOffsets {
    const KERNEL: Self = Self {
        rx: libc::XDP_PGOFF_RX_RING as u64,
        tx: libc::XDP_PGOFF_TX_RING as u64,
        fill: libc::XDP_UMEM_PGOFF_FILL_RING,
        completion: libc::XDP_UMEM_PGOFF_COMPLETION_RING,
    };
}

fn offsets(socket: BorrowedFd<'_>) -> Result<xdp_mmap_offsets> {
    const NONE: xdp_ring_offset = xdp_ring_offset { producer: 0, consumer: 0, desc: 0, flags: 0 };
    let empty = xdp_mmap_offsets { rx: NONE, tx: NONE, fr: NONE, cr: NONE };
    let action = || "asking where the rings of an AF_XDP socket lie".to_owned();
    let found = option(socket, SOL_XDP, libc::XDP_MMAP_OFFSETS, empty, action)?;
    // Kernels before 5.4 answer in a shorter form, and have no flags.
    if found.cr.flags == 0 {
        return Err(Error::new(action(), io::Error::from_raw_os_error(libc::EOPNOTSUPP))
            .remedy("AF_XDP with need-wakeup takes Linux 5.4 or later: use packet:"));
    }
    Ok(found)
}

fn bind(socket: BorrowedFd<'_>, config: &SocketConfig, shared: Option<&OwnedFd>) -> Result<()> {
    let mut flags = match config.mode {
        CopyMode::ZeroCopy => libc::XDP_ZEROCOPY,
        CopyMode::Copy => libc::XDP_COPY,
    } | libc::XDP_USE_NEED_WAKEUP;
    if config.multi_buffer {
        flags |= libc::XDP_USE_SG;
    }
    if shared.is_some() {
        // The others' flags hold for this one; the kernel wants none besides.
        flags = libc::XDP_SHARED_UMEM;
    }
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: flags,
        sxdp_ifindex: config.index,
        sxdp_queue_id: config.queue,
        sxdp_shared_umem_fd: shared.map_or(0, |first| first.as_raw_fd().cast_unsigned()),
    };
    let begun = Instant::now();
    loop {
        // SAFETY: `address` is a complete address of the length given.
        let outcome = unsafe {
            libc::bind(
                socket.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_xdp>() as libc::socklen_t,
            )
        };
        if outcome == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EBUSY) || begun.elapsed() >= REBIND {
            return Err(bind_error(config, error));
        }
        std::thread::sleep(REBIND_AGAIN);
    }
}

fn bind_error(config: &SocketConfig, source: io::Error) -> Error {
    let SocketConfig { interface, queue, .. } = config;
    let way = match config.mode {
        CopyMode::ZeroCopy => "zero-copy",
        CopyMode::Copy => "copy mode",
    };
    let error = Error::new(format!("binding AF_XDP to {interface} queue {queue} in {way}"), source);
    match error.errno() {
        Some(libc::EBUSY) => error.remedy(format!(
            "another AF_XDP socket has this queue: end its program, or choose another queue with \
             xdp:{interface}@N"
        )),
        Some(libc::EINVAL) => error.remedy(format!(
            "the interface may have fewer queues: see them with: ethtool -l {interface}"
        )),
        Some(libc::EOPNOTSUPP) => {
            error.remedy("the driver cannot do this: use copy mode or packet:")
        }
        Some(libc::ENETDOWN) => error.remedy(format!("run: ip link set {interface} up")),
        Some(libc::ENOBUFS) => error.limited(Limit::LockedMemory),
        _ => error,
    }
}

/// Tells the driver that there are chunks to fill.
pub(super) fn wake_receiver(socket: BorrowedFd<'_>) -> Result<()> {
    // SAFETY: no memory is passed; an empty message makes the kernel look at the rings (xsk_recvmsg,
    // net/xdp/xsk.c).
    let outcome = unsafe {
        libc::recvfrom(
            socket.as_raw_fd(),
            std::ptr::null_mut(),
            0,
            libc::MSG_DONTWAIT,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        )
    };
    if outcome >= 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        // It is at work, or the interface is away: what is done then is not decided here.
        Some(
            libc::EAGAIN | libc::EBUSY | libc::EINTR | libc::ENETDOWN | libc::ENXIO | libc::ENOBUFS,
        ) => Ok(()),
        _ => Err(Error::new("waking the receiving side of an AF_XDP socket", error)),
    }
}

/// Tells the kernel that there are frames to send.
pub(super) fn wake_transmitter(socket: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no memory is passed; an empty message makes the kernel look at the rings (xsk_sendmsg,
    // net/xdp/xsk.c).
    let outcome = unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            std::ptr::null(),
            0,
            libc::MSG_DONTWAIT,
            std::ptr::null(),
            0,
        )
    };
    if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
