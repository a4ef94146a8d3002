//! Captures as ports: `pcap:FILE` to read from or write to, and anything that yields records as a
//! receiving queue.
//!
//! Frames come out of a file in the file's order, as fast as they are asked for; whoever wants
//! them at their recorded times puts a schedule around the queue. Out of a pipe and into one they go as
//! its other end gets on, and neither queue waits for that but in `wait`. Limit: one link type per queue,
//! that of the file's first packet; records of another one are counted as filtered, since no
//! interface could take them.

mod tx;

use std::path::Path;
use std::time::Duration;

use port::null::FRAME_BYTES_MAX;
use port::{Batch, FrameMeta, PortDescription, PortError, RxCounters, RxQueue};

pub use tx::FileTx;

use crate::capture::CaptureReader;
use crate::error::{Result, StoreError};
use crate::find::Find;
use crate::pipe_capture::PipeCapture;
use crate::record::{Interface, LinkType, Record};

/// Slots fit an ordinary Ethernet frame at first and grow with the first longer one.
const SLOT_BYTES: usize = 1_536;
/// Longest wait for the beginning of a capture without a look whether to go on.
const LOOK: Duration = Duration::from_millis(20);

/// Something that yields captured packets one by one.
pub trait RecordSource: Send {
    /// The next packet; `None` at the end. An error by which nothing failed
    /// ([`StoreError::is_would_block`]) says that there is none now.
    fn next_record(&mut self) -> Result<Option<Record<'_>>>;

    /// Sleeps until there may be one, at most `timeout`.
    fn wait(&mut self, _timeout: Duration) -> Result<()> {
        Ok(())
    }

    /// The interfaces that records name by index.
    fn interfaces(&self) -> &[Interface];

    /// What this is, for messages.
    fn name(&self) -> String;

    /// How it is read, for people.
    fn mechanism(&self) -> String;
}

impl RecordSource for CaptureReader {
    fn next_record(&mut self) -> Result<Option<Record<'_>>> {
        Self::next_record(self)
    }

    fn interfaces(&self) -> &[Interface] {
        Self::interfaces(self)
    }

    fn name(&self) -> String {
        format!("pcap:{}", Self::name(self))
    }

    fn mechanism(&self) -> String {
        format!("{} file", self.format())
    }
}

impl RecordSource for PipeCapture {
    fn next_record(&mut self) -> Result<Option<Record<'_>>> {
        Self::next_record(self)
    }

    fn wait(&mut self, timeout: Duration) -> Result<()> {
        Self::wait(self, timeout)
    }

    fn interfaces(&self) -> &[Interface] {
        Self::interfaces(self)
    }

    fn name(&self) -> String {
        format!("pcap:{}", Self::name(self))
    }

    fn mechanism(&self) -> String {
        match self.format() {
            Some(format) => format!("{format} from a pipe"),
            None => "capture from a pipe".into(),
        }
    }
}

impl RecordSource for Find {
    fn next_record(&mut self) -> Result<Option<Record<'_>>> {
        Self::next_record(self)
    }

    fn interfaces(&self) -> &[Interface] {
        Self::interfaces(self)
    }

    fn name(&self) -> String {
        "find".into()
    }

    fn mechanism(&self) -> String {
        "packets of stores and captures, in order of time".into()
    }
}

/// A frame that did not fit into the batch before.
#[derive(Debug)]
struct Pending {
    data: Vec<u8>,
    meta: FrameMeta,
}

/// A receiving queue over a source of records.
pub struct RecordRx<S> {
    source: S,
    link_type: Option<LinkType>,
    pending: Option<Pending>,
    slot_bytes: usize,
    at_end: bool,
    stopped: bool,
    /// The error that ended the source, given out after all frames before it.
    failure: Option<StoreError>,
    counters: RxCounters,
}

/// Opens what is at `path`: a capture file, or a pipe that one comes through. The beginning of the latter,
/// which says of what link type it is, is waited for as long as `go_on` says so.
pub fn open_rx(
    path: impl AsRef<Path>,
    mut go_on: impl FnMut() -> bool,
) -> Result<Box<dyn RxQueue>> {
    let Some(mut capture) = PipeCapture::open(path.as_ref())? else {
        return Ok(Box::new(FileRx::open(path)?));
    };
    while !capture.begin()? && go_on() {
        capture.wait(LOOK)?;
    }
    Ok(Box::new(RecordRx::new(capture)))
}

/// The receiving queue of a capture file.
pub type FileRx = RecordRx<CaptureReader>;

impl FileRx {
    /// Opens a capture file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Ok(Self::new(CaptureReader::open(path)?))
    }
}

impl<S: RecordSource> RecordRx<S> {
    /// Makes a queue of a source.
    pub fn new(source: S) -> Self {
        Self {
            source,
            link_type: None,
            pending: None,
            slot_bytes: SLOT_BYTES,
            at_end: false,
            stopped: false,
            failure: None,
            counters: RxCounters::default(),
        }
    }

    /// Gives out frames of this link type only; others are counted as filtered. Without it, those of
    /// the type of the first frame.
    #[must_use]
    pub fn of_link_type(mut self, link_type: LinkType) -> Self {
        self.link_type = Some(link_type);
        self
    }

    /// The source.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Moves records into `batch` until it is full or the source ends.
    fn fill(&mut self, batch: &mut Batch) {
        while !self.at_end && !batch.is_full() {
            let record = match self.source.next_record() {
                Ok(Some(record)) => record,
                Ok(None) => {
                    self.at_end = true;
                    return;
                }
                Err(failure) if failure.is_would_block() => return,
                Err(failure) => {
                    self.at_end = true;
                    self.failure = Some(failure);
                    return;
                }
            };
            let meta = FrameMeta {
                time_ns: record.time_ns,
                time_source: None,
                checksum_pending: false,
                wire_length: record.original_length,
            };
            let interface = record.interface;
            let pushed = batch.push(record.data, meta);
            let rejected = (!pushed).then(|| record.data.to_vec());
            self.counters.wire_packets += 1;
            let link_type = link_type(&self.source, interface);
            if link_type != *self.link_type.get_or_insert(link_type) {
                self.counters.filtered_packets += 1;
                if pushed {
                    batch.drop_back();
                }
            } else if let Some(data) = rejected {
                self.slot_bytes = self.slot_bytes.max(data.len());
                self.pending = Some(Pending { data, meta });
                return;
            }
        }
    }
}

impl<S: RecordSource> RxQueue for RecordRx<S> {
    fn start(&mut self) -> port::Result<()> {
        Ok(())
    }

    fn receive(&mut self, batch: &mut Batch) -> port::Result<usize> {
        batch.clear();
        if self.stopped {
            return Ok(0);
        }
        batch.reserve(self.slot_bytes);
        if let Some(pending) = self.pending.take() {
            // An empty batch whose slots were just made long enough takes any frame.
            let _ = batch.push(&pending.data, pending.meta);
        }
        self.fill(batch);
        if batch.is_empty()
            && let Some(failure) = self.failure.take()
        {
            return Err(file_error(self.source.name(), failure));
        }
        self.counters.delivered_packets += batch.len() as u64;
        self.counters.delivered_bytes += batch.bytes();
        Ok(batch.len())
    }

    fn wait(&mut self, timeout: Duration) -> port::Result<()> {
        if self.stopped || self.at_end {
            return Ok(());
        }
        self.source.wait(timeout).map_err(|failure| file_error(self.source.name(), failure))
    }

    fn stop(&mut self) -> port::Result<()> {
        self.stopped = true;
        if self.pending.take().is_some() {
            // It was read and will not be given out: as if it had not been read.
            self.counters.wire_packets -= 1;
        }
        Ok(())
    }

    fn is_finished(&mut self) -> port::Result<bool> {
        Ok(self.stopped || (self.at_end && self.pending.is_none() && self.failure.is_none()))
    }

    fn counters(&mut self) -> port::Result<RxCounters> {
        let mut counters = self.counters;
        // A frame on its way from one batch to the next is neither delivered nor lost.
        counters.wire_packets -= u64::from(self.pending.is_some());
        Ok(counters)
    }

    fn describe(&self) -> PortDescription {
        PortDescription {
            spec: self.source.name(),
            mechanism: self.source.mechanism(),
            frame_bytes_max: FRAME_BYTES_MAX,
            longer_frames: None,
            link_type: self.link_type.unwrap_or_else(|| link_type(&self.source, 0)).0,
            speed_bps: None,
        }
    }
}

fn link_type(source: &impl RecordSource, interface: u32) -> LinkType {
    let known = source.interfaces().get(interface as usize);
    known.map_or(LinkType::ETHERNET, |known| known.link_type)
}

fn file_error(port: String, failure: StoreError) -> PortError {
    PortError::File { port, source: Box::new(failure) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use port::TxQueue;
    use port::conformance::{self, Medium};

    struct CaptureFile {
        directory: tempfile::TempDir,
        name: &'static str,
    }

    impl Medium for CaptureFile {
        fn open_tx(&mut self) -> port::Result<Box<dyn TxQueue>> {
            Ok(Box::new(FileTx::create(self.directory.path().join(self.name), || true).unwrap()))
        }
        fn open_rx(&mut self) -> port::Result<Box<dyn RxQueue>> {
            Ok(Box::new(FileRx::open(self.directory.path().join(self.name)).unwrap()))
        }
        fn is_sequential(&self) -> bool {
            true
        }
        fn frame_bytes_max(&self) -> usize {
            FRAME_BYTES_MAX
        }
    }

    #[test]
    fn capture_files_conform() {
        for name in ["frames.pcap", "frames.pcapng"] {
            let make = || CaptureFile { directory: tempfile::tempdir().unwrap(), name };
            conformance::check(make).unwrap();
        }
    }

    #[test]
    fn frames_before_a_cut_come_first_then_the_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cut.pcapng");
        let mut tx = FileTx::create(&path, || true).unwrap();
        let mut batch = Batch::new(60);
        for _ in 0..10 {
            assert!(batch.push(&[1; 60], FrameMeta::local(60)));
        }
        tx.transmit(&mut batch).unwrap();
        tx.flush(Duration::ZERO).unwrap();
        let length = std::fs::metadata(&path).unwrap().len();
        std::fs::File::options().write(true).open(&path).unwrap().set_len(length - 5).unwrap();
        let mut rx = FileRx::open(&path).unwrap();
        assert_eq!(rx.receive(&mut batch).unwrap(), 9);
        assert!(!rx.is_finished().unwrap());
        let error = rx.receive(&mut batch).unwrap_err().to_string();
        assert!(error.contains("cut short") && error.contains("9 packets"), "{error}");
        assert!(rx.is_finished().unwrap());
    }
}
