//! Whole programs of the kernel plane.

pub mod receive;
