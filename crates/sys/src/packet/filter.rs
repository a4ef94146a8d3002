//! Classic BPF on a packet socket: which frames the socket sees, and how much of each.

use std::os::fd::{AsRawFd, BorrowedFd};

use crate::{Error, Result};

/// One instruction of classic BPF, laid out as the kernel's `struct sock_filter`
/// (`linux/filter.h`; bpf(4) gives the meaning of the fields).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BpfInstruction {
    /// Operation and addressing mode.
    pub code: u16,
    /// Instructions to skip when a comparison holds.
    pub jt: u8,
    /// Instructions to skip when it does not.
    pub jf: u8,
    /// Immediate operand; for a return the number of bytes of the frame to keep.
    pub k: u32,
}

const _: () = assert!(size_of::<BpfInstruction>() == size_of::<libc::sock_filter>());

const RETURN_CONSTANT: u16 = 0x06;

impl BpfInstruction {
    /// `ret #bytes`: keeps that many bytes of a frame; 0 drops the frame.
    pub const fn keep(bytes: u32) -> Self {
        Self { code: RETURN_CONSTANT, jt: 0, jf: 0, k: bytes }
    }
}

/// Attaches `program` in place of whatever filter the socket has; the exchange is atomic, and
/// each frame is judged by exactly one of the two. Sockets of other kinds take one, too: a datagram that
/// is dropped by the filter of the socket that it is sent to is no error of the sender.
///
/// # Errors
/// What the kernel refuses: an invalid program, one of more than 4096 instructions, or one beyond
/// `net.core.optmem_max`.
pub fn attach(socket: BorrowedFd<'_>, program: &[BpfInstruction]) -> Result<()> {
    let action = || format!("attaching a filter of {} instructions", program.len());
    let length = u16::try_from(program.len()).map_err(|_| {
        Error::new(action(), std::io::Error::from_raw_os_error(libc::EINVAL))
            .remedy("a classic BPF program has at most 4096 instructions: make the filter simpler")
    })?;
    let description = libc::sock_fprog { len: length, filter: program.as_ptr().cast_mut().cast() };
    // SAFETY: `description` points at `length` instructions of the layout that the kernel
    // expects (asserted above); they outlive the call, and the kernel only reads them.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const description).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    if outcome < 0 {
        return Err(Error::last(action()).remedy(
            "the kernel refuses invalid programs and those beyond net.core.optmem_max: \
             make the filter simpler",
        ));
    }
    Ok(())
}

/// Attaches the filter that drops every frame; such frames do not count as seen by the socket.
pub(super) fn attach_drop_all(socket: BorrowedFd<'_>) -> Result<()> {
    attach(socket, &[BpfInstruction::keep(0)])
}

/// `program` with each constant return limited to `snap_bytes`, so that the kernel does not
/// copy what nobody will read; an empty program becomes one that keeps every frame.
pub(super) fn limited(program: &[BpfInstruction], snap_bytes: u32) -> Vec<BpfInstruction> {
    if program.is_empty() {
        return vec![BpfInstruction::keep(snap_bytes)];
    }
    program
        .iter()
        .map(|&instruction| match instruction.code {
            RETURN_CONSTANT => BpfInstruction { k: instruction.k.min(snap_bytes), ..instruction },
            _ => instruction,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_what_is_kept_and_never_what_is_dropped() {
        let program = [
            BpfInstruction { code: 0x28, jt: 0, jf: 0, k: 12 },
            BpfInstruction { code: 0x15, jt: 0, jf: 1, k: 0x0800 },
            BpfInstruction::keep(262_144),
            BpfInstruction::keep(0),
        ];
        let limited = limited(&program, 96);
        assert_eq!(limited[..2], program[..2]);
        assert_eq!(limited[2], BpfInstruction::keep(96));
        assert_eq!(limited[3], BpfInstruction::keep(0));
        assert_eq!(super::limited(&[], 128), [BpfInstruction::keep(128)]);
    }
}
