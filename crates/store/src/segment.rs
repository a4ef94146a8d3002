//! A file of a recording: its name, its identity, its first chunk.
//!
//! A segment is written under an *open* name (`s00-000001.open.pcapng`) and renamed when it is
//! *sealed* (`20261201T031522.123456789Z-s00-000001.pcapng`: time of its earliest packet in UTC,
//! stream, number). Sealed names sort by time, then stream. Beside a sealed segment lies its time
//! index, with the ending `.time-index` in place of `.pcapng`.
//! Limits: segment numbers are 32 bits and go on over restarts; up to 65,536 streams per directory.

mod time_text;

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::error::{Result, StoreError};
use crate::lock;
use crate::pcapng::interface::encode_interface;
use crate::pcapng::section::encode_section;
use crate::record::{Interface, Section};
use crate::trailer::{self, ChunkTrailer, FLAG_HEADER};

/// How this program names itself in section headers.
pub const APPLICATION: &str = concat!("linerate ", env!("CARGO_PKG_VERSION"));

/// Ending of a segment that is being written.
pub const OPEN_ENDING: &str = ".open.pcapng";
/// Ending of a sealed segment.
pub const SEALED_ENDING: &str = ".pcapng";
/// Ending of a time index.
pub const INDEX_ENDING: &str = ".time-index";

/// What all chunks of one segment have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentFacts {
    /// Random number of the segment.
    pub id: [u8; 16],
    /// Number in the directory.
    pub number: u32,
    /// Stream of the recorder.
    pub stream: u16,
    /// When the recorder was opened, in ns since the Unix epoch.
    pub session: u64,
    /// Where the packets come from.
    pub interface: Interface,
}

impl SegmentFacts {
    /// As far as any chunk of the segment says them.
    pub fn of(chunk: &ChunkTrailer) -> Self {
        Self {
            id: chunk.segment_id,
            number: chunk.segment_number,
            stream: chunk.stream,
            session: chunk.session,
            interface: chunk.interface(),
        }
    }

    /// A trailer with these facts, for a chunk without packets at the beginning of the file.
    pub fn trailer(&self) -> ChunkTrailer {
        let mut interface_name = [0; 16];
        let name = self.interface.name.as_deref().unwrap_or_default().as_bytes();
        for (to, from) in interface_name.iter_mut().zip(name) {
            *to = *from;
        }
        ChunkTrailer {
            segment_id: self.id,
            link_type: self.interface.link_type.0,
            stream: self.stream,
            session: self.session,
            snap_length: self.interface.snap_length,
            segment_number: self.number,
            interface_name,
            ..ChunkTrailer::default()
        }
    }

    /// Builds the header chunk at the beginning of `memory`, at least `length_min` bytes long, and
    /// returns its trailer. Errors: texts that do not fit in a block or in `memory`.
    pub fn header_chunk(
        &self,
        section: &Section,
        length_min: usize,
        memory: &mut [u8],
    ) -> Result<ChunkTrailer> {
        let mut blocks = Vec::new();
        encode_section(&mut blocks, section)?;
        encode_interface(&mut blocks, &self.interface)?;
        let unwritable = || StoreError::Unwritable {
            what: format!(
                "a segment header of {} bytes; shorten the comment, filter or interface texts",
                blocks.len()
            ),
        };
        let room = memory.get_mut(..blocks.len()).ok_or_else(unwritable)?;
        room.copy_from_slice(&blocks);
        let mut trailer = ChunkTrailer { flags: FLAG_HEADER, ..self.trailer() };
        trailer::seal(memory, blocks.len(), length_min, &mut trailer).ok_or_else(unwritable)?;
        Ok(trailer)
    }
}

/// A random segment number, from the kernel.
pub fn random_id() -> Result<[u8; 16]> {
    let name = "/dev/urandom";
    let mut id = [0; 16];
    let mut source =
        File::open(name).map_err(|source| StoreError::Open { name: name.into(), source })?;
    source.read_exact(&mut id).map_err(|source| StoreError::Read {
        name: name.into(),
        offset: 0,
        source,
    })?;
    Ok(id)
}

/// Name of a segment that is being written.
pub fn open_name(stream: u16, number: u32) -> String {
    format!("s{stream:02}-{number:06}{OPEN_ENDING}")
}

/// Name of the file whose lock the recorder of a stream holds. It stays: it marks a store.
pub(crate) fn lock_name(stream: u16) -> String {
    format!(".s{stream:02}.lock")
}

fn is_lock(name: &str) -> bool {
    name.strip_prefix(".s")
        .and_then(|name| name.strip_suffix(".lock"))
        .is_some_and(|number| number.parse().is_ok_and(|stream: u16| lock_name(stream) == name))
}

/// Whether a recorder has ever been at work in the directory, by its lock files.
pub(crate) fn is_store(directory: &Path) -> bool {
    fs::read_dir(directory)
        .is_ok_and(|entries| entries.flatten().any(|e| e.file_name().to_str().is_some_and(is_lock)))
}

/// Whether a file at `path` is, or would be taken for, one of a recording: a segment, a time index or
/// a lock in a directory that a recorder has been at work in.
pub(crate) fn is_of_recording(path: &Path) -> bool {
    // A link counts as what it leads to.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let segment = name.strip_suffix(INDEX_ENDING).map(|stem| format!("{stem}{SEALED_ENDING}"));
    let segment = segment.as_deref().unwrap_or(name);
    let directory = match path.parent() {
        Some(directory) if directory != Path::new("") => directory,
        _ => Path::new("."),
    };
    (is_lock(name) || parse_name(Path::new(segment)).is_some()) && is_store(directory)
}

/// Whether a recorder of the stream is at work in the directory. The lock is held for a moment, which
/// a recorder that starts just then waits for.
pub(crate) fn has_recorder(directory: &Path, stream: u16) -> bool {
    let path = directory.join(lock_name(stream));
    let lock = is_regular(&path).then(|| File::open(&path));
    matches!(lock, Some(Ok(lock)) if lock::is_held(&lock, Instant::now()))
}

/// Name of a sealed segment whose earliest packet is of `time_ns`.
pub fn sealed_name(time_ns: u64, stream: u16, number: u32) -> String {
    format!("{}-s{stream:02}-{number:06}{SEALED_ENDING}", time_text::utc(time_ns))
}

/// Path of the time index of a sealed segment.
pub fn index_path(segment: &Path) -> PathBuf {
    let name = segment.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let stem = name.strip_suffix(SEALED_ENDING).unwrap_or(&name);
    segment.with_file_name(format!("{stem}{INDEX_ENDING}"))
}

/// A segment found in a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SegmentEntry {
    /// Number in the directory, from the name.
    pub number: u32,
    /// Stream, from the name.
    pub stream: u16,
    /// Whether it has not been sealed.
    pub open: bool,
    /// Whether it is a file and no pipe, directory or device that only has such a name.
    pub regular: bool,
    /// The file.
    pub path: PathBuf,
}

/// Reads `…s00-000001.pcapng` and `s00-000001.open.pcapng`; `None` for names of other files.
pub(crate) fn parse_name(path: &Path) -> Option<SegmentEntry> {
    let name = path.file_name()?.to_str()?;
    let (stem, open) = match name.strip_suffix(OPEN_ENDING) {
        Some(stem) => (stem, true),
        None => (name.strip_suffix(SEALED_ENDING)?, false),
    };
    let (rest, number) = stem.rsplit_once('-')?;
    let stream = if open { rest } else { rest.rsplit_once('-')?.1 };
    let number = number.parse().ok()?;
    let stream = stream.strip_prefix('s')?.parse().ok()?;
    Some(SegmentEntry { number, stream, open, regular: true, path: path.to_path_buf() })
}

/// Whether opening it cannot wait for somebody else, as it does with a named pipe. What is not there
/// (any more) counts as regular: that shows when it is opened.
pub(crate) fn is_regular(path: &Path) -> bool {
    fs::metadata(path).map_or(true, |metadata| metadata.is_file())
}

/// All segments of a directory, by number. Other files are passed over; what has the name of a
/// segment and is no file is listed as not regular.
pub fn list(directory: &Path) -> Result<Vec<SegmentEntry>> {
    let failed = |source| StoreError::Open { name: directory.display().to_string(), source };
    let mut entries = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let Some(named) = parse_name(&entry.path()) else { continue };
        // The type in the directory saves a look at each file.
        let file = entry.file_type().is_ok_and(|kind| kind.is_file());
        entries.push(SegmentEntry { regular: file || is_regular(&named.path), ..named });
    }
    entries.sort_unstable();
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::LinkType;

    #[test]
    fn names_are_read_back() {
        let sealed = sealed_name(1_000_000_000, 3, 17);
        assert_eq!(sealed, "19700101T000001.000000000Z-s03-000017.pcapng");
        let entry = parse_name(Path::new(&sealed)).unwrap();
        assert_eq!((entry.number, entry.stream, entry.open), (17, 3, false));
        let entry = parse_name(Path::new(&open_name(300, 1_234_567))).unwrap();
        assert_eq!((entry.number, entry.stream, entry.open), (1_234_567, 300, true));
        for other in ["a.pcapng", "s00-1.pcap", "x-y.pcapng", "s-1.open.pcapng", "..pcapng"] {
            assert_eq!(parse_name(Path::new(other)), None, "{other}");
        }
        assert_eq!(
            index_path(Path::new("/a/b-s00-000001.pcapng")),
            Path::new("/a/b-s00-000001.time-index")
        );
    }

    #[test]
    fn the_header_chunk_says_what_it_is() {
        let mut interface = Interface::new(LinkType::ETHERNET, 262_144);
        interface.name = Some("a-very-long-interface-name".into());
        let id = random_id().unwrap();
        let facts = SegmentFacts { id, number: 4, stream: 1, session: 9, interface };
        let mut memory = vec![0; 1 << 20];
        let header = facts.header_chunk(&Section::default(), 4096, &mut memory).unwrap();
        assert_eq!(header.length, 4096);
        assert_eq!(trailer::verify(&memory[..4096]), Ok(header));
        assert!(header.is_header() && header.segment_id == id);
        assert_eq!(&header.interface_name, b"a-very-long-inte");
        assert_ne!(id, random_id().unwrap());
    }
}
