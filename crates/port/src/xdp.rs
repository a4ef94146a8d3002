//! `xdp:IF`, `xdp:IF@0-3`: queues of a network interface through AF_XDP.
//!
//! **Receiving** puts a small XDP program on the interface that gives the frames of its queues to sockets
//! of ours, *instead of* the host: as long as the port receives, the host sees nothing of what arrives
//! there. Frames are not copied on their way to a [`Batch`](crate::Batch), but for those that are longer than
//! a buffer. **Sending** copies frames into memory that the kernel sends from.
//!
//! The *ladder*: zero-copy with drivers that can, else copy mode with a program in the driver, else with a
//! program behind it, else packet sockets ([`packet`](crate::packet)). [`PortDescription::mechanism`](crate::PortDescription)
//! says which it is and why it is no better one; [`Require`] refuses what is worse.
//!
//! What was put on the interface goes away with the port, and with the process, however that ends. A
//! program that somebody else put there stays: the next rung is taken.
//!
//! Limits: Linux 5.9, of multi-buffer 6.6. Receiving needs CAP_BPF and CAP_NET_ADMIN over the machine besides
//! CAP_NET_RAW. Times of arrival are taken by our program in the kernel, or above 1.8 million frames a second of a
//! queue when a batch was taken out of the ring. One port on a queue
//! at a time, be it for receiving or for sending.

mod arrival;
mod depth;
mod input;
mod queues;
mod redirect;
mod rung;
mod rx;
mod tx;

pub use rung::{Require, Rung};
pub use rx::{RX_RING_BYTES, XdpRx};
pub use tx::XdpTx;

use crate::error::{PortError, Result};
use crate::packet::{PacketRx, PacketTx, RxOptions};
use crate::queue::{RxQueue, TxQueue};
use crate::spec::Queues;

/// Opens the receiving queue of an interface by the highest rung of the ladder that there is.
///
/// # Errors
/// Those of [`XdpRx::open`] where `require` asks for AF_XDP, and for interfaces and queues that are not
/// there; those of [`PacketRx::open`].
pub fn open_rx(
    interface: &str,
    queues: Option<Queues>,
    options: &RxOptions,
    require: Option<Require>,
) -> Result<Box<dyn RxQueue>> {
    match XdpRx::open(interface, queues, options, require) {
        Ok(rx) => Ok(Box::new(rx)),
        Err(error) if require.is_some() || is_final(&error) => Err(error),
        Err(error) => {
            let mut rx = PacketRx::open(interface, options)?;
            rx.explain(&format!("no AF_XDP: {error}"));
            Ok(Box::new(rx))
        }
    }
}

/// Opens the sending queue of an interface by the highest rung of the ladder that there is.
///
/// # Errors
/// As [`open_rx`].
pub fn open_tx(
    interface: &str,
    queues: Option<Queues>,
    require: Option<Require>,
) -> Result<Box<dyn TxQueue>> {
    match XdpTx::open(interface, queues, require) {
        Ok(tx) => Ok(Box::new(tx)),
        Err(error) if require.is_some() || is_final(&error) => Err(error),
        Err(error) => {
            let mut tx = PacketTx::open(interface)?;
            tx.explain(&format!("no AF_XDP: {error}"));
            Ok(Box::new(tx))
        }
    }
}

/// Whether no other rung would do.
fn is_final(error: &PortError) -> bool {
    match error {
        PortError::System(error) => matches!(error.kind(), sys::Kind::NotFound | sys::Kind::Down),
        _ => true,
    }
}
