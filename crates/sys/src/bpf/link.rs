//! Programs on interfaces, for as long as somebody holds the link.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use super::call::{self, call, call_for_file};
use super::program::ATTACH_XDP;
use super::{Occupant, Program, info, rights};
use crate::link::{Link, Links};
use crate::{Error, Kind, Result};

/// Where on an interface a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum XdpMode {
    /// In the driver, before there is a socket buffer.
    Native,
    /// In the kernel behind the driver, on socket buffers: works everywhere, at a tenth of the speed.
    Generic,
    /// On the card.
    Hardware,
}

impl XdpMode {
    /// `XDP_FLAGS_DRV_MODE` and its like of include/uapi/linux/if_link.h.
    fn flag(self) -> u32 {
        match self {
            Self::Generic => 1 << 1,
            Self::Native => 1 << 2,
            Self::Hardware => 1 << 3,
        }
    }

    /// The word of ip-link(8).
    pub fn keyword(self) -> &'static str {
        match self {
            Self::Generic => "xdpgeneric",
            Self::Native => "xdpdrv",
            Self::Hardware => "xdpoffload",
        }
    }
}

impl fmt::Display for XdpMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Native => "native",
            Self::Generic => "generic",
            Self::Hardware => "hardware",
        })
    }
}

/// A program that runs on an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct XdpAttachment {
    /// Where.
    pub mode: XdpMode,
    /// The program's number on this machine.
    pub program_id: u32,
}

/// Holds a program on an interface. When it is dropped, or the process ends in whatever way, the kernel
/// takes the program off.
#[derive(Debug)]
pub struct XdpLink {
    file: OwnedFd,
    interface: String,
    mode: XdpMode,
}

/// `BPF_LINK_CREATE`.
#[repr(C)]
struct Creation {
    program: u32,
    interface: u32,
    attach_type: u32,
    flags: u32,
}

/// `BPF_LINK_UPDATE`.
#[repr(C)]
struct Exchange {
    link: u32,
    program: u32,
    flags: u32,
    old_program: u32,
}

impl XdpLink {
    /// Puts `program` on an interface of the calling thread's namespace. One that is there already stays.
    ///
    /// # Errors
    /// [`Kind::Busy`] if there is one, with its number, name and holder; [`Kind::NotFound`];
    /// [`Kind::Permission`]; [`Kind::Unsupported`] if the driver has no such mode, or not for its present
    /// MTU or queues: another mode may do.
    pub fn attach(program: &Program, interface: &str, mode: XdpMode) -> Result<Self> {
        let mut links = Links::current()?;
        let link = links.named(interface)?;
        if let Some(occupant) = link.xdp.first() {
            return Err(occupied(program, interface, Occupant::of(*occupant)));
        }
        let mut creation = Creation {
            program: program.number(),
            interface: link.index,
            attach_type: ATTACH_XDP,
            flags: mode.flag(),
        };
        // SAFETY: the structure is the beginning of the command's part of `union bpf_attr` and has no
        // addresses; the command returns a new descriptor.
        let created = unsafe { call_for_file(call::LINK_CREATE, &mut creation) };
        let source = match created {
            Ok(file) => return Ok(Self { file, interface: interface.to_owned(), mode }),
            Err(source) => source,
        };
        if matches!(source.raw_os_error(), Some(libc::EBUSY | libc::EEXIST)) {
            let occupant = links.named(interface).ok().and_then(|link| link.xdp.first().copied());
            if let Some(occupant) = occupant {
                return Err(occupied(program, interface, Occupant::of(occupant)));
            }
        }
        Err(refused(program, &link, mode, source))
    }

    /// The interface's name when the program was put there.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// Where the program runs.
    pub fn mode(&self) -> XdpMode {
        self.mode
    }

    /// Whether the interface is still there; a link does not come back with a new one of the same name.
    ///
    /// # Errors
    /// What bpf(2) reports.
    pub fn is_attached(&self) -> Result<bool> {
        info::interface_of(self).map(|index| index != 0).map_err(|source| {
            Error::new(format!("asking about the program on {}", self.interface), source)
        })
    }

    /// Exchanges the program for `program`; each frame meets one of the two.
    ///
    /// # Errors
    /// `ENOLINK` when the interface was removed; what the driver says of the program.
    pub fn exchange(&self, program: &Program) -> Result<()> {
        let mut exchange = Exchange {
            link: self.file.as_raw_fd().cast_unsigned(),
            program: program.number(),
            flags: 0,
            old_program: 0,
        };
        // SAFETY: the structure is the beginning of the command's part of `union bpf_attr` and has no
        // addresses.
        unsafe { call(call::LINK_UPDATE, &mut exchange) }.map(drop).map_err(|source| {
            let action =
                format!("exchanging the program on {} for {}", self.interface, program.name());
            Error::new(action, source)
        })
    }
}

impl AsFd for XdpLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn occupied(program: &Program, interface: &str, occupant: Occupant) -> Error {
    let action = format!("putting the program {} on {interface}", program.name());
    let source =
        io::Error::new(io::ErrorKind::ResourceBusy, format!("{occupant} is there already"));
    Error::new(action, source).with_kind(Kind::Busy).remedy(occupant.remedy(interface))
}

/// Drivers say more to netlink than bpf(2) passes on; the usual reasons are told by the number.
fn refused(program: &Program, link: &Link, mode: XdpMode, source: io::Error) -> Error {
    let name = &link.name;
    let action = format!("putting the program {} on {name} ({mode} mode)", program.name());
    let error = Error::new(action, source);
    match error.errno() {
        Some(libc::EPERM) => rights::explained(error),
        Some(libc::EOPNOTSUPP) => {
            error.remedy("the driver has no such mode: try another one, generic works everywhere")
        }
        Some(libc::EINVAL | libc::ERANGE | libc::EMSGSIZE | libc::E2BIG)
            if mode != XdpMode::Generic && link.mtu_bytes > 1500 =>
        {
            error.with_kind(Kind::Unsupported).remedy(format!(
                "the MTU of {name} or of its peer is {}, too large for frames in one buffer: lower it to \
                 1500, use a program for several buffers, or generic mode",
                link.mtu_bytes
            ))
        }
        Some(libc::ERANGE) => error.with_kind(Kind::Unsupported).remedy(format!(
            "the MTU of the other end of {name} is too large for frames in one buffer: lower it to 1500, or \
             use generic mode"
        )),
        Some(libc::ENOSPC) => error.with_kind(Kind::Unsupported).remedy(format!(
            "{name} has too few receive queues for its peer's transmit queues: make them as many with ethtool -L"
        )),
        Some(libc::EINVAL) => error.with_kind(Kind::Unsupported).remedy(format!(
            "the driver of {name} does not take it as things are (often: LRO is on, too few queues are free, \
             or the kernel is older than 5.9): try ethtool -K {name} lro off, or generic mode"
        )),
        _ => error,
    }
}
