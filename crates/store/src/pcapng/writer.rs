//! Writes whole pcapng files, or streams into a pipe.

use std::io::Write;

use super::interface::encode_interface;
use super::options::CustomOption;
use super::packet::encode_record;
use super::section::encode_section;
use super::statistics::encode_statistics;
use crate::error::{Result, StoreError};
use crate::output::Output;
use crate::record::{
    Interface, InterfaceStatistics, MAXIMUM_CAPTURED_LENGTH, Record, Section, TimeScale,
};

/// A pcapng file of one section being written. Output is buffered: [`PcapngWriter::flush`] for a
/// live reader, [`PcapngWriter::finish`] at the end (dropping it flushes too, but hides errors).
///
/// tcpdump reads such a file only if all interfaces have one link type and one snap length.
pub struct PcapngWriter<W: Write> {
    output: Output<W>,
    scales: Vec<TimeScale>,
    scratch: Vec<u8>,
}

impl<W: Write> PcapngWriter<W> {
    /// Begins a file with its section header.
    pub fn new(sink: W, section: &Section) -> Result<Self> {
        let output = Output::new(sink, "a pcapng capture");
        let mut writer = Self { output, scales: Vec::new(), scratch: Vec::new() };
        encode_section(&mut writer.scratch, section)?;
        writer.append_scratch()?;
        Ok(writer)
    }

    /// Describes an interface and returns its index for records and statistics. Interfaces may
    /// follow packets. Errors: a text over 65,535 bytes.
    pub fn add_interface(&mut self, interface: &Interface) -> Result<u32> {
        encode_interface(&mut self.scratch, interface)?;
        self.append_scratch()?;
        let index = self.interface_count();
        self.scales.push(interface.time_scale());
        Ok(index)
    }

    /// How many interfaces were added.
    pub fn interface_count(&self) -> u32 {
        self.scales.len() as u32
    }

    /// Writes a packet. Errors: an interface that was not added, more captured bytes than readers
    /// accept, a time that the interface's unit and offset cannot express.
    #[inline]
    pub fn write_record(&mut self, record: &Record<'_>) -> Result<()> {
        let ticks = match self.scales.get(record.interface as usize) {
            Some(scale) if record.data.len() <= MAXIMUM_CAPTURED_LENGTH as usize => {
                scale.to_ticks(record.time_ns)
            }
            _ => None,
        };
        let Some(ticks) = ticks else { return Err(self.unwritable(record)) };
        self.output.append_packet(|room| encode_record(room, record.interface, ticks, record))
    }

    /// Writes an interface's counters, and custom options with them. Errors: as for records.
    pub fn write_statistics(
        &mut self,
        statistics: &InterfaceStatistics,
        custom: &[CustomOption<'_>],
    ) -> Result<()> {
        let interface = statistics.interface;
        let Some(scale) = self.scales.get(interface as usize) else {
            return Err(self.unknown_interface("statistics", interface));
        };
        encode_statistics(&mut self.scratch, interface, *scale, statistics, custom)?;
        self.append_scratch()
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

    fn append_scratch(&mut self) -> Result<()> {
        let result = self.output.append_bytes(&self.scratch);
        self.scratch.clear();
        result
    }

    #[cold]
    fn unwritable(&self, record: &Record<'_>) -> StoreError {
        if record.data.len() > MAXIMUM_CAPTURED_LENGTH as usize {
            return too_long(record);
        }
        if record.interface >= self.interface_count() {
            return self.unknown_interface("a packet", record.interface);
        }
        let what = format!(
            "the time {} ns in the unit and offset of interface {}; use nanoseconds",
            record.time_ns, record.interface
        );
        StoreError::Unwritable { what }
    }

    #[cold]
    fn unknown_interface(&self, thing: &str, interface: u32) -> StoreError {
        let count = self.interface_count();
        let what = format!("{thing} of interface {interface}; {count} interfaces were added");
        StoreError::Unwritable { what }
    }
}

/// More captured bytes than readers accept.
#[cold]
pub(crate) fn too_long(record: &Record<'_>) -> StoreError {
    let what = format!(
        "a packet of {} captured bytes; readers accept {MAXIMUM_CAPTURED_LENGTH}, so cut it and \
         keep its original length",
        record.data.len()
    );
    StoreError::Unwritable { what }
}
