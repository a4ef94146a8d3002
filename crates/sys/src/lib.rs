//! Kernel and CPU interfaces: the only crate of the program with `unsafe`.

pub mod bpf;
pub mod clock;
pub mod cpu;
pub mod direct_io;
pub mod error;
pub mod ethtool;
pub mod file_system;
#[cfg(feature = "libpcap")]
pub mod libpcap;
pub mod limit;
pub mod link;
pub mod memory;
pub mod namespace;
pub mod napi;
pub mod netlink;
pub mod packet;
pub mod pipe;
pub mod sync;
pub mod thread;
pub mod veth;
pub mod xsk;

pub use error::{Error, Kind, Result};
pub use limit::Limit;
