//! One pass over the frames of a TPACKET_V3 block: VLAN tags put back, descriptors collected.
//!
//! Works on a plain byte slice, so nothing that stands in a block can make it read or write
//! outside of it. Layout: `linux/if_packet.h`; the order of the fields is the kernel's, the
//! byte order the machine's.

use std::mem::offset_of;

use bitflags::bitflags;
use libc::{tpacket_block_desc, tpacket_hdr_v1, tpacket3_hdr};

bitflags! {
    /// What is to be known about one received frame.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct FrameFlags: u16 {
        /// The outer VLAN tag had been taken out of the frame and was put back.
        const VLAN_RESTORED = 1;
        /// Fewer bytes were kept than were received.
        const TRUNCATED = 1 << 1;
        /// The ring had dropped frames before this block was closed, not yet read by
        /// [`PacketRing::statistics`](super::PacketRing::statistics).
        const LOSING = 1 << 2;
        /// The sender left the transport checksum to its interface: it is not filled in.
        const CHECKSUM_NOT_READY = 1 << 3;
        /// The kernel or interface checked the transport checksum and found it right.
        const CHECKSUM_VALID = 1 << 4;
        /// Merged from several frames on the way in (GRO, LRO): it was never on the wire so.
        const MERGED = 1 << 5;
    }
}

/// Who took the time of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum TimeSource {
    /// The interface, in its own clock.
    Hardware,
    /// The kernel when it took the frame from the driver, in the system's real-time clock.
    Software,
    /// The kernel when it copied the frame into the ring, in the system's real-time clock:
    /// nobody had asked for an earlier stamp.
    #[default]
    Ring,
    /// This program when it took the frame out of a ring, in the system's real-time clock: the
    /// kernel had taken none.
    Reader,
}

/// One received frame inside a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptor {
    /// Where the frame (its destination address) begins, in bytes from the block's start.
    pub offset: u32,
    /// Bytes kept, a restored VLAN tag included.
    pub length: u32,
    /// Bytes received, a restored VLAN tag included, without FCS.
    pub wire_length: u32,
    /// The kernel's hash of the flow; 0 unless [`RingConfig::flow_hash`](super::RingConfig) is on.
    pub flow_hash: u32,
    /// Time of reception in ns since the start of 1970, by the clock of `time_source`.
    pub time_ns: u64,
    /// What is to be known about the frame.
    pub flags: FrameFlags,
    /// Who took `time_ns`.
    pub time_source: TimeSource,
}

/// Bounds that the ring's settings give.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Most bytes to keep of a frame.
    pub(super) snap_bytes: u32,
    /// Longest frame that the interface can receive as one.
    pub(super) frame_bytes: u32,
}

/// What a walk found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Walk {
    /// The block's number in the order of filling, from 1.
    pub(super) sequence: u64,
    /// Frames whose headers point outside of the block and which were left out.
    pub(super) malformed: u32,
}

const HEADER: usize = size_of::<tpacket3_hdr>();
const BLOCK_HEADER: usize = size_of::<tpacket_block_desc>();
const MAC_ADDRESSES: usize = 12;
const TAG: usize = 4;
const ETHERTYPE_VLAN: u16 = 0x8100;
/// A TCP super-frame (`TP_STATUS_GSO_TCP`, Linux 6.1; younger than the headers that `libc` has).
const STATUS_MERGED_TCP: u32 = 1 << 8;

/// Offset in a block of a field of its header.
pub(super) const fn block_field(field: usize) -> usize {
    offset_of!(tpacket_block_desc, hdr) + field
}

/// Collects a descriptor for each frame of `block` into the empty `descriptors`, putting VLAN
/// tags back in place: the kernel's layout leaves room between its header and the frame
/// (`PACKET_RESERVE`), into which the two addresses move.
pub(super) fn walk(block: &mut [u8], limits: Limits, descriptors: &mut Vec<Descriptor>) -> Walk {
    let Some(header) = block.first_chunk::<BLOCK_HEADER>() else {
        return Walk { sequence: 0, malformed: 0 };
    };
    let status = u32_at(header, block_field(offset_of!(tpacket_hdr_v1, block_status)));
    let count = u32_at(header, block_field(offset_of!(tpacket_hdr_v1, num_pkts)));
    let mut offset =
        u32_at(header, block_field(offset_of!(tpacket_hdr_v1, offset_to_first_pkt))) as usize;
    let sequence = u64_at(header, block_field(offset_of!(tpacket_hdr_v1, seq_num)));
    let mut common = FrameFlags::empty();
    common.set(FrameFlags::LOSING, status & libc::TP_STATUS_LOSING != 0);

    let mut malformed = 0;
    for done in 0..count {
        let Some(header) = block.get(offset..).and_then(|rest| rest.first_chunk::<HEADER>()) else {
            malformed += count - done;
            break;
        };
        let header = *header;
        match restore_frame(block, offset, &header, limits) {
            Some(mut descriptor) => {
                descriptor.flags |= common;
                descriptors.push(descriptor);
            }
            None => malformed += 1,
        }
        let step = u32_at(&header, offset_of!(tpacket3_hdr, tp_next_offset)) as usize;
        if step < HEADER {
            // The last frame has no successor; a shorter step would loop.
            malformed += count - done - 1;
            break;
        }
        offset = offset.saturating_add(step);
    }
    Walk { sequence, malformed }
}

/// The descriptor of the frame whose header stands at `at`; nothing if it would leave the block.
fn restore_frame(
    block: &mut [u8],
    at: usize,
    header: &[u8; HEADER],
    limits: Limits,
) -> Option<Descriptor> {
    let status = u32_at(header, offset_of!(tpacket3_hdr, tp_status));
    let mac = usize::from(u16_at(header, offset_of!(tpacket3_hdr, tp_mac)));
    let mut length = u32_at(header, offset_of!(tpacket3_hdr, tp_snaplen));
    let mut wire_length = u32_at(header, offset_of!(tpacket3_hdr, tp_len));
    let mut start = at.checked_add(mac)?;
    let end = start.checked_add(length as usize)?;
    if mac < HEADER || end > block.len() {
        return None;
    }

    let mut flags = FrameFlags::empty();
    let kept_whole_addresses = length as usize >= MAC_ADDRESSES;
    if status & libc::TP_STATUS_VLAN_VALID != 0 && kept_whole_addresses && mac >= HEADER + TAG {
        restore_tag(block, start, status, header);
        start -= TAG;
        length += TAG as u32;
        wire_length = wire_length.saturating_add(TAG as u32);
        flags |= FrameFlags::VLAN_RESTORED;
    }
    length = length.min(limits.snap_bytes);
    flags.set(FrameFlags::TRUNCATED, length < wire_length);
    flags.set(FrameFlags::CHECKSUM_NOT_READY, status & libc::TP_STATUS_CSUMNOTREADY != 0);
    flags.set(FrameFlags::CHECKSUM_VALID, status & libc::TP_STATUS_CSUM_VALID != 0);
    flags.set(
        FrameFlags::MERGED,
        status & STATUS_MERGED_TCP != 0 || wire_length > limits.frame_bytes,
    );
    let seconds = u32_at(header, offset_of!(tpacket3_hdr, tp_sec));
    let nanoseconds = u32_at(header, offset_of!(tpacket3_hdr, tp_nsec));
    Some(Descriptor {
        offset: u32::try_from(start).ok()?,
        length,
        wire_length,
        flow_hash: u32_at(header, offset_of!(tpacket3_hdr, hv1.tp_rxhash)),
        time_ns: u64::from(seconds) * 1_000_000_000 + u64::from(nanoseconds),
        flags,
        time_source: time_source(status),
    })
}

/// Moves the two addresses at `start` down and writes the tag behind them. The caller has
/// checked that the addresses and the room before them lie inside the block.
fn restore_tag(block: &mut [u8], start: usize, status: u32, header: &[u8; HEADER]) {
    let tag_protocol = if status & libc::TP_STATUS_VLAN_TPID_VALID != 0 {
        u16_at(header, offset_of!(tpacket3_hdr, hv1.tp_vlan_tpid))
    } else {
        ETHERTYPE_VLAN
    };
    let tag_control = u32_at(header, offset_of!(tpacket3_hdr, hv1.tp_vlan_tci)) as u16;
    let Some(frame) = block.get_mut(start - TAG..start + MAC_ADDRESSES) else { return };
    frame.copy_within(TAG.., 0);
    let [protocol_high, protocol_low] = tag_protocol.to_be_bytes();
    let [control_high, control_low] = tag_control.to_be_bytes();
    if let Some(tag) = frame.last_chunk_mut::<TAG>() {
        *tag = [protocol_high, protocol_low, control_high, control_low];
    }
}

fn time_source(status: u32) -> TimeSource {
    if status & libc::TP_STATUS_TS_RAW_HARDWARE != 0 {
        TimeSource::Hardware
    } else if status & libc::TP_STATUS_TS_SOFTWARE != 0 {
        TimeSource::Software
    } else {
        TimeSource::Ring
    }
}

// The offsets are constants inside of arrays of constant size: after inlining no check is left.

#[inline(always)]
fn u16_at<const N: usize>(bytes: &[u8; N], at: usize) -> u16 {
    u16::from_ne_bytes([bytes[at], bytes[at + 1]])
}

#[inline(always)]
fn u32_at<const N: usize>(bytes: &[u8; N], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[inline(always)]
fn u64_at<const N: usize>(bytes: &[u8; N], at: usize) -> u64 {
    let mut value = [0; 8];
    value.copy_from_slice(&bytes[at..at + 8]);
    u64::from_ne_bytes(value)
}

#[cfg(test)]
mod tests;
