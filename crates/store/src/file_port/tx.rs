//! The sending end of a `pcap:` port.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use port::null::FRAME_BYTES_MAX;
use port::{Batch, FrameRef, PortDescription, PortError, Reason, TxCounters, TxQueue};

use super::file_error;
use crate::error::{Result, StoreError};
use crate::new_file::{NewFile, Sink};
use crate::pcap::{PcapPrecision, PcapWriter};
use crate::pcapng::PcapngWriter;
use crate::record::{Interface, LinkType, Record, Section};

/// Either format's writer.
enum Writer {
    Pcap(PcapWriter<Sink>),
    Pcapng(PcapngWriter<Sink>),
}

/// The sending queue of a capture file: pcap with ns times if the name ends in `.pcap`, else pcapng.
///
/// Frames are gathered before they are written: one that was taken and does not reach the file,
/// because the disk is full, is counted as lost to `storage`. Nothing is written behind it.
///
/// Into a pipe they go as fast as somebody reads it. What that reader has not taken when the port is
/// abandoned is `ring_full`.
pub struct FileTx {
    file: NewFile,
    /// To wait for a reader.
    sink: Sink,
    writer: Writer,
    has_failed: bool,
    sent: TxCounters,
}

impl FileTx {
    /// Creates the file with its header, replacing one of the same name. A pipe that nobody reads is
    /// waited for as long as `go_on` says so; then it takes nothing.
    pub fn create(path: impl AsRef<Path>, go_on: impl FnMut() -> bool) -> Result<Self> {
        let path = path.as_ref();
        let file = NewFile::create(path, go_on)?;
        let (waited, sink) = (file.sink()?, file.sink()?);
        let mut interface = Interface::new(LinkType::ETHERNET, 0);
        let writer = if path.extension().is_some_and(|extension| extension == "pcap") {
            interface.snap_length = FRAME_BYTES_MAX as u32;
            Writer::Pcap(PcapWriter::with_interface(sink, &interface, PcapPrecision::Nanoseconds)?)
        } else {
            let section = Section {
                application: Some(concat!("linerate ", env!("CARGO_PKG_VERSION")).into()),
                ..Section::default()
            };
            let mut writer = PcapngWriter::new(sink, &section)?;
            writer.add_interface(&interface)?;
            Writer::Pcapng(writer)
        };
        let sent = TxCounters::default();
        let mut tx = Self { file, sink: waited, writer, has_failed: false, sent };
        // A disk without room for the header is told now; and a file that is cut later keeps it.
        match tx.write_out() {
            Err(failure) if !failure.is_would_block() => Err(tx.file.settle(failure)),
            _ => Ok(tx),
        }
    }

    fn write(&mut self, frame: FrameRef<'_>, now_ns: u64) -> Result<()> {
        let time_ns = if frame.meta.time_ns == 0 { now_ns } else { frame.meta.time_ns };
        let mut record = Record::new(time_ns, frame.data);
        record.original_length = frame.meta.wire_length;
        match &mut self.writer {
            Writer::Pcap(writer) => writer.write_record(&record),
            Writer::Pcapng(writer) => writer.write_record(&record),
        }
    }

    fn write_out(&mut self) -> Result<()> {
        match &mut self.writer {
            Writer::Pcap(writer) => writer.flush(),
            Writer::Pcapng(writer) => writer.flush(),
        }
    }

    /// What was taken and is not in the file is lost.
    fn fail(&mut self, failure: StoreError) -> PortError {
        let failure = self.file.settle(failure);
        if let StoreError::Incomplete { packets, .. } = &failure {
            self.has_failed = true;
            self.sent.dropped.add(Reason::Storage, self.sent.accepted_packets - packets);
        }
        file_error(self.spec(), failure)
    }

    fn spec(&self) -> String {
        format!("pcap:{}", self.file.name())
    }
}

impl TxQueue for FileTx {
    fn transmit(&mut self, batch: &mut Batch) -> port::Result<usize> {
        batch.check_lengths(FRAME_BYTES_MAX, |_| FRAME_BYTES_MAX, || self.describe())?;
        if self.has_failed {
            let what = "to it any more: an earlier write failed".into();
            return Err(file_error(self.spec(), StoreError::Unwritable { what }));
        }
        // Frames without a time are made here and now; one reading serves the batch.
        let now_ns = now_ns();
        let mut taken = 0;
        let mut written = Ok(());
        for frame in batch.frames() {
            written = self.write(frame, now_ns);
            if written.is_err() {
                break;
            }
            taken += 1;
            self.sent.accepted_packets += 1;
            self.sent.accepted_bytes += frame.data.len() as u64;
        }
        batch.drop_front(taken);
        match written {
            Err(failure) if failure.is_would_block() => self.sent.blocked_times += 1,
            Err(failure) => return Err(self.fail(failure)),
            Ok(()) => {}
        }
        Ok(taken)
    }

    fn takes(&self, frame: &[u8]) -> bool {
        frame.len() <= FRAME_BYTES_MAX
    }

    fn wait(&mut self, timeout: Duration) -> port::Result<()> {
        self.sink.wait(timeout).map_err(|source| {
            let what = self.file.name().to_owned();
            file_error(self.spec(), StoreError::Write { what, source })
        })
    }

    fn flush(&mut self, timeout: Duration) -> port::Result<bool> {
        let start = Instant::now();
        loop {
            match self.write_out() {
                Ok(()) => return Ok(true),
                Err(failure) if !failure.is_would_block() => return Err(self.fail(failure)),
                // A header that nobody reads is no frame.
                Err(_) if self.sent.accepted_packets == 0 => return Ok(true),
                Err(_) => {}
            }
            let left = timeout.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            self.wait(left)?;
        }
    }

    fn taken_bytes(&self) -> Option<u64> {
        (!self.file.is_file()).then(|| match &self.writer {
            Writer::Pcap(writer) => writer.taken_bytes(),
            Writer::Pcapng(writer) => writer.taken_bytes(),
        })
    }

    fn abandon(&mut self) {
        let lost = match &mut self.writer {
            Writer::Pcap(writer) => writer.forget(),
            Writer::Pcapng(writer) => writer.forget(),
        };
        self.has_failed = true;
        self.sent.dropped.add(Reason::RingFull, lost);
    }

    fn counters(&mut self) -> port::Result<TxCounters> {
        Ok(self.sent)
    }

    fn describe(&self) -> PortDescription {
        PortDescription {
            spec: self.spec(),
            mechanism: match (&self.writer, self.file.is_file()) {
                (Writer::Pcap(_), true) => "pcap file, nanosecond times".into(),
                (Writer::Pcapng(_), true) => "pcapng file".into(),
                (Writer::Pcap(_), false) => "pcap into a pipe, nanosecond times".into(),
                (Writer::Pcapng(_), false) => "pcapng into a pipe".into(),
            },
            frame_bytes_max: FRAME_BYTES_MAX,
            longer_frames: None,
            link_type: 1,
            speed_bps: None,
        }
    }
}

fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
