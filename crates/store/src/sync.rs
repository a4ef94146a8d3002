//! What threads synchronise by: the standard library's, or loom's while a model of the same code is
//! checked (`--cfg loom`), which tries all orders in which threads can see each other's accesses.

#[cfg(loom)]
pub(crate) use loom::sync::{Arc, Mutex, atomic::AtomicBool};
#[cfg(not(loom))]
pub(crate) use std::sync::{Arc, Mutex, atomic::AtomicBool};

use std::time::Duration;

/// Sleeps until another thread wakes this one, or has since it last slept, or `limit` is over.
#[cfg(not(loom))]
pub(crate) fn park(limit: Duration) {
    std::thread::park_timeout(limit);
}

/// A model has no time: who is not woken sleeps for ever, and loom says so.
#[cfg(loom)]
pub(crate) fn park(_limit: Duration) {
    loom::thread::park();
}
