//! What happens between ports: sources, stages, workers, their schedule and their account.
//!
//! # Vocabulary
//!
//! * *source*: something that a worker receives frames from. A port is one; so are the
//!   [`generate::Generator`] and a [`paced::Paced`] replay, which are receiving queues too;
//! * *filter*: what takes frames out before they come to a stage ([`filtered`]);
//! * *stage*: what is done to a batch on its way ([`stages`]);
//! * *worker*: one thread that runs source → stage → port to completion ([`worker`]);
//! * *plan*: which worker runs on which CPU, and why ([`plan`]);
//! * *kernel plane*: programs in the kernel that do what stages do ([`kernel`]);
//! * *pacer*: when frames are due ([`pacer`]);
//! * *ledger*: the account of every packet, whose sides must agree ([`ledger`]).
//!
//! # Limits
//!
//! A worker has one source and one sending port. Sequence figures are exact within the last 2^20
//! numbers of a stream, for up to 256 streams. Histograms are exact at both ends and within 1/32
//! in between.
//!
//! # Not supported
//!
//! Bridging and routing between ports; rates that follow a profile.
#![forbid(unsafe_code)]

pub mod error;
pub mod filtered;
pub mod generate;
pub mod histogram;
pub mod kernel;
pub mod ledger;
pub mod live;
pub mod paced;
pub mod pacer;
pub mod patience;
pub mod plan;
pub mod ports;
pub mod sequence;
pub mod stages;
pub mod stop;
pub mod worker;

pub use error::{EngineError, Result};
pub use ledger::{Account, Entry, Ledger};
pub use patience::Patience;
pub use stop::Stop;
pub use worker::{Finished, Worker};
