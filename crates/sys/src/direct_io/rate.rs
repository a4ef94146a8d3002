//! How fast a directory's disk takes large writes, by a short trial with a bound.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Completion, DirectFile, DirectWriter, Engine, Mode, Refusal, Wait};
use crate::memory::{Buffer, Buffers, Pages};
use crate::{Error, Kind, Result};

/// One write: what the recorder writes.
const WRITE_BYTES: usize = 1 << 20;
/// Writes in flight.
const DEPTH: u32 = 16;
/// Less room than this is none.
const ROOM_BYTES_MIN: u64 = 8 << 20;

/// When a trial ends; the first that comes true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrialLimit {
    /// After this many bytes.
    pub bytes: u64,
    /// When no more writes are begun.
    pub time: Duration,
}

/// What a trial found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteTrial {
    /// Bytes written and flushed.
    pub bytes: u64,
    /// Time for that in ns, the flush included.
    pub elapsed_ns: u64,
    /// The longest write in ns: what a pool of chunks has to bridge.
    pub latency_ns_max: u64,
    /// How the file could be opened.
    pub mode: Mode,
    /// Whether io_uring did the work.
    pub is_uring: bool,
    /// The writer in words, with the reason for any fallback.
    pub writer: String,
    /// What the memory was that the disk was given.
    pub pages: Pages,
}

impl WriteTrial {
    /// Writes to a new file in `directory` until the limit is reached, flushes and measures.
    ///
    /// The file loses its name before the first byte is written, so that nothing remains of it
    /// however the program ends. Blocks are reserved before the time starts, as a recorder does.
    ///
    /// # Errors
    /// [`Kind::NoSpace`] when less than 8 MiB are free; [`Kind::Permission`] and others when no
    /// file can be made; what the writes report.
    pub fn run(directory: impl AsRef<Path>, limit: TrialLimit) -> Result<Self> {
        let file = unnamed_file(directory.as_ref())?;
        let bytes = reserve(&file, limit.bytes)?;
        let buffers = Buffers::new(DEPTH, WRITE_BYTES)?;
        let pages = buffers.pages();
        let region = Arc::clone(buffers.region());
        let mut buffers = buffers.split();
        for (seed, buffer) in buffers.iter_mut().enumerate() {
            buffer.fill_incompressible(seed as u64);
        }
        let mut writer = DirectWriter::new(Engine::Auto, DEPTH as usize, &[region])?;
        let begun = Instant::now();
        let (written_bytes, latency_ns_max) =
            write(&mut writer, &file, &mut buffers, bytes, begun + limit.time)?;
        file.sync_data()?;
        let elapsed_ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Ok(Self {
            bytes: written_bytes,
            elapsed_ns,
            latency_ns_max,
            mode: file.mode().clone(),
            is_uring: writer.engine() == Engine::IoUring,
            writer: writer.description().to_owned(),
            pages,
        })
    }

    /// Bytes in a second.
    pub fn bytes_per_s(&self) -> f64 {
        self.bytes as f64 / (self.elapsed_ns.max(1) as f64 / 1e9)
    }
}

/// A file of the directory that no longer has a name.
fn unnamed_file(directory: &Path) -> Result<Arc<DirectFile>> {
    let path: PathBuf = directory.join(format!(".linerate-trial-{}", std::process::id()));
    let file = DirectFile::create(&path)?;
    std::fs::remove_file(&path)
        .map_err(|source| Error::new(format!("removing {}", path.display()), source))?;
    Ok(Arc::new(file))
}

/// Reserves `bytes`, or half of that, and so on; returns how many.
fn reserve(file: &DirectFile, bytes: u64) -> Result<u64> {
    let mut bytes = bytes.max(ROOM_BYTES_MIN).next_multiple_of(WRITE_BYTES as u64);
    loop {
        match file.preallocate(bytes) {
            Err(error) if error.kind() == Kind::NoSpace && bytes / 2 >= ROOM_BYTES_MIN => {
                bytes = (bytes / 2).next_multiple_of(WRITE_BYTES as u64);
            }
            result => return result.map(|_| bytes),
        }
    }
}

/// Keeps the writer busy until `bytes` are written or `end` has come; returns how many bytes were
/// written, and the longest latency in ns.
fn write(
    writer: &mut DirectWriter,
    file: &Arc<DirectFile>,
    buffers: &mut Vec<Buffer>,
    bytes: u64,
    end: Instant,
) -> Result<(u64, u64)> {
    let mut completions: Vec<Completion> = Vec::with_capacity(DEPTH as usize);
    let (mut offset, mut written_bytes, mut latency_ns_max) = (0, 0, 0);
    loop {
        while offset < bytes && Instant::now() < end {
            let Some(buffer) = buffers.pop() else { break };
            match writer.submit(file, offset, buffer, WRITE_BYTES, offset) {
                Ok(()) => offset += WRITE_BYTES as u64,
                Err(refused) => match refused.reason {
                    Refusal::QueueFull => {
                        buffers.push(refused.buffer);
                        break;
                    }
                    Refusal::Failed(error) => return Err(error),
                },
            }
        }
        if writer.in_flight() == 0 {
            return Ok((written_bytes, latency_ns_max));
        }
        writer.complete(Wait::One, &mut completions)?;
        for completion in completions.drain(..) {
            written_bytes += completion.result? as u64;
            latency_ns_max = latency_ns_max.max(completion.latency_ns);
            buffers.push(completion.buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_writes_what_it_says_and_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let limit = TrialLimit { bytes: 9 << 20, time: Duration::from_secs(60) };
        let trial = WriteTrial::run(directory.path(), limit).unwrap();
        assert_eq!(trial.bytes, 9 << 20);
        assert!(trial.bytes_per_s() > 0.0 && trial.latency_ns_max <= trial.elapsed_ns);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        let no_time = TrialLimit { time: Duration::ZERO, ..limit };
        assert_eq!(WriteTrial::run(directory.path(), no_time).unwrap().bytes, 0);
        assert!(WriteTrial::run(directory.path().join("none"), limit).is_err());
    }
}
