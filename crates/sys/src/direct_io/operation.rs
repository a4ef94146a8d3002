//! One write on its way, shared by both engines.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use super::{Completion, DirectFile, Refusal, Refused};
use crate::memory::Buffer;
use crate::{Error, Result};

/// How often in a row the kernel may answer «again» before that counts as the result.
const RETRIES_MAX: u32 = 1000;

/// A write that was accepted and has not completed.
#[derive(Debug)]
pub(super) struct Operation {
    file: Arc<DirectFile>,
    offset: u64,
    buffer: Buffer,
    length: usize,
    tag: u64,
    /// How many bytes are done, as far as the next attempt need not repeat them.
    written: usize,
    retries: u32,
    started: Instant,
}

/// What follows an attempt.
#[derive(Debug)]
pub(super) enum Step {
    /// The rest must be attempted again.
    Again,
    /// The write has ended.
    Done(Result<usize>),
}

impl Operation {
    pub(super) fn new(
        file: Arc<DirectFile>,
        offset: u64,
        buffer: Buffer,
        length: usize,
        tag: u64,
    ) -> Self {
        let started = Instant::now();
        Self { file, offset, buffer, length, tag, written: 0, retries: 0, started }
    }

    pub(super) fn file(&self) -> &DirectFile {
        &self.file
    }

    pub(super) fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// The bytes still to be written. Never empty before the operation is done.
    pub(super) fn rest(&self) -> &[u8] {
        self.buffer.get(self.written..self.length).unwrap_or_default()
    }

    /// Where in the file the rest belongs.
    pub(super) fn rest_offset(&self) -> u64 {
        self.offset + self.written as u64
    }

    /// Takes note of what one attempt brought.
    pub(super) fn attempted(&mut self, outcome: io::Result<usize>) -> Step {
        match outcome {
            Ok(0) => Step::Done(Err(self.failed(io::ErrorKind::WriteZero.into()))),
            Ok(bytes) => self.progressed(bytes),
            Err(error) => {
                let transient = matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN));
                if transient && self.retries < RETRIES_MAX {
                    self.retries += 1;
                    Step::Again
                } else {
                    Step::Done(Err(self.failed(error)))
                }
            }
        }
    }

    fn progressed(&mut self, bytes: usize) -> Step {
        self.retries = 0;
        let reached = self.written.saturating_add(bytes).min(self.length);
        if reached == self.length {
            return Step::Done(Ok(self.length));
        }
        // A direct write must go on at an aligned offset, or its error would hide the real one
        // (a full disk). Only if that makes no progress does it go on where it stopped.
        let aligned = reached - reached % self.file.offset_alignment_bytes() as usize;
        self.written = if aligned > self.written { aligned } else { reached };
        Step::Again
    }

    fn failed(&self, source: io::Error) -> Error {
        let action = format!("writing {} bytes at offset {} of", self.length, self.offset);
        self.file.failed(&action, source)
    }

    /// Gives everything back to whoever submitted it.
    pub(super) fn completion(self, result: Result<usize>) -> Completion {
        Completion {
            buffer: self.buffer,
            tag: self.tag,
            file: self.file,
            offset: self.offset,
            length: self.length,
            result,
            latency_ns: u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX),
        }
    }

    /// Gives the buffer back when the write was not accepted.
    pub(super) fn refused(self, error: Error) -> Refused {
        Refused { buffer: self.buffer, reason: Refusal::Failed(error) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use crate::memory::Buffers;

    fn operation(directory: &tempfile::TempDir, length: usize) -> Operation {
        let file = DirectFile::create(directory.path().join("file")).unwrap();
        let buffer = Buffers::new(1, 1 << 16).unwrap().split().pop().unwrap();
        Operation::new(Arc::new(file), 8192, buffer, length, 7)
    }

    fn errno(number: i32) -> io::Result<usize> {
        Err(io::Error::from_raw_os_error(number))
    }

    #[test]
    fn short_writes_go_on_at_an_aligned_offset_until_all_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let mut write = operation(&directory, 32768);
        let alignment = write.file().offset_alignment_bytes() as usize;
        assert!(matches!(write.attempted(Ok(4096)), Step::Again));
        assert_eq!((write.rest_offset(), write.rest().len()), (8192 + 4096, 28672));
        assert!(matches!(write.attempted(Ok(4096 + alignment - 1)), Step::Again));
        assert_eq!(write.rest_offset(), 8192 + 8192);
        assert!(matches!(write.attempted(Ok(24576)), Step::Done(Ok(32768))));
    }

    #[test]
    fn a_write_that_stops_within_a_block_goes_on_there_rather_than_forever() {
        let directory = tempfile::tempdir().unwrap();
        let mut write = operation(&directory, 8192);
        assert!(matches!(write.attempted(Ok(100)), Step::Again));
        assert_eq!((write.rest_offset(), write.rest().len()), (8192 + 100, 8092));
    }

    #[test]
    fn transient_errors_are_retried_within_a_bound_and_others_end_the_write() {
        let directory = tempfile::tempdir().unwrap();
        let mut write = operation(&directory, 8192);
        for round in 0..RETRIES_MAX {
            let number = if round % 2 == 0 { libc::EINTR } else { libc::EAGAIN };
            assert!(matches!(write.attempted(errno(number)), Step::Again));
        }
        assert!(matches!(write.attempted(errno(libc::EAGAIN)), Step::Done(Err(_))));
        let Step::Done(Err(error)) = write.attempted(errno(libc::ENOSPC)) else {
            panic!("a full disk ends the write");
        };
        assert_eq!(error.kind(), Kind::NoSpace);
        assert!(error.to_string().starts_with("writing 8192 bytes at offset 8192 of "), "{error}");
        assert!(matches!(write.attempted(Ok(0)), Step::Done(Err(_))));
    }

    #[test]
    fn a_completion_returns_what_was_submitted() {
        let directory = tempfile::tempdir().unwrap();
        let completion = operation(&directory, 4096).completion(Ok(4096));
        assert_eq!((completion.tag, completion.offset, completion.length), (7, 8192, 4096));
        assert_eq!(completion.buffer.index(), 0);
        assert!(completion.file.path().ends_with("file"));
    }
}
