//! The program that gives the frames of an interface's queues to sockets.
//!
//! A frame whose queue has a socket in the map goes there, with the time in front of it where that is wanted;
//! any other one goes on to the host as if there were no program. So a port begins and ends to receive by an entry of the map, and the program itself
//! comes and goes while nothing is lost. The kernel takes it away with the last descriptor of its link,
//! however this process ends.

use std::os::fd::BorrowedFd;

use ebpf::Register::{R0, R1, R2, R3, R6, R7, R8, R10};
use ebpf::operation::{Arithmetic, Comparison, Size};
use ebpf::{Assembler, AssemblyError, Code, Helper, Verdict, part};
use sys::Kind;
use sys::bpf::{Binding, Map, MapKind, MapSpec, Program, XdpLink, XdpMode};
use sys::xsk::STAMP_BYTES;

/// Fields of `struct xdp_md` (include/uapi/linux/bpf.h).
const DATA: i16 = 0;
const DATA_META: i16 = 8;
const RX_QUEUE_INDEX: i16 = 16;

/// Frames longer than this cannot be told from others by the program, and are shorter than any page.
const ROOM_BYTES_MAX: usize = 4096;

/// A program on an interface, and the sockets that it gives frames to.
#[derive(Debug)]
pub(super) struct Redirect {
    sockets: Map,
    long: Map,
    link: XdpLink,
    /// Gives frames away with the time, and without.
    timing: Program,
    plain: Program,
    is_timing: bool,
}

impl Redirect {
    /// Puts the program on an interface of the calling thread's namespace, where none may be. It gives no
    /// frame away yet. Frames of more than `room_bytes` are dropped and counted; without that, sockets are
    /// to take frames of several buffers.
    ///
    /// A driver may find the MTU of the interface, or of a veth's other end, too large for frames in one
    /// buffer; it is then told that several will do, whether there are such frames or not.
    pub(super) fn attach(
        interface: &str,
        queues: u32,
        room_bytes: Option<usize>,
        mode: XdpMode,
    ) -> sys::Result<Self> {
        let attach = |several| Self::attach_for(interface, queues, room_bytes, mode, several);
        if room_bytes.is_none() {
            return attach(true);
        }
        attach(false).or_else(|error| match error.kind() {
            Kind::Unsupported | Kind::Invalid => attach(true).map_err(|_| error),
            _ => Err(error),
        })
    }

    fn attach_for(
        interface: &str,
        queues: u32,
        room_bytes: Option<usize>,
        mode: XdpMode,
        takes_several_buffers: bool,
    ) -> sys::Result<Self> {
        let sockets = Map::create(&MapSpec::new("lr_sockets", MapKind::XskMap, 4, 4, queues))?;
        let long = Map::create(&MapSpec::new("lr_long", MapKind::PerCpuArray, 4, 8, 1))?;
        let maps = [&sockets, &long];
        let load = |is_timing| {
            let code = code(room_bytes, is_timing).map_err(|error| {
                sys::Error::new("writing the program for AF_XDP", std::io::Error::other(error))
            })?;
            code.load_xdp_for("lr_redirect", &maps, takes_several_buffers, Binding::default())
                .map_err(ebpf::Refused::into_error)
        };
        let (timing, plain) = (load(true)?, load(false)?);
        let link = XdpLink::attach(&timing, interface, mode)?;
        Ok(Self { sockets, long, link, timing, plain, is_timing: true })
    }

    /// Gives frames away with the time from now on, or without it, which saves the kernel a third of its
    /// work. A driver that does not take the other program keeps this one.
    pub(super) fn set_timing(&mut self, is_timing: bool) {
        let program = if is_timing { &self.timing } else { &self.plain };
        if is_timing != self.is_timing && self.link.exchange(program).is_ok() {
            self.is_timing = is_timing;
        }
    }

    /// Where the program runs.
    pub(super) fn mode(&self) -> XdpMode {
        self.link.mode()
    }

    /// From now on frames of this queue come to the socket.
    pub(super) fn admit(&self, queue: u32, socket: BorrowedFd<'_>) -> sys::Result<()> {
        self.sockets.set_file(queue, socket)
    }

    /// From now on frames of this queue go to the host again, but for those that are on their way.
    pub(super) fn shut(&self, queue: u32) -> sys::Result<()> {
        self.sockets.delete(&queue.to_ne_bytes()).map(drop)
    }

    /// Frames that were dropped since they were longer than a buffer.
    pub(super) fn long_packets(&self) -> sys::Result<u64> {
        let mut values = vec![0; self.long.value_bytes()];
        self.long.get(&0_u32.to_ne_bytes(), &mut values)?;
        let words = values.chunks_exact(8).filter_map(|word| word.try_into().ok());
        Ok(words.map(u64::from_ne_bytes).sum())
    }
}

/// Gives the frame to its queue's socket, unless there is none or the frame is too long for it.
fn code(room_bytes: Option<usize>, is_timing: bool) -> Result<Code, AssemblyError> {
    let mut program = Assembler::new();
    let (sockets, long) = (program.declare_map("sockets"), program.declare_map("long"));
    let (ours, too_long) = (program.label("ours"), program.label("too_long"));
    let packet = part::begin(&mut program, false);
    program.note("to the socket of its queue; without one the verdict is that of R3 (Linux 5.3)");
    program.load(Size::Word, R2, packet.context, RX_QUEUE_INDEX);
    program.map(R1, sockets);
    program.set(R3, Verdict::Pass as i32);
    program.call(Helper::REDIRECT_MAP);
    program.jump_if(R0, Comparison::Equal, Verdict::Redirect as i32, ours);
    program.exit();
    program.place(ours);
    if let Some(room_bytes) = room_bytes {
        program.note("whether there is room for it");
        program.copy(R2, packet.data);
        program.compute(Arithmetic::Add, R2, room_bytes.min(ROOM_BYTES_MAX) as i32);
        program.jump_if(packet.end, Comparison::Greater, R2, too_long);
    }
    if is_timing {
        put_time(&mut program);
    }
    part::end(&mut program, Verdict::Redirect);
    if room_bytes.is_some() {
        program.place(too_long);
        count(&mut program, long);
        part::end(&mut program, Verdict::Drop);
    }
    program.finish()
}

/// Adds one to this CPU's only value of a map.
fn count(program: &mut Assembler, map: ebpf::MapPlace) {
    let counted = program.label("counted");
    program.store_constant(Size::Word, R10, -4, 0);
    program.copy(R2, R10);
    program.compute(Arithmetic::Add, R2, -4);
    program.map(R1, map);
    program.call(Helper::MAP_LOOKUP);
    program.jump_if(R0, Comparison::Equal, 0, counted);
    program.load(Size::Double, R1, R0, 0);
    program.compute(Arithmetic::Add, R1, 1);
    program.store(Size::Double, R0, 0, R1);
    program.place(counted);
}

/// Puts the monotonic time in front of the frame, as meta data that goes with it. A driver that has no
/// room for any gives the frame away without.
fn put_time(program: &mut Assembler) {
    let bytes = STAMP_BYTES as i32;
    let untimed = program.label("untimed");
    program.note("the time");
    program.copy(R1, R6);
    program.set(R2, -bytes);
    program.call(Helper::ADJUST_META);
    program.jump_if(R0, Comparison::NotEqual, 0, untimed);
    program.call(Helper::TIME_NS);
    program.load(Size::Word, R7, R6, DATA_META);
    program.load(Size::Word, R8, R6, DATA);
    program.copy(R1, R7);
    program.compute(Arithmetic::Add, R1, bytes);
    program.note("that much lies in front of the data, which the verifier wants to be shown");
    program.jump_if(R1, Comparison::Greater, R8, untimed);
    program.store(Size::Double, R7, 0, R0);
    program.place(untimed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_without_a_socket_costs_nine_instructions() {
        let listing = code(Some(2_000), true).unwrap().to_string();
        let before = listing.split("ours:").next().unwrap();
        let instructions = before.lines().filter(|line| line.contains(": (")).count();
        assert_eq!((instructions, listing.matches("call").count()), (9, 4), "{listing}");
    }
}
