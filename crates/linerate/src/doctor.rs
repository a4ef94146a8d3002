//! The doctor: looks at the machine, at ports and at a directory, and says what it found.
//!
//! One file an area. Each turns facts, which `sys` reads, into [`Finding`]s; what was not named on the
//! command line is reported as a note at most, since nobody said that it is to be used.

pub mod clock;
pub mod cpus;
pub mod finding;
pub mod memory;
pub mod port;
pub mod programs;
pub mod rights;
pub mod storage;

pub use finding::{Area, Finding, Severity};
