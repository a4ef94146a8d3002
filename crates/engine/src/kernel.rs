//! The kernel plane: jobs done by programs of ours in the kernel, which this process writes, starts, reads and
//! ends. Frames never come to this process.

mod far_end;
pub mod receive;

pub use far_end::FarEnd;
