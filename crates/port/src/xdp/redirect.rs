//! The program that gives the frames of an interface's queues to sockets.
//!
//! A frame whose queue has a socket in the map goes there, with the time in front of it where that is wanted;
//! any other one goes on to the host as if there were no program. So a port begins and ends to receive by an entry of the map, and the program itself
//! comes and goes while nothing is lost. The kernel takes it away with the last descriptor of its link,
//! however this process ends.

use std::os::fd::BorrowedFd;

use sys::Kind;
use sys::bpf::{
    Instruction, Map, MapKind, MapSpec, Program, ProgramKind, ProgramSpec, XdpLink, XdpMode,
};
use sys::xsk::STAMP_BYTES;

/// Codes of the instructions that are used here (RFC 9669).
mod code {
    /// `dst = *(u32 *)(src + offset)`
    pub const LOAD_32: u8 = 0x61;
    /// `dst = *(u64 *)(src + offset)`
    pub const LOAD_64: u8 = 0x79;
    /// `*(u64 *)(dst + offset) = src`
    pub const STORE_64: u8 = 0x7b;
    /// `*(u32 *)(dst + offset) = immediate`
    pub const STORE_32_IMMEDIATE: u8 = 0x62;
    /// `dst = the address of a map`, of two slots
    pub const LOAD_MAP: u8 = 0x18;
    pub const MOVE: u8 = 0xbf;
    pub const MOVE_IMMEDIATE: u8 = 0xb7;
    pub const ADD_IMMEDIATE: u8 = 0x07;
    pub const JUMP_NOT_EQUAL: u8 = 0x55;
    pub const JUMP_EQUAL: u8 = 0x15;
    pub const JUMP: u8 = 0x05;
    /// `if dst > src`
    pub const JUMP_GREATER: u8 = 0x2d;
    pub const CALL: u8 = 0x85;
    pub const EXIT: u8 = 0x95;
}

/// `bpf_map_lookup_elem` and its like of include/uapi/linux/bpf.h.
const LOOK_UP: i32 = 1;
const TIME_NS: i32 = 5;
const REDIRECT_MAP: i32 = 51;
const ADJUST_META: i32 = 54;

/// `enum xdp_action`.
const DROP: i32 = 1;
const PASS: i32 = 2;
const REDIRECT: i32 = 4;

/// `struct xdp_md`.
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const DATA_META: i16 = 8;
const RX_QUEUE_INDEX: i16 = 16;

/// Places of the maps.
const SOCKETS: i32 = 0;
const LONG: i32 = 1;

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
            let spec = ProgramSpec {
                maps: &maps,
                takes_several_buffers,
                ..ProgramSpec::new("lr_redirect", ProgramKind::Xdp, &[])
            };
            let instructions = instructions(room_bytes, is_timing);
            Program::load(&ProgramSpec { instructions: &instructions, ..spec })
                .map_err(sys::bpf::LoadError::into_error)
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
fn instructions(room_bytes: Option<usize>, is_timing: bool) -> Vec<Instruction> {
    let op = Instruction::new;
    let exit = op(code::EXIT, 0, 0, 0, 0);
    let mut program = vec![op(code::MOVE, 6, 1, 0, 0), op(code::LOAD_32, 2, 1, RX_QUEUE_INDEX, 0)];
    program.extend(load_map(1, SOCKETS));
    // Where there is no socket, the action of the third argument is the answer (Linux 5.3).
    program.extend([
        op(code::MOVE_IMMEDIATE, 3, 0, 0, PASS),
        op(code::CALL, 0, 0, 0, REDIRECT_MAP),
        op(code::JUMP_EQUAL, 0, 0, 1, REDIRECT),
        exit,
    ]);
    if let Some(room_bytes) = room_bytes {
        let room = room_bytes.min(ROOM_BYTES_MAX) as i32;
        let count = count_long();
        program.extend([
            op(code::LOAD_32, 2, 6, DATA, 0),
            op(code::LOAD_32, 3, 6, DATA_END, 0),
            op(code::ADD_IMMEDIATE, 2, 0, 0, room),
            // The end lies behind what there is room for: the frame is too long.
            op(code::JUMP_GREATER, 3, 2, 1, 0),
            op(code::JUMP, 0, 0, count.len() as i16, 0),
        ]);
        program.extend(count);
    }
    if is_timing {
        program.extend(put_time());
    }
    program.extend([op(code::MOVE_IMMEDIATE, 0, 0, 0, REDIRECT), exit]);
    program
}

fn load_map(register: u8, place: i32) -> [Instruction; 2] {
    [Instruction::new(code::LOAD_MAP, register, Instruction::MAP, 0, place), Instruction::default()]
}

/// Counts a frame that is too long, and drops it.
fn count_long() -> Vec<Instruction> {
    let op = Instruction::new;
    let mut count = vec![
        op(code::STORE_32_IMMEDIATE, 10, 0, -4, 0),
        op(code::MOVE, 2, 10, 0, 0),
        op(code::ADD_IMMEDIATE, 2, 0, 0, -4),
    ];
    count.extend(load_map(1, LONG));
    count.extend([
        op(code::CALL, 0, 0, 0, LOOK_UP),
        op(code::JUMP_EQUAL, 0, 0, 3, 0),
        op(code::LOAD_64, 1, 0, 0, 0),
        op(code::ADD_IMMEDIATE, 1, 0, 0, 1),
        op(code::STORE_64, 0, 1, 0, 0),
        op(code::MOVE_IMMEDIATE, 0, 0, 0, DROP),
        op(code::EXIT, 0, 0, 0, 0),
    ]);
    count
}

/// Puts the monotonic time in front of the frame, as meta data that goes with it. A driver that has no
/// room for any gives the frame away without.
fn put_time() -> Vec<Instruction> {
    let op = Instruction::new;
    let bytes = STAMP_BYTES as i32;
    vec![
        op(code::MOVE, 1, 6, 0, 0),
        op(code::MOVE_IMMEDIATE, 2, 0, 0, -bytes),
        op(code::CALL, 0, 0, 0, ADJUST_META),
        op(code::JUMP_NOT_EQUAL, 0, 0, 7, 0),
        op(code::CALL, 0, 0, 0, TIME_NS),
        op(code::LOAD_32, 2, 6, DATA_META, 0),
        op(code::LOAD_32, 3, 6, DATA, 0),
        op(code::MOVE, 1, 2, 0, 0),
        op(code::ADD_IMMEDIATE, 1, 0, 0, bytes),
        // That much lies in front of the data, which the verifier wants to be shown.
        op(code::JUMP_GREATER, 1, 3, 1, 0),
        op(code::STORE_64, 2, 0, 0, 0),
    ]
}
