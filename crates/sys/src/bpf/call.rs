//! The system call itself.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use rustix::io::retry_on_intr;

pub(super) const MAP_CREATE: u32 = 0;
pub(super) const MAP_LOOKUP_ELEM: u32 = 1;
pub(super) const MAP_UPDATE_ELEM: u32 = 2;
pub(super) const MAP_DELETE_ELEM: u32 = 3;
pub(super) const MAP_GET_NEXT_KEY: u32 = 4;
pub(super) const PROG_LOAD: u32 = 5;
pub(super) const PROG_TEST_RUN: u32 = 10;
pub(super) const PROG_GET_FD_BY_ID: u32 = 13;
pub(super) const OBJ_GET_INFO_BY_FD: u32 = 15;
pub(super) const LINK_CREATE: u32 = 28;
pub(super) const LINK_UPDATE: u32 = 29;

/// Bytes of the name of a map or program, with its zero (`BPF_OBJ_NAME_LEN`).
pub(super) const NAME_BYTES: usize = 16;

/// Performs `command` with `attributes`, its part of `union bpf_attr`; the kernel takes all fields
/// behind them for zero.
///
/// # Safety
/// `attributes` is laid out as the part of `union bpf_attr` that the command has, without padding that is
/// not initialised, and each address in it is valid for what the command does with it.
pub(super) unsafe fn call<A>(command: u32, attributes: &mut A) -> io::Result<i32> {
    // SAFETY: `attributes` is valid for reads and writes of its size; the rest is the caller's promise.
    let outcome = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command as libc::c_long,
            std::ptr::from_mut(attributes),
            size_of::<A>() as libc::c_long,
        )
    };
    // Descriptors and zero; nothing that this crate asks for returns more.
    if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(outcome as i32) }
}

/// As [`call`], for commands that return a new descriptor, which closes on exec(2).
///
/// # Safety
/// As [`call`], and the command returns a descriptor that nobody else owns.
pub(super) unsafe fn call_for_file<A>(command: u32, attributes: &mut A) -> io::Result<OwnedFd> {
    // A signal that arrives while the kernel verifies is no reason to fail: it asks to be called again.
    const ATTEMPTS: u32 = 5;
    let mut attempt = 1;
    loop {
        // SAFETY: the caller's promise.
        let outcome = retry_on_intr(|| unsafe { call(command, attributes) }.map_err(errno_of));
        match outcome {
            // SAFETY: the caller's promise.
            Ok(number) => return Ok(unsafe { OwnedFd::from_raw_fd(number) }),
            Err(rustix::io::Errno::AGAIN) if attempt < ATTEMPTS => attempt += 1,
            Err(errno) => return Err(errno.into()),
        }
    }
}

fn errno_of(error: io::Error) -> rustix::io::Errno {
    rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO)
}

/// `name` as the kernel wants it: letters, digits, `_` and `.`, cut to 15 bytes
/// (bpf_obj_name_cpy in kernel/bpf/syscall.c).
pub(super) fn name_bytes(name: &str) -> [u8; NAME_BYTES] {
    let mut bytes = [0; NAME_BYTES];
    for (place, byte) in bytes.iter_mut().zip(name.bytes()).take(NAME_BYTES - 1) {
        *place = if byte.is_ascii_alphanumeric() || byte == b'.' { byte } else { b'_' };
    }
    bytes
}

/// The text before the first zero.
pub(super) fn name_of(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_such_as_the_kernel_takes() {
        assert_eq!(name_of(&name_bytes("count")), "count");
        assert_eq!(name_of(&name_bytes("udp port 53 and more")), "udp_port_53_and");
        assert_eq!(name_bytes("0123456789abcdefgh")[NAME_BYTES - 1], 0);
        assert_eq!(name_of(&name_bytes("é")), "__");
        assert_eq!(name_of(b"x\0y"), "x");
    }
}
