//! The ways of sending: ours, and bare forms of what else the kernel offers.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use io_uring::{IoUring, opcode, types};
use sys::packet::{Method, Sender, SenderConfig};

const BATCH: usize = 64;

/// One way to send.
pub trait Way {
    /// For the table.
    fn name(&self) -> &'static str;
    /// Hands one batch of frames to the kernel.
    fn send_batch(&mut self);
}

/// All ways on one interface of the calling thread's namespace, ours first.
pub fn all(interface: &str, frame: &[u8]) -> Vec<Box<dyn Way>> {
    let frame = frame.to_vec();
    vec![
        Box::new(Ours::open(interface, Method::Ring, true, "Sender by ring", &frame)),
        Box::new(Ours::open(interface, Method::Ring, false, "the same, through the qdisc", &frame)),
        Box::new(Ours::open(interface, Method::Messages, true, "Sender by sendmmsg", &frame)),
        Box::new(SendEach { socket: socket(interface), frame: frame.clone() }),
        Box::new(TransmitRing::open(interface, &frame)),
        Box::new(Uring::open(interface, &frame)),
    ]
}

struct Ours {
    sender: Sender,
    frame: Vec<u8>,
    name: &'static str,
}

impl Ours {
    fn open(
        interface: &str,
        method: Method,
        qdisc_bypass: bool,
        name: &'static str,
        frame: &[u8],
    ) -> Self {
        let config = SenderConfig { method, qdisc_bypass, ..SenderConfig::new(interface) };
        Self { sender: Sender::open(&config).unwrap(), frame: frame.to_vec(), name }
    }
}

impl Way for Ours {
    fn name(&self) -> &'static str {
        self.name
    }

    fn send_batch(&mut self) {
        self.sender.send(std::iter::repeat_n(self.frame.as_slice(), BATCH)).unwrap();
    }
}

/// A bound packet socket that bypasses the queueing discipline.
fn socket(interface: &str) -> OwnedFd {
    // SAFETY: no pointers; the new descriptor belongs to nobody else.
    let socket = unsafe {
        OwnedFd::from_raw_fd(libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0))
    };
    set(&socket, libc::PACKET_QDISC_BYPASS, &1_i32);
    let index = rustix::net::netdevice::name_to_index(&socket, interface).unwrap();
    // SAFETY: all zeroes is a valid address, an array of integers.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_ifindex = index as i32;
    let length = size_of::<libc::sockaddr_ll>() as u32;
    // SAFETY: `address` is valid for reads of `length` bytes.
    let outcome = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
    assert_eq!(outcome, 0, "{}", io::Error::last_os_error());
    socket
}

fn set<T>(socket: &OwnedFd, option: i32, value: &T) {
    let length = size_of::<T>() as u32;
    // SAFETY: `value` is valid for reads of `length` bytes.
    let outcome = unsafe {
        let value = std::ptr::from_ref(value).cast();
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_PACKET, option, value, length)
    };
    assert_eq!(outcome, 0, "{}", io::Error::last_os_error());
}

/// `send(2)` for each frame.
struct SendEach {
    socket: OwnedFd,
    frame: Vec<u8>,
}

impl Way for SendEach {
    fn name(&self) -> &'static str {
        "send(2) for each frame"
    }

    fn send_batch(&mut self) {
        for _ in 0..BATCH {
            // What a full queue refuses is missing from the device's counter.
            let _ = rustix::net::send(&self.socket, &self.frame, rustix::net::SendFlags::DONTWAIT);
        }
    }
}

/// A TPACKET_V2 transmit ring.
struct TransmitRing {
    socket: OwnedFd,
    memory: *mut u8,
    slot: usize,
    frame: Vec<u8>,
}

impl TransmitRing {
    const SLOTS: usize = 512;
    const SLOT_BYTES: usize = 2048;
    /// Where the frame begins in a slot: behind the header, which has 32 bytes.
    const FRAME_AT: usize = 32;

    fn open(interface: &str, frame: &[u8]) -> Self {
        let socket = socket(interface);
        set(&socket, libc::PACKET_VERSION, &1_i32);
        let block = 1 << 17;
        let bytes = Self::SLOTS * Self::SLOT_BYTES;
        let request = libc::tpacket_req {
            tp_block_size: block as u32,
            tp_block_nr: (bytes / block) as u32,
            tp_frame_size: Self::SLOT_BYTES as u32,
            tp_frame_nr: Self::SLOTS as u32,
        };
        set(&socket, libc::PACKET_TX_RING, &request);
        use rustix::mm::{MapFlags, ProtFlags, mmap};
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let memory =
            unsafe { mmap(std::ptr::null_mut(), bytes, access, MapFlags::SHARED, &socket, 0) };
        // Stays mapped until the program ends.
        Self { socket, memory: memory.unwrap().cast(), slot: 0, frame: frame.to_vec() }
    }
}

impl Way for TransmitRing {
    fn name(&self) -> &'static str {
        "plain transmit ring (as trafgen)"
    }

    fn send_batch(&mut self) {
        for _ in 0..BATCH {
            // SAFETY: the slot lies inside of the mapping; the kernel has given it back when its
            // status says so, and the frame fits behind the header.
            unsafe {
                let slot = self.memory.add(self.slot * Self::SLOT_BYTES);
                let status = AtomicU32::from_ptr(slot.cast());
                if status.load(Ordering::Acquire) & 7 != libc::TP_STATUS_AVAILABLE {
                    break;
                }
                let to = slot.add(Self::FRAME_AT);
                std::ptr::copy_nonoverlapping(self.frame.as_ptr(), to, self.frame.len());
                slot.cast::<u32>().add(1).write(self.frame.len() as u32);
                status.store(libc::TP_STATUS_SEND_REQUEST, Ordering::Release);
            }
            self.slot = (self.slot + 1) % Self::SLOTS;
        }
        let _ = rustix::net::send(&self.socket, &[], rustix::net::SendFlags::DONTWAIT);
    }
}

/// One io_uring submission with a send for each frame.
struct Uring {
    ring: IoUring,
    frame: Vec<u8>,
}

impl Uring {
    fn open(interface: &str, frame: &[u8]) -> Self {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .build(BATCH as u32)
            .unwrap();
        let socket = socket(interface);
        ring.submitter().register_files(&[socket.as_raw_fd()]).unwrap();
        // The ring holds the registered socket open.
        Self { ring, frame: frame.to_vec() }
    }
}

impl Way for Uring {
    fn name(&self) -> &'static str {
        "io_uring, a send for each frame"
    }

    fn send_batch(&mut self) {
        let length = self.frame.len() as u32;
        for _ in 0..BATCH {
            let send = opcode::Send::new(types::Fixed(0), self.frame.as_ptr(), length)
                .flags(libc::MSG_DONTWAIT)
                .build();
            // SAFETY: the frame stays where it is until all completions are in, below.
            unsafe { self.ring.submission().push(&send).unwrap() };
        }
        self.ring.submit_and_wait(BATCH).unwrap();
        self.ring.completion().for_each(drop);
    }
}
