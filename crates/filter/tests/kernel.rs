//! The kernel accepts every program, and answers as the evaluator does.
//!
//! A socket takes a program as its filter; a frame that is sent to it arrives or does not.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;

use filter::program::KERNEL_INSTRUCTIONS_MAX;
use filter::{Filter, Instruction, Link, Packet};
use oracle::expressions;
use oracle::frames::{self, Frame, corpus};
use sys::packet::{BpfInstruction, attach_filter};

const NO_MEMORY: i32 = 12;

/// Instructions up to which programs share a socket.
const SHORT: usize = 100;

/// Instructions from which on a program may take more memory than a socket has.
const LONG: usize = 1_000;

/// Frames of which each expression is asked about one.
const STEP: usize = 8;

/// What the kernel computes otherwise than libpcap, whose meaning counts here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Difference {
    /// It shifts by the lower five bits of a computed amount; libpcap gives 0 for more than 31.
    ComputedShift,
    /// Offsets behind 2 GiB lead to its own headers, or back: libpcap finds nothing there.
    NegativeOffset,
    /// Without a device it returns what A held before.
    Interface,
}

fn difference(program: &[Instruction]) -> Option<Difference> {
    program.iter().find_map(|instruction| match instruction.code {
        0x6c | 0x7c => Some(Difference::ComputedShift),
        0x20 if instruction.k == 0xffff_f008 => Some(Difference::Interface),
        // Not the facts about a packet, which both know.
        0x20 | 0x28 | 0x30 if (1 << 31..0xffff_f000).contains(&instruction.k) => {
            Some(Difference::NegativeOffset)
        }
        0x40 | 0x48 | 0x50 if instruction.k >= 1 << 31 => Some(Difference::NegativeOffset),
        _ => None,
    })
}

/// Whether X, by which a load is moved, may hold anything, and so a load may wrap.
fn moves_by_anything(program: &[Instruction]) -> bool {
    let is_load = |code| matches!(code, 0x40 | 0x48 | 0x50);
    program.iter().any(|i| i.code == 0x07) && program.iter().any(|i| is_load(i.code))
}

struct Socket {
    sender: UnixDatagram,
    receiver: UnixDatagram,
}

impl Socket {
    fn new() -> Self {
        let (sender, receiver) = UnixDatagram::pair().unwrap();
        sender.set_nonblocking(true).unwrap();
        receiver.set_nonblocking(true).unwrap();
        Self { sender, receiver }
    }

    fn lets_through(&self, frame: &Frame) -> bool {
        self.sender.send(&frame.data).unwrap();
        match self.receiver.recv(&mut [0]) {
            Ok(_) => true,
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) => panic!("{error}"),
        }
    }
}

fn agrees(test: &str, link: Link, number: u16) {
    let shared = Socket::new();
    if let Err(error) = attach_filter(shared.receiver.as_fd(), &[BpfInstruction::keep(1)]) {
        return testing::say_skipped(test, error);
    }
    let mut frames = corpus(number);
    frames.retain(|frame| frame.data.len() == frame.wire_bytes as usize);
    let mut all = expressions::hand_picked();
    all.extend(expressions::generated(1, 4_500));
    let (mut programs, mut long, mut different, mut pairs) = (0, 0, 0, 0);
    for (place, text) in all.iter().enumerate() {
        let Ok(filter) = Filter::new(text, link) else { continue };
        let Some(program) = filter.program() else { panic!("{text} has no program") };
        if program.0.len() > KERNEL_INSTRUCTIONS_MAX {
            long += 1;
            continue;
        }
        let same = |i: &Instruction| BpfInstruction { code: i.code, jt: i.jt, jf: i.jf, k: i.k };
        let instructions: Vec<BpfInstruction> = program.0.iter().map(same).collect();
        // While filters are exchanged, both count against what a socket may hold.
        let own = (instructions.len() > SHORT).then(Socket::new);
        let socket = own.as_ref().unwrap_or(&shared);
        match attach_filter(socket.receiver.as_fd(), &instructions) {
            Ok(()) => {}
            // What the kernel sets aside for a socket's filter (net.core.optmem_max) is less on some
            // machines than the longest programs take.
            Err(error) if error.errno() == Some(NO_MEMORY) && program.0.len() > LONG => {
                long += 1;
                continue;
            }
            Err(error) => panic!("{text:.200}: {error}\n{program}"),
        }
        programs += 1;
        if difference(&program.0).is_some() || moves_by_anything(&program.0) {
            different += 1;
            continue;
        }
        for frame in frames.iter().skip(place % STEP).step_by(STEP) {
            // No interface stands behind this socket, and nothing is outbound there.
            let packet = Packet { outbound: Some(false), ..Packet::whole(&frame.data) };
            let (ours, its) = (filter.matches(&packet), socket.lets_through(frame));
            pairs += 1;
            assert_eq!(ours, its, "{text:.200} on {} ({:?}...)\n{program}", frame.kind, link);
        }
    }
    println!(
        "{link:?}: {programs} programs, {pairs} frames sent; {long} too long, {different} not asked"
    );
    assert!(programs >= 2_500, "{programs}");
    assert!(pairs >= 500_000, "{pairs}");
    assert!(long <= 8, "{long} were too long");
    assert!(different * 10 <= programs, "{different} of {programs}");
}

#[test]
fn the_kernel_agrees_on_ethernet() {
    agrees("the_kernel_agrees_on_ethernet", Link::Ethernet, frames::ETHERNET);
}

#[test]
fn the_kernel_agrees_on_raw_ip() {
    agrees("the_kernel_agrees_on_raw_ip", Link::Raw, frames::RAW);
}

#[test]
fn the_kernel_agrees_on_cooked() {
    agrees("the_kernel_agrees_on_cooked", Link::LinuxCooked, frames::LINUX_SLL);
}

#[test]
fn the_kernel_agrees_on_cooked_v2() {
    agrees("the_kernel_agrees_on_cooked_v2", Link::LinuxCooked2, frames::LINUX_SLL2);
}
