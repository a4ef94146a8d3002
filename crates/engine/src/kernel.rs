//! The kernel plane: programs that do in the kernel what stages do here.

pub mod receive;
