//! A buffer in front of a writer, into which records are encoded in place.

use std::io::Write;

use crate::error::{Result, StoreError};

/// Bytes gathered before they are written. Longer than the longest record of either format.
const BUFFER_LENGTH: usize = 1 << 20;

/// Buffered output of a capture.
pub(crate) struct Output<W: Write> {
    /// None only once it was given back.
    sink: Option<W>,
    buffer: Vec<u8>,
    filled: usize,
    what: &'static str,
}

impl<W: Write> Output<W> {
    /// `what` names the thing being written in errors.
    pub(crate) fn new(sink: W, what: &'static str) -> Self {
        Self { sink: Some(sink), buffer: vec![0; BUFFER_LENGTH], filled: 0, what }
    }

    /// Lets `encode` write a record of at most the buffer's length, returning how many bytes it
    /// used, or None if the room it was given is too small.
    #[inline]
    pub(crate) fn append(&mut self, encode: impl Fn(&mut [u8]) -> Option<usize>) -> Result<()> {
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

    /// Writes bytes of any length.
    pub(crate) fn append_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        for part in bytes.chunks(BUFFER_LENGTH) {
            self.append(|room| {
                room.get_mut(..part.len())?.copy_from_slice(part);
                Some(part.len())
            })?;
        }
        Ok(())
    }

    /// Writes out what is gathered, without asking the sink to flush. What was gathered is
    /// forgotten even on failure: how much of it reached the sink is then unknown.
    fn drain(&mut self) -> Result<()> {
        let gathered = self.buffer.get(..self.filled).unwrap_or_default();
        self.filled = 0;
        match &mut self.sink {
            Some(sink) => sink
                .write_all(gathered)
                .map_err(|source| StoreError::Write { what: self.what.into(), source }),
            None => Ok(()),
        }
    }

    /// Writes out what is gathered and flushes the sink.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.drain()?;
        match &mut self.sink {
            Some(sink) => {
                sink.flush().map_err(|source| StoreError::Write { what: self.what.into(), source })
            }
            None => Ok(()),
        }
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

impl<W: Write> Drop for Output<W> {
    /// Writes out what is left, as `finish` would have; an error has nobody to go to.
    fn drop(&mut self) {
        let _ = self.flush();
    }
}
