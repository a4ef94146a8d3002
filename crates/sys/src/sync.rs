//! What threads synchronise by: the standard library's, or loom's while a model of the same code is
//! checked (`--cfg loom`), which tries all orders in which threads can see each other's accesses.

#[cfg(loom)]
pub(crate) use loom::sync::{Mutex, atomic::AtomicBool};
#[cfg(not(loom))]
pub(crate) use std::sync::{Mutex, atomic::AtomicBool};
