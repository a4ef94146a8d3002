//! `packet:IF`: a network interface through packet sockets, whatever its driver.

pub(crate) mod device;
pub(crate) mod far_end;
mod rx;
mod tx;

pub use device::Device;
pub use rx::{PacketRx, RING_BYTES, RING_BYTES_MIN, RxOptions};
pub use tx::PacketTx;

use sys::link::Link;

use crate::queue::PortDescription;

pub(crate) fn describe(interface: &str, mechanism: String, link: &Link) -> PortDescription {
    let speed = sys::ethtool::Ethtool::current(interface).and_then(|device| device.speed_mbps());
    PortDescription {
        spec: format!("packet:{interface}"),
        mechanism,
        frame_bytes_max: link.frame_bytes_max() as usize,
        longer_frames: Some(format!("raise the MTU of {interface}, {} bytes", link.mtu_bytes)),
        link_type: 1,
        // Virtual devices claim speeds that mean nothing.
        speed_bps: match (&link.kind, speed) {
            (None, Ok(Some(mbps))) => Some(u64::from(mbps) * 1_000_000),
            _ => None,
        },
    }
}
