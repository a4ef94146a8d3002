//! What the kernel tells about a program or a link (`BPF_OBJ_GET_INFO_BY_FD`).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use super::call::{self, NAME_BYTES, call, call_for_file};
use super::{Program, XdpLink};
use crate::{Error, Result};

/// What the kernel knows of a loaded program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramInfo {
    /// Its number on this machine, the one that `bpftool prog` and `ip link` show.
    pub id: u32,
    /// The name that it was loaded with, up to 15 bytes; often empty.
    pub name: String,
    /// A hash of its instructions.
    pub tag: [u8; 8],
    /// The user who loaded it.
    pub user: u32,
    /// Bytes of the instructions as the kernel rewrote them, 0 if it does not say.
    pub translated_bytes: u32,
    /// Bytes of machine code; 0 if it is interpreted.
    pub machine_code_bytes: u32,
    /// Instructions that the verifier went through (Linux 5.16).
    pub verified_instructions: u32,
}

/// `struct bpf_prog_info`, up to what is read.
#[repr(C)]
#[derive(Default)]
struct RawProgram {
    kind: u32,
    id: u32,
    tag: [u8; 8],
    machine_code_bytes: u32,
    translated_bytes: u32,
    machine_code: u64,
    translated: u64,
    load_time: u64,
    user: u32,
    map_count: u32,
    maps: u64,
    name: [u8; NAME_BYTES],
    interface: u32,
    is_gpl_compatible: u32,
    namespace_device: u64,
    namespace_inode: u64,
    symbol_count: u32,
    function_count: u32,
    symbols: u64,
    function_bytes: u64,
    btf: u32,
    function_record_bytes: u32,
    functions: u64,
    function_record_count: u32,
    line_count: u32,
    lines: u64,
    machine_lines: u64,
    machine_line_count: u32,
    line_record_bytes: u32,
    machine_line_record_bytes: u32,
    tag_count: u32,
    tags: u64,
    run_time_ns: u64,
    run_count: u64,
    recursion_misses: u64,
    verified_instructions: u32,
    attached_btf_object: u32,
    attached_btf: u32,
    padding: u32,
}

/// `struct bpf_link_info` of an XDP link, up to what is read.
#[repr(C)]
#[derive(Default)]
struct RawLink {
    kind: u32,
    id: u32,
    program: u32,
    padding: u32,
    interface: u32,
    padding_behind: u32,
}

/// `BPF_OBJ_GET_INFO_BY_FD`.
#[repr(C)]
struct Asking {
    file: u32,
    bytes: u32,
    address: u64,
}

/// `BPF_PROG_GET_FD_BY_ID`.
#[repr(C)]
struct Opening {
    id: u32,
    next_id: u32,
    flags: u32,
}

impl ProgramInfo {
    /// Of the program with this number.
    ///
    /// # Errors
    /// [`crate::Kind::NotFound`] if there is none; [`crate::Kind::Permission`] without `CAP_SYS_ADMIN`.
    pub fn of_id(id: u32) -> Result<Self> {
        let action = || format!("asking about the program with the number {id}");
        let mut opening = Opening { id, next_id: 0, flags: 0 };
        // SAFETY: the structure is the beginning of the command's part of `union bpf_attr`; the command
        // returns a new descriptor.
        let file: OwnedFd = unsafe { call_for_file(call::PROG_GET_FD_BY_ID, &mut opening) }
            .map_err(|source| Error::new(action(), source))?;
        Self::of_file(std::os::fd::AsFd::as_fd(&file))
            .map_err(|source| Error::new(action(), source))
    }

    fn of_file(file: BorrowedFd<'_>) -> io::Result<Self> {
        let mut raw = RawProgram::default();
        // SAFETY: the kernel writes a `struct bpf_prog_info`, whose beginning the structure is, or less; the
        // addresses in it are 0, for which it writes nothing elsewhere.
        unsafe { ask(file, &mut raw) }?;
        Ok(Self {
            id: raw.id,
            name: call::name_of(&raw.name),
            tag: raw.tag,
            user: raw.user,
            translated_bytes: raw.translated_bytes,
            machine_code_bytes: raw.machine_code_bytes,
            verified_instructions: raw.verified_instructions,
        })
    }
}

impl Program {
    /// What the kernel knows of it.
    ///
    /// # Errors
    /// What bpf(2) reports.
    pub fn info(&self) -> Result<ProgramInfo> {
        ProgramInfo::of_file(std::os::fd::AsFd::as_fd(self)).map_err(|source| {
            Error::new(format!("asking about the program {}", self.name()), source)
        })
    }
}

/// The number of the interface that a link holds its program on; 0 once that interface was removed.
pub(super) fn interface_of(link: &XdpLink) -> io::Result<u32> {
    let mut raw = RawLink::default();
    // SAFETY: the kernel writes a `struct bpf_link_info`, whose beginning the structure is, and knows of no
    // address in that of an XDP link.
    unsafe { ask(std::os::fd::AsFd::as_fd(link), &mut raw) }?;
    Ok(raw.interface)
}

/// # Safety
/// The kernel may write any bytes to `raw`, and takes its addresses, if it has any, for what they are.
unsafe fn ask<R>(file: BorrowedFd<'_>, raw: &mut R) -> io::Result<()> {
    let mut asking = Asking {
        file: file.as_raw_fd().cast_unsigned(),
        bytes: size_of::<R>() as u32,
        address: std::ptr::from_mut(raw).addr() as u64,
    };
    // SAFETY: the structure is the command's part of `union bpf_attr`; the kernel writes at most as many
    // bytes to the address as are there.
    unsafe { call(call::OBJ_GET_INFO_BY_FD, &mut asking) }.map(drop)
}
