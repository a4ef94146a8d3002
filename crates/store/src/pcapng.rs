//! The pcapng format (IETF draft-ietf-opsawg-pcapng), block by block.
//!
//! Vocabulary: a file is a row of *blocks* (type, length, body, length again); a *section* begins
//! with a Section Header Block, which fixes the byte order and forgets all interfaces before it; an
//! *interface* is an Interface Description Block; a packet is an Enhanced Packet Block; *options*
//! are type-length-value entries at a block's end.
//!
//! Here are functions that encode one block into memory of the caller's and read one back, on
//! which the recorder builds its chunks, and a writer of whole files. The reader of whole files is
//! [`crate::capture::CaptureReader`].
//!
//! Limits: written files are little-endian, whatever the machine. Blocks longer than 16 MiB are
//! taken for corruption, as Wireshark does. The section length is neither used nor written.

pub mod block;
pub mod interface;
pub mod options;
pub mod packet;
pub(crate) mod reader;
pub mod section;
pub mod statistics;
pub(crate) mod writer;

pub use block::{BlockHead, ByteOrder, Malformed};
pub use options::{CustomOption, Options, RawOption};
pub use packet::{encode_enhanced_packet, encode_record, enhanced_packet_length};
pub use writer::PcapngWriter;
