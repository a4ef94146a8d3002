//! A window over a capture's bytes: large reads, records in place, errors that name the place.
//!
//! The bytes between `start` and `end` of the buffer have been read but not consumed. Records are
//! parsed where they lie; only one that straddles the end of the buffer is moved. The buffer grows
//! beyond its usual size only as far as bytes of a longer block really arrive.
//!
//! A source may have nothing now ([`ErrorKind::WouldBlock`], a pipe): that is an error which changes
//! nothing, and whoever meets it tries the same again.

use std::io::{ErrorKind, Read};

use crate::error::{Result, StoreError};
use crate::warning::{WarningKind, Warnings};

/// How much is read at once, in bytes.
const READ_LENGTH: usize = 1 << 20;

/// Units of zero bytes that were consumed, and where the first began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ZeroRun {
    pub(crate) begin: u64,
    pub(crate) units: u64,
}

/// A stream of capture bytes and the account of what was read from it.
pub(crate) struct Input {
    source: Box<dyn Read + Send>,
    name: String,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    offset: u64,
    at_end: bool,
    /// Zeros that were consumed when the source had nothing more to show what follows them.
    zeros: Option<ZeroRun>,
    /// Packets delivered so far.
    pub(crate) packets: u64,
    /// Oddities seen so far.
    pub(crate) warnings: Warnings,
}

impl Input {
    pub(crate) fn new(source: impl Read + Send + 'static, name: impl Into<String>) -> Self {
        Self {
            source: Box::new(source),
            name: name.into(),
            buffer: vec![0; READ_LENGTH],
            start: 0,
            end: 0,
            offset: 0,
            at_end: false,
            zeros: None,
            packets: 0,
            warnings: Warnings::default(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Byte offset in the file of the first byte that is not consumed.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// The bytes read and not consumed.
    #[inline]
    pub(crate) fn available(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// Makes at least `length` bytes available, fewer only at the end of the file; returns how
    /// many there are.
    #[inline]
    pub(crate) fn ensure(&mut self, length: usize) -> Result<usize> {
        let available = self.end - self.start;
        if available >= length { Ok(available) } else { self.fill(length) }
    }

    #[cold]
    fn fill(&mut self, length: usize) -> Result<usize> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.end < length && !self.at_end {
            if self.end == self.buffer.len() {
                self.buffer.resize(length.min(self.buffer.len() * 2), 0);
            }
            let room = self.buffer.get_mut(self.end..).unwrap_or_default();
            match self.source.read(room) {
                Ok(0) => self.at_end = true,
                Ok(count) => self.end += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(source) => {
                    let offset = self.offset + self.end as u64;
                    return Err(StoreError::Read { name: self.name.clone(), offset, source });
                }
            }
        }
        Ok(self.end)
    }

    /// Passes over the next `length` bytes, which are available.
    #[inline]
    pub(crate) fn consume(&mut self, length: usize) {
        debug_assert!(length <= self.end - self.start);
        self.start += length;
        self.offset += length as u64;
    }

    /// `length` bytes that begin `back` bytes before the first one that is not consumed, as long
    /// as nothing was read since they were consumed.
    #[inline]
    pub(crate) fn consumed(&self, back: usize, length: usize) -> &[u8] {
        let from = self.start.saturating_sub(back);
        self.buffer.get(from..from + length).unwrap_or_default()
    }

    /// Whether zeros are being consumed: [`consume_zeros`](Self::consume_zeros) is to go on.
    #[inline]
    pub(crate) fn is_in_zeros(&self) -> bool {
        self.zeros.is_some()
    }

    /// Consumes units of `unit` zero bytes for as long as they last. Returns them, and
    /// whether nothing but zeros followed up to the end of the file; in that case the rest of an
    /// incomplete unit is consumed too, and the tail is noted as a warning.
    pub(crate) fn consume_zeros(&mut self, unit: usize) -> Result<(ZeroRun, bool)> {
        let mut run = self.zeros.take().unwrap_or(ZeroRun { begin: self.offset, units: 0 });
        loop {
            let available = match self.ensure(unit) {
                Ok(available) => available.min(unit),
                Err(error) => {
                    self.zeros = Some(run);
                    return Err(error);
                }
            };
            let next = self.available().get(..available).unwrap_or_default();
            if next.iter().any(|byte| *byte != 0) {
                return Ok((run, false));
            }
            self.consume(available);
            if available < unit {
                self.warnings.add(WarningKind::ZeroTail, run.begin, self.offset - run.begin);
                return Ok((run, true));
            }
            run.units += 1;
        }
    }

    /// The file ends inside the record that begins at `offset`.
    #[cold]
    pub(crate) fn truncated(&self, offset: u64) -> StoreError {
        StoreError::Truncated { name: self.name.clone(), offset, packets_before: self.packets }
    }

    /// The record that begins at `offset` makes no sense.
    #[cold]
    pub(crate) fn corrupt(&self, offset: u64, what: impl Into<String>) -> StoreError {
        StoreError::Corrupt {
            name: self.name.clone(),
            offset,
            packets_before: self.packets,
            what: what.into(),
        }
    }

    /// A version or variant that is not read here.
    pub(crate) fn unsupported(&self, offset: u64, what: impl Into<String>) -> StoreError {
        StoreError::Unsupported { name: self.name.clone(), offset, what: what.into() }
    }
}
