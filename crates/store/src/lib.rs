//! Captures at rest: reading and writing pcap and pcapng.

#![forbid(unsafe_code)]

pub mod capture;
pub mod chunk;
mod error;
pub mod file_port;
pub mod find;
mod input;
pub mod ledger;
mod lock;
mod merge;
pub mod new_file;
mod output;
pub mod pcap;
pub mod pcapng;
pub mod pipe_capture;
pub mod record;
pub mod recorder;
pub mod recover;
pub mod scan;
pub mod segment;
pub mod selection;
pub mod time_index;
pub mod trailer;
mod warning;
pub mod words;

pub use capture::{CaptureFormat, CaptureReader};
pub use error::{Result, StoreError};
pub use find::{Find, FindReport};
pub use new_file::NewFile;
pub use pcap::{PcapPrecision, PcapWriter};
pub use pcapng::PcapngWriter;
pub use record::{
    Direction, Interface, InterfaceStatistics, LinkType, MAXIMUM_CAPTURED_LENGTH, PacketFlags,
    Record, Section, TimeResolution, TimeScale,
};
pub use recorder::{
    Append, Recorder, RecorderConfig, RecorderCounters, RecorderEvent, RecorderSummary,
};
pub use selection::{IpNetwork, Selection};
pub use warning::{Warning, WarningKind};
