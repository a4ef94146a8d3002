//! Writes whole pcap files, or streams into a pipe.

use std::io::Write;

use super::header::Header;
use crate::error::{Result, StoreError};
use crate::output::Output;
use crate::pcapng::writer::too_long;
use crate::record::{Interface, LinkType, MAXIMUM_CAPTURED_LENGTH, Record};

/// Unit of the times in a pcap file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PcapPrecision {
    /// Microseconds, which every reader knows.
    Microseconds,
    /// Nanoseconds, which all but very old readers know.
    #[default]
    Nanoseconds,
}

/// A pcap file being written. Output is buffered: [`PcapWriter::flush`] for a live reader,
/// [`PcapWriter::finish`] at the end (dropping it flushes too, but hides errors).
pub struct PcapWriter<W: Write> {
    output: Output<W>,
    precision: PcapPrecision,
}

impl<W: Write> PcapWriter<W> {
    /// Begins a file with its header.
    pub fn new(
        sink: W,
        link_type: LinkType,
        snap_length: u32,
        precision: PcapPrecision,
    ) -> Result<Self> {
        Self::with_interface(sink, &Interface::new(link_type, snap_length), precision)
    }

    /// Begins a file with what its header can hold of an interface: link type, snap length, FCS
    /// length.
    pub fn with_interface(
        sink: W,
        interface: &Interface,
        precision: PcapPrecision,
    ) -> Result<Self> {
        let mut output = Output::new(sink, "a pcap capture");
        let nanoseconds = precision == PcapPrecision::Nanoseconds;
        output.append_bytes(&Header::encode(interface, nanoseconds))?;
        Ok(Self { output, precision })
    }

    /// Writes a packet; its interface is ignored, so only packets of one link type belong into a
    /// file. Errors: more captured bytes than readers accept, a time after 2106.
    #[inline]
    pub fn write_record(&mut self, record: &Record<'_>) -> Result<()> {
        let seconds = u32::try_from(record.time_ns / 1_000_000_000);
        let (Ok(seconds), true) = (seconds, record.data.len() <= MAXIMUM_CAPTURED_LENGTH as usize)
        else {
            return Err(unwritable(record));
        };
        let fraction_ns = (record.time_ns % 1_000_000_000) as u32;
        let fraction = match self.precision {
            PcapPrecision::Microseconds => fraction_ns / 1000,
            PcapPrecision::Nanoseconds => fraction_ns,
        };
        self.output.append_packet(|room| {
            let room = room.get_mut(..16 + record.data.len())?;
            let (head, body) = room.split_first_chunk_mut::<16>()?;
            head[0..4].copy_from_slice(&seconds.to_le_bytes());
            head[4..8].copy_from_slice(&fraction.to_le_bytes());
            head[8..12].copy_from_slice(&(record.data.len() as u32).to_le_bytes());
            head[12..16].copy_from_slice(&record.original_length.to_le_bytes());
            body.copy_from_slice(record.data);
            Some(16 + record.data.len())
        })
    }

    /// Packets written so far; after a failure those that the sink has whole.
    pub fn packets(&self) -> u64 {
        self.output.packets()
    }

    /// Bytes that the sink has taken so far.
    pub(crate) fn taken_bytes(&self) -> u64 {
        self.output.taken_bytes()
    }

    /// Gives up what the sink has not taken. Returns how many packets are not whole in it.
    pub(crate) fn forget(&mut self) -> u64 {
        self.output.forget()
    }

    /// Hands everything on to the sink and flushes it.
    pub fn flush(&mut self) -> Result<()> {
        self.output.flush()
    }

    /// Flushes and gives the sink back.
    pub fn finish(self) -> Result<W> {
        self.output.finish()
    }
}

#[cold]
fn unwritable(record: &Record<'_>) -> StoreError {
    if record.data.len() > MAXIMUM_CAPTURED_LENGTH as usize {
        return too_long(record);
    }
    let what = format!("the time {} ns into pcap, which ends in 2106; use pcapng", record.time_ns);
    StoreError::Unwritable { what }
}
