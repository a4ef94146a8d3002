//! The structures of linux/ethtool.h and the ioctl that carries them.

use std::ffi::c_void;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `SIOCETHTOOL` of linux/sockios.h.
const SIOCETHTOOL: libc::Ioctl = 0x8946;

pub(super) const SET_RINGS: u32 = 0x11;
pub(super) const SET_CHANNELS: u32 = 0x3d;

/// A structure that the ethtool ioctl reads and writes.
///
/// # Safety
/// The type is `repr(C)`, of plain integers only, begins with the 32-bit command, and is at least
/// as large as what the kernel reads and writes for every command that this crate puts there.
pub(super) unsafe trait Request {}

/// `struct ethtool_value`: one number.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Value {
    pub command: u32,
    pub data: u32,
}

/// `struct ethtool_drvinfo`, for `ETHTOOL_GDRVINFO` (3).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct DriverInformation {
    pub command: u32,
    pub driver: [u8; 32],
    pub version: [u8; 32],
    pub firmware_version: [u8; 32],
    pub bus_information: [u8; 32],
    pub expansion_rom_version: [u8; 32],
    pub reserved: [u8; 12],
    pub private_flags: u32,
    pub statistics: u32,
    pub test_information_length: u32,
    pub eeprom_length: u32,
    pub registers_length: u32,
}

/// `struct ethtool_ringparam`, for `ETHTOOL_GRINGPARAM` (0x10) and [`SET_RINGS`].
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct RingParameters {
    pub command: u32,
    pub rx_max_pending: u32,
    pub rx_mini_max_pending: u32,
    pub rx_jumbo_max_pending: u32,
    pub tx_max_pending: u32,
    pub rx_pending: u32,
    pub rx_mini_pending: u32,
    pub rx_jumbo_pending: u32,
    pub tx_pending: u32,
}

/// `struct ethtool_channels`, for `ETHTOOL_GCHANNELS` (0x3c) and [`SET_CHANNELS`].
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct ChannelCounts {
    pub command: u32,
    pub max_rx: u32,
    pub max_tx: u32,
    pub max_other: u32,
    pub max_combined: u32,
    pub rx_count: u32,
    pub tx_count: u32,
    pub other_count: u32,
    pub combined_count: u32,
}

/// `struct ethtool_ts_info`, for `ETHTOOL_GET_TS_INFO` (0x41).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct TimestampInformation {
    pub command: u32,
    pub so_timestamping: u32,
    pub phc_index: i32,
    pub tx_types: u32,
    pub tx_reserved: [u32; 3],
    pub rx_filters: u32,
    pub rx_reserved: [u32; 3],
}

/// `struct ethtool_link_settings` with the longest masks that its 8-bit word count can announce,
/// three of them, for `ETHTOOL_GLINKSETTINGS` (0x4c).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct LinkSettings {
    pub command: u32,
    pub speed: u32,
    pub duplex: u8,
    pub port: u8,
    pub phy_address: u8,
    pub autonegotiation: u8,
    pub mdio_support: u8,
    pub crossover: u8,
    pub crossover_control: u8,
    pub mask_words: i8,
    pub transceiver: u8,
    pub role: u8,
    pub role_state: u8,
    pub rate_matching: u8,
    pub reserved: [u32; 7],
    pub masks: [u32; 3 * 127],
}

macro_rules! request {
    ($name:ident, $bytes:expr, $command:expr) => {
        // SAFETY: repr(C) integers beginning with the command; the size is the kernel's, checked
        // below against the layout of linux/ethtool.h.
        unsafe impl Request for $name {}

        const _: () = assert!(size_of::<$name>() == $bytes);

        impl Default for $name {
            fn default() -> Self {
                // SAFETY: all fields are integers or arrays of them, for which zero is a value.
                Self { command: $command, ..unsafe { mem::zeroed() } }
            }
        }
    };
}

request!(DriverInformation, 196, 3);
request!(RingParameters, 36, 0x10);
request!(ChannelCounts, 36, 0x3c);
request!(TimestampInformation, 44, 0x41);
request!(LinkSettings, 48 + 3 * 127 * 4, 0x4c);

// SAFETY: repr(C), two 32-bit numbers of which the first is the command, as struct ethtool_value.
unsafe impl Request for Value {}

/// `struct ifreq` with the member that ethtool uses; 40 bytes on 64-bit machines.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; 16],
    data: *mut c_void,
    rest: [u8; 24 - size_of::<*mut c_void>()],
}

/// A socket for the ioctl, in the calling thread's network namespace.
pub(super) fn socket() -> io::Result<OwnedFd> {
    // Any socket will do; netlink exists even where IP is forbidden (ethtool(8) does the same).
    for (domain, kind, protocol) in [
        (libc::AF_INET, libc::SOCK_DGRAM, 0),
        (libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_GENERIC),
    ] {
        // SAFETY: socket(2) takes numbers only.
        let number = unsafe { libc::socket(domain, kind | libc::SOCK_CLOEXEC, protocol) };
        if number >= 0 {
            // SAFETY: the descriptor is new and nobody else's.
            return Ok(unsafe { OwnedFd::from_raw_fd(number) });
        }
    }
    Err(io::Error::last_os_error())
}

/// A request of which the kernel decides how long its answer is.
pub(super) struct Variable(Vec<u32>);

impl Variable {
    /// `struct ethtool_gstrings` (`ETHTOOL_GSTRINGS`, 0x1b): command, set, count, names.
    pub(super) fn names(set: u32, count: u32, room: usize, name_bytes: usize) -> Self {
        Self::new([0x1b, set, count, 0], 12 + room * name_bytes)
    }

    /// `struct ethtool_stats` (`ETHTOOL_GSTATS`, 0x1d): command, count, 64-bit values.
    pub(super) fn counters(count: u32, room: usize) -> Self {
        Self::new([0x1d, count, 0, 0], 8 + room * 8)
    }

    fn new(head: [u32; 4], bytes: usize) -> Self {
        let mut words = vec![0; bytes.max(16).div_ceil(4)];
        for (to, from) in words.iter_mut().zip(head) {
            *to = from;
        }
        Self(words)
    }

    /// What the kernel has made of it.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0.into_iter().flat_map(u32::to_ne_bytes).collect()
    }
}

/// Lets the kernel carry out `request` on the interface `name`.
pub(super) fn perform<R: Request>(socket: &OwnedFd, name: &str, request: &mut R) -> io::Result<()> {
    // SAFETY: `request` is exclusively borrowed for the call and large enough, as its type's
    // `Request` promises.
    unsafe { carry_out(socket, name, (request as *mut R).cast()) }
}

/// As [`perform`], for answers of variable length.
pub(super) fn perform_variable(
    socket: &OwnedFd,
    name: &str,
    request: &mut Variable,
) -> io::Result<()> {
    // SAFETY: the words are exclusively borrowed for the call, and whoever made the request left
    // room for all that the driver can have while it runs (`Ethtool::room`).
    unsafe { carry_out(socket, name, request.0.as_mut_ptr().cast()) }
}

/// # Safety
/// `data` points to a structure of linux/ethtool.h that begins with its command and is valid for
/// all that the kernel reads and writes for that command.
unsafe fn carry_out(socket: &OwnedFd, name: &str, data: *mut c_void) -> io::Result<()> {
    let rest = [0; 24 - size_of::<*mut c_void>()];
    let mut interface = InterfaceRequest { name: [0; 16], data, rest };
    // The last byte stays zero.
    for (to, from) in interface.name.iter_mut().take(15).zip(name.bytes()) {
        *to = from;
    }
    // SAFETY: `interface` is a valid ifreq; the caller answers for its data.
    let returned = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut interface) };
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
