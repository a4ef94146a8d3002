//! Captures that are not segments, read from front to back.
//!
//! They have no index, so all of their packets are read. They are read up to [`BATCHES_AHEAD`]
//! batches of found packets ahead, and packets that are out of order by less than that are brought
//! into order; packets that come later still are delivered when they come, and counted.

use std::path::{Path, PathBuf};

use super::{FindReport, Interfaces};
use crate::capture::CaptureReader;
use crate::chunk::CHUNK_BYTES;
use crate::error::Result;
use crate::merge::{Batch, Found};
use crate::pcapng::encode_record;
use crate::record::{MAXIMUM_CAPTURED_LENGTH, Record};
use crate::selection::{Selection, Verdict};

/// Batches of 1 MiB that are held of one capture.
const BATCHES_AHEAD: usize = 8;
/// Bytes of the file that are read at a time if little is found in them.
const READ_BYTES: u64 = 4 << 20;
/// The longest block that one packet makes, with all its options.
const BLOCK_BYTES_MAX: usize = MAXIMUM_CAPTURED_LENGTH as usize + 100;

/// A capture file and how far it was read.
pub(super) struct CaptureStream {
    path: PathBuf,
    reader: Option<CaptureReader>,
    /// The reader's interfaces as numbered in the answer.
    interfaces: Vec<u32>,
    next_number: u64,
    is_begun: bool,
    /// Batches that were read and are not finished.
    pub(super) held: usize,
}

impl CaptureStream {
    /// Opens the capture and looks at its first packet, whose time is returned; `None` if it has
    /// none. The file is closed again until packets are due.
    pub(super) fn peek(path: &Path) -> Result<Option<(Self, u64)>> {
        let mut reader = CaptureReader::open(path)?;
        let Some(time_ns) = reader.next_record()?.map(|record| record.time_ns) else {
            return Ok(None);
        };
        let stream = Self {
            path: path.to_path_buf(),
            reader: None,
            interfaces: Vec::new(),
            next_number: 0,
            is_begun: false,
            held: 0,
        };
        Ok(Some((stream, time_ns)))
    }

    /// Whether there may be more in it, and room ahead.
    pub(super) fn wants_more(&self) -> bool {
        self.reader.is_some() && self.held < BATCHES_AHEAD
    }

    /// Reads on, from the beginning the first time. The packets found, at most 1 MiB of them; `None`
    /// if there were none in the few MiB that were read.
    pub(super) fn read(
        &mut self,
        source: u32,
        selection: &Selection,
        interfaces: &mut Interfaces,
        report: &mut FindReport,
    ) -> Result<Option<Batch>> {
        if !self.is_begun {
            self.reader = Some(CaptureReader::open(&self.path)?);
            self.is_begun = true;
        }
        Ok(self.next_batch(source, selection, interfaces, report))
    }

    fn next_batch(
        &mut self,
        source: u32,
        selection: &Selection,
        interfaces: &mut Interfaces,
        report: &mut FindReport,
    ) -> Option<Batch> {
        let reader = self.reader.as_mut()?;
        let end = reader.offset() + READ_BYTES;
        let mut batch = Batch {
            bytes: vec![0; CHUNK_BYTES],
            found: Vec::new(),
            taken: 0,
            source,
            number: self.next_number,
        };
        self.next_number += 1;
        let mut used = 0;
        while batch.bytes.len() - used >= BLOCK_BYTES_MAX && reader.offset() < end {
            let before = reader.offset();
            let read = read_one(
                reader,
                &mut self.interfaces,
                selection,
                interfaces,
                report,
                |record, id| {
                    let room = batch.bytes.get_mut(used..)?;
                    let length = encode_record(room, id, record.time_ns, record)?;
                    batch.found.push(Found { time_ns: record.time_ns, at: used as u32 });
                    used += length;
                    Some(())
                },
            );
            report.bytes_read += reader.offset() - before;
            match read {
                Ok(true) => {}
                Ok(false) => {
                    self.reader = None;
                    break;
                }
                Err(error) => {
                    report.problems.push(error.to_string());
                    self.reader = None;
                    break;
                }
            }
        }
        batch.sort();
        (!batch.found.is_empty()).then_some(batch)
    }
}

/// Reads a packet and hands it to `keep` if it is looked for. `false` at the end.
fn read_one(
    reader: &mut CaptureReader,
    numbers: &mut Vec<u32>,
    selection: &Selection,
    interfaces: &mut Interfaces,
    report: &mut FindReport,
    keep: impl FnOnce(&Record<'_>, u32) -> Option<()>,
) -> Result<bool> {
    let Some(record) = reader.next_record()? else {
        return Ok(false);
    };
    report.packets_read += 1;
    report.packets_examined += 1;
    if !selection.holds_time(record.time_ns) {
        report.packets_outside_window += 1;
        return Ok(true);
    }
    let index = record.interface as usize;
    // The first packet of an interface: the reader can be asked only once the packet is let go.
    let data;
    let record = if index < numbers.len() {
        record
    } else {
        data = record.data.to_vec();
        let fields = Record { data: &[], ..record };
        let described = reader.interfaces().get(numbers.len()..).unwrap_or_default();
        numbers.extend(described.iter().map(|interface| interfaces.number(interface)));
        Record { data: &data, ..fields }
    };
    if let Some(&number) = numbers.get(index) {
        let link_type = interfaces.link_type(number);
        match selection.judge(link_type, record.data, record.original_length) {
            Verdict::Holds => {
                keep(&record, number);
            }
            verdict => report.pass_over(verdict),
        }
    }
    Ok(true)
}
