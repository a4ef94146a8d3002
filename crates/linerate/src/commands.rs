//! One file a verb: its options, its plan, its result.

pub mod demo;
pub mod doctor;
pub mod filter;
pub mod find;
pub mod generate;
mod overwrite;
pub mod receive;
pub mod record;
pub mod replay;
