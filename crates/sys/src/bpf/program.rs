//! Loading: the verifier reads the instructions and accepts or refuses them.

mod refusal;

pub use refusal::LoadError;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use super::call::{self, NAME_BYTES, call_for_file};
use super::instruction::LOAD_64;
use super::{Instruction, Map};
use crate::{Error, Kind};

/// What runs a program, by the numbers of `enum bpf_prog_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum ProgramKind {
    /// A socket, for each datagram or frame that reaches it.
    SocketFilter = 1,
    /// A driver, for each frame that it receives.
    Xdp = 6,
}

/// Whether a program is made for one interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Binding {
    /// It runs anywhere.
    #[default]
    Free,
    /// It runs on the interface of this number only, and may ask its driver about frames (metadata kfuncs,
    /// Linux 6.3).
    Driver(u32),
    /// It is translated for, and runs on, the card of the interface of this number.
    Hardware(u32),
}

/// Only on the interface that it is bound to (`BPF_F_XDP_DEV_BOUND_ONLY`).
const BOUND_TO_DRIVER: u32 = 1 << 6;
/// The program can deal with frames of several buffers (`BPF_F_XDP_HAS_FRAGS`).
const SEVERAL_BUFFERS: u32 = 1 << 5;
/// `BPF_XDP` of `enum bpf_attach_type`.
pub(super) const ATTACH_XDP: u32 = 37;
/// Some of the kernel's functions are for programs under the GPL or what may be combined with it.
const LICENSE: &std::ffi::CStr = c"Dual MIT/GPL";
/// What the verifier says goes here; newer kernels keep the end of a longer log.
const LOG_BYTES: usize = 1 << 20;
/// As much as older kernels take (bpf_verifier_log_attr_valid).
const LOG_BYTES_MAX: usize = (u32::MAX >> 8) as usize;
/// `BPF_LOG_LEVEL1`: the path that was refused.
const LOG_PATH: u32 = 1;

/// A program to be loaded.
#[derive(Debug, Clone, Copy)]
pub struct ProgramSpec<'a> {
    /// Name for those who list programs; cut to 15 bytes.
    pub name: &'a str,
    /// What is to run it.
    pub kind: ProgramKind,
    /// The instructions.
    pub instructions: &'a [Instruction],
    /// The maps that the instructions name by their places here.
    pub maps: &'a [&'a Map],
    /// Whether an XDP program takes frames of several buffers; it sees the first one of each.
    pub takes_several_buffers: bool,
    /// The interface that it is made for.
    pub binding: Binding,
}

impl<'a> ProgramSpec<'a> {
    /// Without maps, for frames in one buffer, on any interface.
    pub fn new(name: &'a str, kind: ProgramKind, instructions: &'a [Instruction]) -> Self {
        let binding = Binding::Free;
        Self { name, kind, instructions, maps: &[], takes_several_buffers: false, binding }
    }
}

/// A program that the kernel holds as long as this value, a link or another descriptor refers to it.
#[derive(Debug)]
pub struct Program {
    file: OwnedFd,
    name: String,
    kind: ProgramKind,
}

/// `BPF_PROG_LOAD`.
#[repr(C)]
struct Loading {
    kind: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; NAME_BYTES],
    interface: u32,
    attach_type: u32,
}

impl Program {
    /// Loads a program: without a log first, and where it is refused, once more to learn why.
    ///
    /// # Errors
    /// [`LoadError`], with the kind of the error and what the verifier said.
    pub fn load(spec: &ProgramSpec<'_>) -> Result<Self, LoadError> {
        let instructions = with_descriptors(spec)?;
        let source = match load(spec, &instructions, &mut []) {
            Ok(file) => return Ok(Self::loaded(spec, file)),
            Err(source) => source,
        };
        if !is_verdict(&source) {
            return Err(LoadError::new(spec, source, String::new()));
        }
        let mut log = vec![0; LOG_BYTES];
        let mut again = load(spec, &instructions, &mut log);
        if is_cut(&again) {
            log = vec![0; LOG_BYTES_MAX];
            again = load(spec, &instructions, &mut log);
        }
        match again {
            Ok(file) => Ok(Self::loaded(spec, file)),
            // With a log that has no room the number says only that.
            Err(_) => Err(LoadError::new(spec, source, call::name_of(&log))),
        }
    }

    fn loaded(spec: &ProgramSpec<'_>, file: OwnedFd) -> Self {
        Self { file, name: spec.name.to_owned(), kind: spec.kind }
    }

    /// Its name as it was asked for.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What runs it.
    pub fn kind(&self) -> ProgramKind {
        self.kind
    }

    pub(super) fn number(&self) -> u32 {
        self.file.as_raw_fd().cast_unsigned()
    }
}

impl AsFd for Program {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn load(
    spec: &ProgramSpec<'_>,
    instructions: &[Instruction],
    log: &mut [u8],
) -> io::Result<OwnedFd> {
    let (bound_flag, interface) = match spec.binding {
        Binding::Free => (0, 0),
        Binding::Driver(interface) => (BOUND_TO_DRIVER, interface),
        Binding::Hardware(interface) => (0, interface),
    };
    let mut loading = Loading {
        kind: spec.kind as u32,
        // A longer list is none that the kernel takes, as it finds out by itself.
        instruction_count: u32::try_from(instructions.len()).unwrap_or(u32::MAX),
        instructions: instructions.as_ptr().addr() as u64,
        license: LICENSE.as_ptr().addr() as u64,
        log_level: if log.is_empty() { 0 } else { LOG_PATH },
        log_bytes: log.len() as u32,
        log: if log.is_empty() { 0 } else { log.as_mut_ptr().addr() as u64 },
        kernel_version: 0,
        flags: bound_flag | if spec.takes_several_buffers { SEVERAL_BUFFERS } else { 0 },
        name: call::name_bytes(spec.name),
        interface,
        attach_type: if spec.kind == ProgramKind::Xdp { ATTACH_XDP } else { 0 },
    };
    // SAFETY: the structure is the beginning of the command's part of `union bpf_attr`, without padding; the
    // instructions, the license with its zero, and the log outlive the call and have the lengths given. A
    // number of instructions that was cut is below the length of the list, or refused before it is read
    // (the kernel takes a million at most). The command returns a new descriptor.
    unsafe { call_for_file(call::PROG_LOAD, &mut loading) }
}

/// The instructions with the descriptors of the maps that they name.
fn with_descriptors(spec: &ProgramSpec<'_>) -> Result<Vec<Instruction>, LoadError> {
    /// What the kernel calls `BPF_PSEUDO_MAP_FD` and `BPF_PSEUDO_MAP_VALUE`.
    const DESCRIPTOR: u8 = 1;
    const VALUE_OF_DESCRIPTOR: u8 = 2;
    if spec.instructions.is_empty() {
        return Err(invalid(spec, 0, "is missing: a program ends with an exit"));
    }
    let mut instructions = spec.instructions.to_vec();
    let mut is_second_slot = false;
    for (place, instruction) in instructions.iter_mut().enumerate() {
        if std::mem::take(&mut is_second_slot) || instruction.code != LOAD_64 {
            continue;
        }
        is_second_slot = true;
        let source = match instruction.source() {
            Instruction::MAP => DESCRIPTOR,
            Instruction::MAP_VALUE => VALUE_OF_DESCRIPTOR,
            DESCRIPTOR | VALUE_OF_DESCRIPTOR => {
                let why = "names a map by its descriptor instead of its place in the list";
                return Err(invalid(spec, place, why));
            }
            _ => continue,
        };
        let map = usize::try_from(instruction.immediate).ok().and_then(|map| spec.maps.get(map));
        let Some(map) = map else {
            return Err(invalid(spec, place, "names a map that is not in the list"));
        };
        *instruction = instruction.with_source(source);
        instruction.immediate = map.as_fd().as_raw_fd();
    }
    Ok(instructions)
}

fn invalid(spec: &ProgramSpec<'_>, place: usize, why: &str) -> LoadError {
    let source = io::Error::new(io::ErrorKind::InvalidInput, format!("instruction {place} {why}"));
    let error = Error::new(format!("loading the program {}", spec.name), source);
    LoadError::before_the_kernel(error.with_kind(Kind::Invalid), place)
}

/// Whether the verifier may have something to say.
fn is_verdict(error: &io::Error) -> bool {
    !matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOSYS | libc::EBADF))
}

fn is_cut(outcome: &io::Result<OwnedFd>) -> bool {
    matches!(outcome, Err(error) if error.raw_os_error() == Some(libc::ENOSPC))
}
