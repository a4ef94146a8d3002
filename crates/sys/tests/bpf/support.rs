//! Instructions by hand, and what the tests share.

use sys::Kind;
use sys::bpf::{Instruction, Program, ProgramKind, ProgramSpec, Support};
use sys::link::{Link, Links};
use sys::namespace::Namespace;
use sys::veth::{VethConfig, VethPair};
use testing::{Outcome, skip};

pub const DROP: i32 = 1;
pub const PASS: i32 = 2;
pub const REDIRECT: i32 = 4;

/// Skips the test where no XDP program may be loaded.
pub fn with_right(body: impl FnOnce() -> Outcome) -> Outcome {
    match Support::probe().loading {
        Err(error) if error.kind() == Kind::Permission => skip(error),
        Err(error) => Err(error.into()),
        Ok(()) => body(),
    }
}

pub fn ins(code: u8, destination: u8, source: u8, offset: i16, immediate: i32) -> Instruction {
    Instruction::new(code, destination, source, offset, immediate)
}

/// `r = constant`
pub fn set(register: u8, constant: i32) -> Instruction {
    ins(0xb7, register, 0, 0, constant)
}

/// `r = other`
pub fn copy(register: u8, other: u8) -> Instruction {
    ins(0xbf, register, other, 0, 0)
}

pub fn exit() -> Instruction {
    ins(0x95, 0, 0, 0, 0)
}

pub fn call(helper: i32) -> Instruction {
    ins(0x85, 0, 0, 0, helper)
}

/// `r = map`, of the list.
pub fn map(register: u8, place: i32) -> [Instruction; 2] {
    [ins(0x18, register, Instruction::MAP, 0, place), ins(0, 0, 0, 0, 0)]
}

/// `r = the value of the map`, `offset` bytes on.
pub fn value(register: u8, place: i32, offset: i32) -> [Instruction; 2] {
    [ins(0x18, register, Instruction::MAP_VALUE, 0, place), ins(0, 0, 0, 0, offset)]
}

/// Adds 1 to the word of 64 bits at the beginning of map 0, and returns `verdict`.
pub fn counting(verdict: i32) -> Vec<Instruction> {
    let mut instructions = value(1, 0, 0).to_vec();
    instructions.extend([set(2, 1), ins(0xdb, 1, 2, 0, 0), set(0, verdict), exit()]);
    instructions
}

/// An XDP program that only returns `verdict`.
pub fn returning(name: &str, verdict: i32) -> Program {
    let instructions = [set(0, verdict), exit()];
    Program::load(&ProgramSpec::new(name, ProgramKind::Xdp, &instructions)).unwrap()
}

/// The two ends of a cable in this namespace, `tx0` and `rx0`.
pub fn plug_cable() {
    let here = Namespace::current().unwrap();
    VethPair::create(&here, "tx0", &here, "rx0", &VethConfig::default()).unwrap();
}

pub fn named(name: &str) -> Link {
    Links::current().unwrap().named(name).unwrap()
}

/// A frame of an experimental protocol.
pub fn frame(bytes: usize) -> Vec<u8> {
    let mut frame = vec![0x5a; bytes];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
    frame
}
