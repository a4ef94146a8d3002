//! What the tests share: sockets on the ends of a cable.

use std::sync::Arc;

use sys::link::Links;
use sys::xsk::{CopyMode, Socket, SocketConfig, Umem};

/// Chunks of the small memories here: they are within the locked memory that any user has.
pub const CHUNKS: u32 = 1024;

pub fn umem() -> Arc<Umem> {
    Umem::new(CHUNKS, 2048).unwrap()
}

/// A socket on queue 0 of `interface` that neither receives nor sends yet.
pub fn config(interface: &str) -> SocketConfig {
    let link = Links::current().unwrap().named(interface).unwrap();
    SocketConfig {
        interface: interface.into(),
        index: link.index,
        queue: 0,
        mode: CopyMode::Copy,
        rx_entries: 0,
        tx_entries: 0,
        multi_buffer: false,
        busy_poll: None,
    }
}

pub fn sending(interface: &str) -> SocketConfig {
    SocketConfig { tx_entries: 256, ..config(interface) }
}

pub fn receiving(interface: &str) -> SocketConfig {
    SocketConfig { rx_entries: 512, ..config(interface) }
}

pub fn open(umem: &Arc<Umem>, config: &SocketConfig) -> Socket {
    Socket::open(umem, config).unwrap()
}
