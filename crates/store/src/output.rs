//! A buffer in front of a writer, into which records are encoded in place.
//!
//! A sink may take nothing now ([`io::ErrorKind::WouldBlock`], a pipe): what was gathered stays, the packet
//! that was to be appended was not, and the same is tried again.

use std::io::{self, Write};

use crate::error::{Result, StoreError};

/// Bytes gathered before they are written. Longer than the longest record of either format.
const BUFFER_LENGTH: usize = 1 << 20;
/// No packet takes less in either format: the record header of pcap.
const PACKET_LENGTH_MIN: usize = 16;

/// Buffered output of a capture.
pub(crate) struct Output<W: Write> {
    /// None only once it was given back.
    sink: Option<W>,
    buffer: Vec<u8>,
    /// Up to where the sink has taken the buffer, and up to where it is filled.
    taken: usize,
    filled: usize,
    /// Where the packets in the buffer end, for the day on which not all of it can be written.
    ends: Vec<u32>,
    /// Packets and bytes that the sink has taken, up to the end of the last whole one.
    written_packets: u64,
    written_bytes: u64,
    /// Bytes that the sink took before those in the buffer.
    drained_bytes: u64,
    what: &'static str,
}

impl<W: Write> Output<W> {
    /// `what` names the thing being written in errors.
    pub(crate) fn new(sink: W, what: &'static str) -> Self {
        Self {
            sink: Some(sink),
            buffer: vec![0; BUFFER_LENGTH],
            taken: 0,
            filled: 0,
            ends: Vec::with_capacity(BUFFER_LENGTH / PACKET_LENGTH_MIN),
            written_packets: 0,
            written_bytes: 0,
            drained_bytes: 0,
            what,
        }
    }

    /// Lets `encode` write a packet of at most the buffer's length, returning how many bytes it
    /// used, or None if the room it was given is too small.
    #[inline]
    pub(crate) fn append_packet(
        &mut self,
        encode: impl Fn(&mut [u8]) -> Option<usize>,
    ) -> Result<()> {
        self.append(encode)?;
        self.ends.push(self.filled as u32);
        Ok(())
    }

    #[inline]
    fn append(&mut self, encode: impl Fn(&mut [u8]) -> Option<usize>) -> Result<()> {
        if let Some(length) = encode(self.buffer.get_mut(self.filled..).unwrap_or_default()) {
            self.filled += length;
            return Ok(());
        }
        self.drain()?;
        match encode(&mut self.buffer) {
            Some(length) => self.filled = length,
            None => {
                return Err(StoreError::Unwritable {
                    what: format!("a record longer than {BUFFER_LENGTH} bytes into {}", self.what),
                });
            }
        }
        Ok(())
    }

    /// Writes bytes of any length that are no packet.
    pub(crate) fn append_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        for part in bytes.chunks(BUFFER_LENGTH) {
            self.append(|room| {
                room.get_mut(..part.len())?.copy_from_slice(part);
                Some(part.len())
            })?;
        }
        Ok(())
    }

    /// Packets appended so far; after a failed write those that the sink has whole.
    pub(crate) fn packets(&self) -> u64 {
        self.written_packets + self.ends.len() as u64
    }

    /// Bytes that the sink has taken so far.
    pub(crate) fn taken_bytes(&self) -> u64 {
        self.drained_bytes + self.taken as u64
    }

    /// Writes out what is gathered, without asking the sink to flush. What was gathered is
    /// forgotten even on failure, unless the sink takes it later; the error says how much of the whole
    /// is good.
    fn drain(&mut self) -> Result<()> {
        let gathered = self.buffer.get(self.taken..self.filled).unwrap_or_default();
        let (count, written) = match &mut self.sink {
            Some(sink) => write_through(sink, gathered),
            None => (gathered.len(), Ok(())),
        };
        self.taken += count;
        let later = written.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        if !later {
            self.forget();
        }
        written.map_err(|source| self.incomplete(source))
    }

    /// Empties the buffer: what the sink has not taken of it is lost. Returns how many packets are not
    /// whole in the sink.
    pub(crate) fn forget(&mut self) -> u64 {
        if self.filled == 0 {
            return 0;
        }
        let whole = self.ends.partition_point(|end| *end as usize <= self.taken);
        let last_end = whole.checked_sub(1).and_then(|last| self.ends.get(last));
        let lost = (self.ends.len() - whole) as u64;
        self.written_packets += whole as u64;
        if self.taken == self.filled {
            self.written_bytes = self.taken_bytes();
        } else if let Some(end) = last_end {
            self.written_bytes = self.drained_bytes + u64::from(*end);
        }
        self.drained_bytes = self.taken_bytes();
        (self.taken, self.filled) = (0, 0);
        self.ends.clear();
        lost
    }

    #[cold]
    fn incomplete(&self, source: io::Error) -> StoreError {
        StoreError::Incomplete {
            what: self.what.into(),
            packets: self.written_packets,
            bytes: self.written_bytes,
            source,
        }
    }

    /// Writes out what is gathered and flushes the sink.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.drain()?;
        let flushed = self.sink.as_mut().map_or(Ok(()), Write::flush);
        flushed.map_err(|source| self.incomplete(source))
    }

    /// Flushes and gives the sink back.
    pub(crate) fn finish(mut self) -> Result<W> {
        self.flush()?;
        match self.sink.take() {
            Some(sink) => Ok(sink),
            None => {
                Err(StoreError::Unwritable { what: format!("to {}, closed before", self.what) })
            }
        }
    }
}

/// Writes all of `bytes`, or says how many went before it failed.
fn write_through(sink: &mut impl Write, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut reached = 0;
    while let Some(rest) = bytes.get(reached..).filter(|rest| !rest.is_empty()) {
        match sink.write(rest) {
            Ok(0) => return (reached, Err(io::ErrorKind::WriteZero.into())),
            Ok(count) => reached += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (reached, Err(error)),
        }
    }
    (reached, Ok(()))
}

impl<W: Write> Drop for Output<W> {
    /// Writes out what is left, as `finish` would have; an error has nobody to go to.
    fn drop(&mut self) {
        let _ = self.flush();
    }
}
