//! A capture that comes through a pipe, at the pace of whoever writes it.

use std::path::Path;
use std::time::Duration;

use sys::pipe::Pipe;

use crate::capture::{CaptureFormat, CaptureReader, read_header};
use crate::error::{Result, StoreError};
use crate::input::Input;
use crate::record::{Interface, Record};

/// How far it has come.
enum State {
    /// Its header is not all there.
    Beginning(Input),
    /// Packets may come.
    Begun(CaptureReader),
    /// It is none.
    Failed,
}

/// The reading end of a pipe. Nothing waits but [`wait`](Self::wait): an error that is
/// [`StoreError::is_would_block`] says that there is nothing now, and what there is of a packet is kept.
pub struct PipeCapture {
    pipe: Pipe,
    name: String,
    state: State,
}

impl PipeCapture {
    /// Opens a pipe or a device, without waiting for a writer; `None` if it is neither.
    pub fn open(path: &Path) -> Result<Option<Self>> {
        let name = path.display().to_string();
        let pipe = match Pipe::to_read(path) {
            Ok(Some(pipe)) => pipe,
            Ok(None) => return Ok(None),
            Err(source) => return Err(StoreError::Open { name, source }),
        };
        let state = State::Beginning(Input::new(pipe.clone(), name.clone()));
        Ok(Some(Self { pipe, name, state }))
    }

    /// Reads on in the header. Returns whether it is there. Errors: as of [`CaptureReader::new`].
    pub fn begin(&mut self) -> Result<bool> {
        let State::Beginning(input) = &mut self.state else { return Ok(true) };
        match read_header(input) {
            Ok(()) => {}
            Err(error) if error.is_would_block() => return Ok(false),
            Err(error) => {
                self.state = State::Failed;
                return Err(error);
            }
        }
        if let State::Beginning(input) = std::mem::replace(&mut self.state, State::Failed) {
            self.state = State::Begun(CaptureReader::of_input(input)?);
        }
        Ok(true)
    }

    /// The next packet; `None` at the end. Errors: as of [`CaptureReader::next_record`].
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>> {
        if !self.begin()? {
            let source = std::io::ErrorKind::WouldBlock.into();
            return Err(StoreError::Read { name: self.name.clone(), offset: 0, source });
        }
        match &mut self.state {
            State::Begun(reader) => reader.next_record(),
            State::Beginning(_) | State::Failed => Ok(None),
        }
    }

    /// Sleeps until there may be more, at most `timeout`.
    pub fn wait(&mut self, timeout: Duration) -> Result<()> {
        self.pipe.wait_readable(timeout).map_err(|source| {
            let offset = self.reader().map_or(0, CaptureReader::offset);
            StoreError::Read { name: self.name.clone(), offset, source }
        })
    }

    /// The interfaces described so far.
    pub fn interfaces(&self) -> &[Interface] {
        self.reader().map_or(&[], CaptureReader::interfaces)
    }

    /// The format, once it shows.
    pub fn format(&self) -> Option<CaptureFormat> {
        self.reader().map(CaptureReader::format)
    }

    /// The path that it was opened at.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn reader(&self) -> Option<&CaptureReader> {
        match &self.state {
            State::Begun(reader) => Some(reader),
            State::Beginning(_) | State::Failed => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LinkType, PcapPrecision, PcapWriter, PcapngWriter, Section, Warning};
    use std::io::{self, ErrorKind, Read};

    /// Bytes that come a piece at a time, and nothing in between.
    struct Pieces {
        rest: Vec<u8>,
        piece: usize,
        is_there: bool,
    }

    impl Read for Pieces {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.is_there = !self.is_there;
            if !self.is_there {
                return Err(ErrorKind::WouldBlock.into());
            }
            let count = self.piece.min(self.rest.len()).min(into.len());
            into[..count].copy_from_slice(&self.rest[..count]);
            self.rest.drain(..count);
            Ok(count)
        }
    }

    type Seen = (Vec<(u64, Vec<u8>)>, Option<String>, Vec<Warning>);

    /// Everything that a capture has to say, in its order.
    fn read(bytes: &[u8], piece: usize) -> Seen {
        let pieces = Pieces { rest: bytes.to_vec(), piece, is_there: true };
        let mut input = Input::new(pieces, "pieces");
        let begun = loop {
            match read_header(&mut input) {
                Err(error) if error.is_would_block() => {}
                begun => break begun.and_then(|()| CaptureReader::of_input(input)),
            }
        };
        let mut packets = Vec::new();
        let mut reader = match begun {
            Ok(reader) => reader,
            Err(error) => return (packets, Some(error.to_string()), Vec::new()),
        };
        let error = loop {
            match reader.next_record() {
                Ok(Some(record)) => packets.push((record.time_ns, record.data.to_vec())),
                Ok(None) => break None,
                Err(error) if error.is_would_block() => {}
                Err(error) => break Some(error.to_string()),
            }
        };
        (packets, error, reader.warnings().to_vec())
    }

    /// The same, all at once.
    fn read_whole(bytes: &[u8]) -> Seen {
        let mut packets = Vec::new();
        let mut reader = match CaptureReader::new(io::Cursor::new(bytes.to_vec()), "pieces") {
            Ok(reader) => reader,
            Err(error) => return (packets, Some(error.to_string()), Vec::new()),
        };
        let error = loop {
            match reader.next_record() {
                Ok(Some(record)) => packets.push((record.time_ns, record.data.to_vec())),
                Ok(None) => break None,
                Err(error) => break Some(error.to_string()),
            }
        };
        (packets, error, reader.warnings().to_vec())
    }

    fn captures() -> Vec<Vec<u8>> {
        let records = |write: &mut dyn FnMut(&Record<'_>)| {
            for length in 0..6_u8 {
                let data = vec![length + 1; usize::from(length) * 9];
                write(&Record::new(u64::from(length) * 1_000, &data));
            }
        };
        let mut pcap = PcapWriter::new(vec![], LinkType(101), 0, PcapPrecision::default()).unwrap();
        records(&mut |record| pcap.write_record(record).unwrap());
        let mut pcapng = PcapngWriter::new(vec![], &Section::default()).unwrap();
        pcapng.add_interface(&Interface::new(LinkType(101), 0)).unwrap();
        records(&mut |record| pcapng.write_record(record).unwrap());
        let plain = [pcap.finish().unwrap(), pcapng.finish().unwrap()];
        let mut all = Vec::new();
        for bytes in plain {
            // A tail of zeros, and holes that are short and long.
            let mut tail = bytes.clone();
            tail.resize(bytes.len().next_multiple_of(512), 0);
            let hole = |length: usize| {
                let rest = bytes.get(bytes.len() - 40..).unwrap();
                [&bytes[..], &vec![0; length], rest].concat()
            };
            all.extend([hole(64), hole(5_008), tail, bytes]);
        }
        all
    }

    #[test]
    fn pieces_make_the_same_capture_as_the_whole() {
        for bytes in captures() {
            let whole = read_whole(&bytes);
            assert!(whole.0.len() >= 6, "{:?}", whole.1);
            for piece in (1..=40).chain([511, 4_096]) {
                assert_eq!(read(&bytes, piece), whole, "pieces of {piece}");
            }
        }
    }

    #[test]
    fn wherever_the_writer_leaves_the_same_is_said() {
        for bytes in captures() {
            for length in 0..bytes.len().min(700) {
                let whole = read_whole(&bytes[..length]);
                for piece in [1, 7, 64] {
                    assert_eq!(read(&bytes[..length], piece), whole, "{length} bytes by {piece}");
                }
            }
        }
    }
}
