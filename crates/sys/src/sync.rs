//! What threads synchronise by: the standard library's, or loom's while a model of the same code is
//! checked (`--cfg loom`), which tries all orders in which threads can see each other's accesses.

#[cfg(loom)]
pub use loom::sync::{Arc, Mutex, atomic::AtomicBool};
#[cfg(not(loom))]
pub use std::sync::{Arc, Mutex, atomic::AtomicBool};

use std::time::Duration;

/// Sleeps until another thread wakes this one, or has since it last slept, or `limit` is over. In a
/// model, which has no time, who is not woken sleeps for ever, and loom says so.
pub fn park(limit: Duration) {
    #[cfg(not(loom))]
    std::thread::park_timeout(limit);
    #[cfg(loom)]
    {
        let _ = limit;
        loom::thread::park();
    }
}

/// Sleeps for a while; in a model, until another thread has gone on.
pub fn nap(length: Duration) {
    #[cfg(not(loom))]
    std::thread::sleep(length);
    #[cfg(loom)]
    {
        let _ = length;
        loom::thread::yield_now();
    }
}
