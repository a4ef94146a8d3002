//! Opens the queues that a [`PortSpec`] names, wrapped in the faults that it asks for.

use port::fault::{FaultyRx, FaultyTx};
use port::null::Null;
use port::packet::{PacketRx, PacketTx, RxOptions};
use port::snap::SnapRx;
use port::xdp::{self, Require};
use port::{PortError, PortKind, PortSpec, RxQueue, TxQueue, memory};
use store::file_port::{self, FileTx};

use crate::error::Result;
use crate::patience::Patience;

/// Opens the receiving queue of a port, in the calling thread's network namespace. The writer of a pipe is
/// waited for; if he does not come in time, the queue has nothing. What AF_XDP serves less well than
/// `require` asks for is an error.
pub fn open_rx(
    spec: &PortSpec,
    options: &RxOptions,
    require: Option<Require>,
    patience: &Patience,
) -> Result<Box<dyn RxQueue>> {
    check(spec, require)?;
    let queue: Box<dyn RxQueue> = match spec.kind {
        PortKind::Interface | PortKind::Packet => Box::new(PacketRx::open(&spec.target, options)?),
        PortKind::Xdp => xdp::open_rx(&spec.target, spec.queues, options, require)?,
        PortKind::Memory => cut(memory::open_rx(&spec.target)?, options),
        PortKind::Pcap => cut(file_port::open_rx(&spec.target, || patience.lasts())?, options),
        PortKind::Null => Box::new(Null::default()),
    };
    Ok(if spec.faults.is_none() { queue } else { Box::new(FaultyRx::new(queue, spec.faults)) })
}

/// Only the ladder of AF_XDP has rungs to choose from.
fn check(spec: &PortSpec, require: Option<Require>) -> Result<()> {
    match require {
        Some(require) if spec.kind != PortKind::Xdp => Err(PortError::Unsupported {
            port: spec.to_string(),
            reason: match spec.interface() {
                Some(name) => format!(
                    "it is served by packet sockets, and {require} is required; use xdp:{name}"
                ),
                None => format!("it is no interface, and {require} is required"),
            },
        }
        .into()),
        _ => Ok(()),
    }
}

/// What the kernel does for interfaces.
fn cut(queue: impl RxQueue + 'static, options: &RxOptions) -> Box<dyn RxQueue> {
    match options.snap_bytes {
        u32::MAX => Box::new(queue),
        bytes => Box::new(SnapRx::new(queue, bytes)),
    }
}

/// Opens the sending queue of a port, in the calling thread's network namespace. The reader of a pipe is
/// waited for; if he does not come in time, the queue takes nothing. `require` is as in [`open_rx`].
pub fn open_tx(
    spec: &PortSpec,
    require: Option<Require>,
    patience: &Patience,
) -> Result<Box<dyn TxQueue>> {
    check(spec, require)?;
    let queue: Box<dyn TxQueue> = match spec.kind {
        PortKind::Interface | PortKind::Packet => Box::new(PacketTx::open(&spec.target)?),
        PortKind::Xdp => xdp::open_tx(&spec.target, spec.queues, require)?,
        PortKind::Memory => Box::new(memory::open_tx(&spec.target)?),
        PortKind::Pcap => Box::new(FileTx::create(&spec.target, || patience.lasts())?),
        PortKind::Null => Box::new(Null::default()),
    };
    Ok(if spec.faults.is_none() { queue } else { Box::new(FaultyTx::new(queue, spec.faults)) })
}
