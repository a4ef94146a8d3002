//! Rings that hand things from one thread to one other, without locks and without waiting.
//!
//! `rtrb`'s. While models are checked (`--cfg loom`), a ring of the same interface and the same
//! orders of memory accesses takes its place, so that the models see what the users of the ring may
//! rely on and no more.

#[cfg(loom)]
mod model;

#[cfg(loom)]
pub use model::{Consumer, Producer, PushError, RingBuffer};
#[cfg(not(loom))]
pub use rtrb::{Consumer, Producer, PushError, RingBuffer};
