//! Asking an interface to stamp received frames (`SIOCSHWTSTAMP`, the kernel's
//! networking/timestamping documentation).

use std::os::fd::{AsRawFd, BorrowedFd};

use super::interface::named_request;
use crate::{Error, Kind, Result};

/// Turns on hardware stamps of all received frames. The setting belongs to the interface and
/// outlives the socket.
pub(super) fn enable(socket: BorrowedFd<'_>, name: &str) -> Result<()> {
    let action = || format!("turning on hardware timestamps of {name}");
    let mut config = libc::hwtstamp_config {
        flags: 0,
        tx_type: libc::HWTSTAMP_TX_OFF as i32,
        rx_filter: libc::HWTSTAMP_FILTER_ALL as i32,
    };
    let mut request = named_request(name).map_err(|error| Error::new(action(), error))?;
    request.ifr_ifru.ifru_data = (&raw mut config).cast();
    // SAFETY: `request` and the configuration that it points at are valid and exclusively
    // borrowed for the call; the kernel reads and writes no more than the two structures.
    let outcome = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSHWTSTAMP, &raw mut request) };
    if outcome < 0 {
        let error = Error::last(action());
        return Err(match error.kind() {
            Kind::Permission => error.remedy("this needs CAP_NET_ADMIN; or use software time"),
            _ => error
                .with_kind(Kind::Unsupported)
                .remedy("this interface cannot stamp frames: use software time"),
        });
    }
    if config.rx_filter != libc::HWTSTAMP_FILTER_ALL as i32 {
        return Err(Error::new(
            action(),
            std::io::Error::other("the interface stamps only some kinds of frames"),
        )
        .with_kind(Kind::Unsupported)
        .remedy("use software time"));
    }
    Ok(())
}
