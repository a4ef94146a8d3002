//! Frames handed over in memory shared with the kernel (TPACKET_V2, `PACKET_TX_RING`).
//!
//! An ordinary transmit ring gives the kernel its pages as fragments of each frame. Devices that
//! cannot gather, and virtual ones that pass frames to another socket, must first copy such
//! frames together, which makes the ring slower than `sendmmsg`. So each frame here carries a
//! virtio header (`PACKET_VNET_HDR`) that declares all of it to be header: the kernel then copies
//! it at once into one piece of memory, and the ring is the fastest way of all that a packet
//! socket has (see `benches/packet_tx.rs`).
//!
//! The kernel looks at the ring only during a send call. What it has not taken when that call
//! returns is taken back here, so that nothing is sent later, unasked for.

use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

use super::transmit_slot::TransmitSlot;
use crate::packet::socket::set_option;
use crate::{Error, Result};

/// Enough for what a device has in flight at the rates that packet sockets reach.
const SLOTS: usize = 512;
const BLOCK_BYTES: usize = 64 << 10;
/// Of `struct tpacket2_hdr`.
const LENGTH_AT: usize = std::mem::offset_of!(libc::tpacket2_hdr, tp_len);
/// The kernel's data offset: its header, rounded up to the ring's alignment.
const VIRTIO_AT: usize = size_of::<libc::tpacket2_hdr>().next_multiple_of(16);
/// `struct virtio_net_hdr` of linux/virtio_net.h.
const VIRTIO_BYTES: usize = 10;
const FRAME_AT: usize = VIRTIO_AT + VIRTIO_BYTES;
/// Longest frame that is asked for in one piece: what one allocation of 16 KiB holds next to the
/// kernel's own data. Longer ones go as fragments behind an Ethernet header.
const LINEAR_BYTES_MAX: usize = 15 << 10;
const ETHERNET_HEADER_BYTES: usize = 14;

/// A mapped transmit ring. The kernel's position and `next` are the same between calls.
#[derive(Debug)]
pub(super) struct TransmitRing {
    memory: NonNull<u8>,
    slot_bytes: usize,
    next: usize,
}

// SAFETY: the mapping belongs to this value alone; it is neither copied nor shared.
unsafe impl Send for TransmitRing {}

impl TransmitRing {
    /// Sets up and maps a ring for frames of up to `frame_bytes`; before the socket is bound.
    pub(super) fn new(socket: &OwnedFd, frame_bytes: usize, interface: &str) -> Result<Self> {
        let slot_bytes = (FRAME_AT + frame_bytes).next_power_of_two();
        let block_bytes = slot_bytes.max(BLOCK_BYTES);
        let action = |what: &str| format!("{what} for {interface}");
        let option = |name, value: i32, what| {
            set_option(socket.as_fd(), libc::SOL_PACKET, name, &value, || action(what))
        };
        let version = libc::tpacket_versions::TPACKET_V2 as i32;
        option(libc::PACKET_VERSION, version, "choosing TPACKET_V2")?;
        option(libc::PACKET_VNET_HDR, 1, "choosing virtio headers")?;
        let request = libc::tpacket_req {
            tp_block_size: block_bytes as u32,
            tp_block_nr: (SLOTS * slot_bytes / block_bytes) as u32,
            tp_frame_size: slot_bytes as u32,
            tp_frame_nr: SLOTS as u32,
        };
        set_option(socket.as_fd(), libc::SOL_PACKET, libc::PACKET_TX_RING, &request, || {
            action("allocating a transmit ring")
        })?;
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
        let address = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                SLOTS * slot_bytes,
                rustix::mm::ProtFlags::READ | rustix::mm::ProtFlags::WRITE,
                rustix::mm::MapFlags::SHARED,
                socket,
                0,
            )
        }
        .map_err(|errno| Error::new(action("mapping a transmit ring"), errno))?;
        let memory = NonNull::new(address.cast()).ok_or_else(|| {
            let source = std::io::Error::other("the kernel gave no address");
            Error::new(action("mapping a transmit ring"), source)
        })?;
        Ok(Self { memory, slot_bytes, next: 0 })
    }

    /// Longest frame that fits.
    pub(super) fn frame_bytes_max(&self) -> usize {
        self.slot_bytes - FRAME_AT
    }

    /// Writes a frame into the slot `ahead` of the kernel's position, without handing it over.
    /// False when the slot is still in flight.
    ///
    /// `frame` has at most [`TransmitRing::frame_bytes_max`] bytes; more are cut off.
    pub(super) fn write(&mut self, ahead: usize, frame: &[u8]) -> bool {
        if ahead >= SLOTS || !self.status(ahead).is_free() {
            return false;
        }
        let frame = frame.get(..self.frame_bytes_max()).unwrap_or(frame);
        let linear_bytes =
            if frame.len() <= LINEAR_BYTES_MAX { frame.len() } else { ETHERNET_HEADER_BYTES };
        let mut virtio = [0; VIRTIO_BYTES];
        // Flags, kind of segmentation (1 byte each, none), then the length of the header.
        virtio[2..4].copy_from_slice(&(linear_bytes as u16).to_ne_bytes());
        let length = (VIRTIO_BYTES + frame.len()) as u32;
        let slot = self.slot(ahead);
        // SAFETY: the slot lies inside of the mapping and is ours, since it is free; header and
        // frame end within it; its start is aligned to a power of two.
        unsafe {
            slot.add(LENGTH_AT).cast::<u32>().write(length);
            slot.add(VIRTIO_AT)
                .copy_from_nonoverlapping(NonNull::from(&virtio).cast(), VIRTIO_BYTES);
            let from = NonNull::from(frame).cast();
            slot.add(FRAME_AT).copy_from_nonoverlapping(from, frame.len());
        }
        true
    }

    /// Marks the next `count` slots, which were written, as to be sent by the next send call.
    pub(super) fn hand_over(&mut self, count: usize) {
        for ahead in 0..count {
            self.status(ahead).request();
        }
    }

    /// Moves past the slots that the kernel has taken of the `count` that were handed over, and
    /// gives their number.
    pub(super) fn advance(&mut self, count: usize) -> usize {
        let taken = (0..count).position(|ahead| self.status(ahead).is_left()).unwrap_or(count);
        self.next = (self.next + taken) % SLOTS;
        taken
    }

    /// Takes back the next `count` slots, which the kernel has not taken.
    pub(super) fn take_back(&mut self, count: usize) {
        for ahead in 0..count {
            self.status(ahead).take_back();
        }
    }

    fn slot(&self, ahead: usize) -> NonNull<u8> {
        let index = (self.next + ahead) % SLOTS;
        // SAFETY: the index is below the number of slots, so the address lies in the mapping.
        unsafe { self.memory.add(index * self.slot_bytes) }
    }

    fn status(&self, ahead: usize) -> TransmitSlot<'_, AtomicU32> {
        // SAFETY: the status is the slot's first word; slots are aligned to powers of two, and
        // kernel and sender access the word atomically only.
        TransmitSlot(unsafe { AtomicU32::from_ptr(self.slot(ahead).as_ptr().cast()) })
    }
}

impl Drop for TransmitRing {
    fn drop(&mut self) {
        let bytes = SLOTS * self.slot_bytes;
        // SAFETY: mapped by `new` with this length, and nothing refers to it any more. Failure
        // would leave it mapped: harmless.
        let _ = unsafe { rustix::mm::munmap(self.memory.as_ptr().cast(), bytes) };
    }
}
