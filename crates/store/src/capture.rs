//! Reads a capture without being told its format.
//!
//! ```no_run
//! # fn main() -> Result<(), store::StoreError> {
//! let mut capture = store::CaptureReader::open("lab.pcapng")?;
//! while let Some(record) = capture.next_record()? {
//!     println!("{} ns: {} bytes", record.time_ns, record.original_length);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Limits: streams only, so nothing seeks; compressed files are refused by name, not undone; after
//! an error the reader is at its end. A source that has nothing now ([`std::io::ErrorKind::WouldBlock`])
//! is one exception: packets are asked for again.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::error::{Result, StoreError};
use crate::input::Input;
use crate::pcap::reader::{HEADER_LENGTH, Magic, PcapReader};
use crate::pcapng::block::{BlockHead, ByteOrder, MINIMUM_LENGTH, SECTION_HEADER};
use crate::pcapng::reader::PcapngReader;
use crate::record::{Interface, InterfaceStatistics, Record, Section};
use crate::warning::Warning;

/// The two families of formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CaptureFormat {
    /// Classic pcap, in any of its variants.
    Pcap,
    /// pcapng.
    Pcapng,
}

impl fmt::Display for CaptureFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pcap => "pcap",
            Self::Pcapng => "pcapng",
        })
    }
}

enum Format {
    Pcap(Box<PcapReader>),
    Pcapng(Box<PcapngReader>),
}

/// A capture being read, packet by packet, in the file's order.
pub struct CaptureReader {
    format: Format,
}

impl CaptureReader {
    /// Opens a file and reads its header. Errors: see [`CaptureReader::new`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let name = path.as_ref().display().to_string();
        match File::open(path) {
            Ok(file) => Self::new(file, name),
            Err(source) => Err(StoreError::Open { name, source }),
        }
    }

    /// Reads the header from any stream, such as standard input; `name` names it in errors.
    /// Errors: an empty or compressed file, something that is no capture, a header that is cut or
    /// of an unknown version, and whatever reading itself meets.
    pub fn new(source: impl Read + Send + 'static, name: impl Into<String>) -> Result<Self> {
        let mut input = Input::new(source, name);
        read_header(&mut input)?;
        Self::of_input(input)
    }

    /// Of an input of which [`read_header`] is done.
    pub(crate) fn of_input(mut input: Input) -> Result<Self> {
        let format = match input.available().first_chunk() {
            Some(magic) if Magic::parse(*magic).is_some() => {
                Format::Pcap(Box::new(PcapReader::new(input)?))
            }
            Some(magic) if u32::from_be_bytes(*magic) == SECTION_HEADER => {
                Format::Pcapng(Box::new(PcapngReader::new(input)?))
            }
            _ => return Err(refuse(&mut input)),
        };
        Ok(Self { format })
    }

    /// The next packet, or None at the end of the file.
    ///
    /// Errors come after every packet that stands before the bad place: [`StoreError::Truncated`]
    /// for a file that ends inside a record, [`StoreError::Corrupt`] for bytes that make no sense,
    /// [`StoreError::Read`] for what the kernel refuses. After an error follows None.
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>> {
        match &mut self.format {
            Format::Pcap(reader) => reader.next_record(),
            Format::Pcapng(reader) => reader.next_record(),
        }
    }

    /// The format that was recognised.
    pub fn format(&self) -> CaptureFormat {
        match self.format {
            Format::Pcap(_) => CaptureFormat::Pcap,
            Format::Pcapng(_) => CaptureFormat::Pcapng,
        }
    }

    /// The interfaces described so far, over all sections; a record's index points into them. In
    /// pcapng more may come at any place.
    pub fn interfaces(&self) -> &[Interface] {
        match &self.format {
            Format::Pcap(reader) => &reader.interface,
            Format::Pcapng(reader) => &reader.interfaces,
        }
    }

    /// The section headers read so far; pcap has none.
    pub fn sections(&self) -> &[Section] {
        match &self.format {
            Format::Pcap(_) => &[],
            Format::Pcapng(reader) => &reader.sections,
        }
    }

    /// The counters read so far: one entry for each interface that had any, with the latest value
    /// of each counter. pcap has none.
    pub fn statistics(&self) -> &[InterfaceStatistics] {
        match &self.format {
            Format::Pcap(_) => &[],
            Format::Pcapng(reader) => &reader.statistics,
        }
    }

    /// Oddities seen so far.
    pub fn warnings(&self) -> &[Warning] {
        self.input().warnings.as_slice()
    }

    /// Where the next record or block begins, in bytes from the start.
    pub fn offset(&self) -> u64 {
        self.input().offset()
    }

    /// Packets delivered so far.
    pub fn packets(&self) -> u64 {
        self.input().packets
    }

    /// The name given at the start.
    pub fn name(&self) -> &str {
        self.input().name()
    }

    fn input(&self) -> &Input {
        match &self.format {
            Format::Pcap(reader) => &reader.input,
            Format::Pcapng(reader) => &reader.input,
        }
    }
}

/// Makes all available that is looked at before the first packet. Until it succeeds, nothing of the
/// input is consumed: of one that has nothing now it is asked for again.
pub(crate) fn read_header(input: &mut Input) -> Result<()> {
    input.ensure(4)?;
    match input.available().first_chunk() {
        Some(magic) if Magic::parse(*magic).is_some() => input.ensure(HEADER_LENGTH)?,
        Some(magic) if u32::from_be_bytes(*magic) == SECTION_HEADER => {
            input.ensure(MINIMUM_LENGTH)?;
            let head = input.available().first_chunk();
            let head = head.and_then(|first| BlockHead::parse(first, ByteOrder::Little).ok());
            input.ensure(head.map_or(MINIMUM_LENGTH, |head| head.length))?
        }
        // As many bytes are shown of something else.
        _ => input.ensure(8)?,
    };
    Ok(())
}

impl fmt::Debug for CaptureReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CaptureReader")
            .field("name", &self.name())
            .field("format", &self.format())
            .field("offset", &self.offset())
            .field("packets", &self.packets())
            .finish_non_exhaustive()
    }
}

/// First bytes of compressed files, the compression's name, and the program that undoes it.
const COMPRESSIONS: [(&[u8], &str, &str); 6] = [
    (&[0x1f, 0x8b], "gzip", "zcat"),
    (&[0x28, 0xb5, 0x2f, 0xfd], "zstd", "zstdcat"),
    (&[0x04, 0x22, 0x4d, 0x18], "lz4", "lz4cat"),
    (&[0xfd, b'7', b'z', b'X', b'Z', 0], "xz", "xzcat"),
    (b"BZh", "bzip2", "bzcat"),
    (&[0x1f, 0x9d], "compress", "zcat"),
];

/// First bytes of files that people mistake for captures of these formats.
const OTHERS: [(&[u8], &str); 7] = [
    (b"snoop\0\0\0", "a snoop capture; convert it with editcap"),
    (b"RTSS", "a Network Monitor capture; convert it with editcap"),
    (b"GMBU", "a Network Monitor capture; convert it with editcap"),
    (b"\x7fELF", "a program"),
    (b"PK\x03\x04", "a zip archive; unpack it"),
    (b"{", "JSON?"),
    (&[0, 0, 0, 0], "zeros: a preallocated file in which nothing was written"),
];

/// Why the input is no capture.
fn refuse(input: &mut Input) -> StoreError {
    if let Err(error) = input.ensure(8) {
        return error;
    }
    let first = input.available();
    let name = input.name().to_owned();
    let accepted = [0xa1b2_c3d4_u32, 0xa1b2_3c4d, 0xa1b2_cd34, SECTION_HEADER];
    let begins = |magic: u32| {
        [magic.to_be_bytes(), magic.to_le_bytes()].iter().any(|bytes| bytes.starts_with(first))
    };
    if first.is_empty() {
        return StoreError::Empty { name };
    }
    if accepted.into_iter().any(begins) {
        return input.truncated(0);
    }
    for (magic, compression, command) in COMPRESSIONS {
        if first.starts_with(magic) {
            return StoreError::Compressed { name, compression, command };
        }
    }
    let bytes: Vec<String> = first.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let mut found = bytes.join(" ");
    if let Some((_, guess)) = OTHERS.iter().find(|(magic, _)| first.starts_with(magic)) {
        found = format!("{found} ({guess})");
    }
    StoreError::NotACapture { name, found }
}
