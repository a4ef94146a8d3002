//! Where frames enter and leave: one pair of traits, several kinds, one conformance suite.
//!
//! # Vocabulary
//!
//! * *port*: an interface, a file or a memory ring, named by a [`PortSpec`] such as `packet:eth0`;
//! * *queue*: one direction of one ring of a port: [`RxQueue`] delivers frames, [`TxQueue`] takes them;
//! * *frame*: the bytes on the wire without the frame check sequence, with the time of arrival;
//! * *batch*: up to [`BATCH_FRAMES`] frames of one memory, handed over as a whole;
//! * *reason*: the named place where a frame was lost ([`Reason`]).
//!
//! # How frames move
//!
//! A [`Batch`] owns the memory of its frames: a slab of equal slots, a share of a kernel ring's
//! block, or chunks of AF_XDP's memory. Queues of one memory exchange whole batches without touching bytes; where the memory
//! differs (a packet socket that sends), the bytes are copied once, by the kernel.
//!
//! # Limits
//!
//! A batch holds 64 frames at most and a frame 256 KiB at most. Queues are used by one thread at a
//! time. Kinds: `packet:` (AF_PACKET), `xdp:` (AF_XDP), `memory:` (within one process), `null:`; `pcap:`
//! files live in the `store` crate and pass the same [`conformance`] suite.
//!
//! # Not supported
//!
//! DPDK ports; sharing one memory between two interfaces.
#![forbid(unsafe_code)]

pub mod batch;
pub mod conformance;
pub mod counters;
pub mod error;
pub mod fault;
pub mod fit;
pub mod frame;
pub mod limit;
pub mod memory;
pub mod null;
pub mod packet;
pub mod queue;
pub mod ring;
pub mod snap;
pub mod spec;
pub mod tap;
pub mod xdp;

pub use batch::{BATCH_FRAMES, Batch};
pub use counters::{Losses, Reason, RxCounters, TxCounters};
pub use error::{PortError, Result};
pub use frame::{FrameMeta, FrameRef};
pub use queue::{Event, PortDescription, RxQueue, TxQueue};
pub use spec::{PortKind, PortSpec, Queues};
