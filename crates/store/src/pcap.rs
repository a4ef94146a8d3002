//! The classic pcap format (IETF draft-ietf-opsawg-pcap): one header, then packets.
//!
//! Vocabulary: the *magic* fixes byte order and unit of time; a *record header* has the time in
//! seconds and fraction, the captured and the original length. The magic a1b2cd34 is a variant of
//! old Linux tools whose record headers are 24 bytes long; it is read, not written.
//!
//! Limits: seconds are 32 bits without sign (until 2106); one interface; no statistics. Written
//! files are little-endian.

mod header;
pub(crate) mod reader;
mod writer;

pub use writer::{PcapPrecision, PcapWriter};
