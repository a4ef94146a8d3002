//! Reads pcap streams; used through [`crate::capture::CaptureReader`].

pub(crate) use super::header::{HEADER_LENGTH, Magic};
use super::header::{Header, LengthOrder};
use crate::error::Result;
use crate::input::Input;
use crate::pcapng::ByteOrder;
use crate::record::{Interface, MAXIMUM_CAPTURED_LENGTH, PacketFlags, Record};
use crate::warning::WarningKind;

/// Record headers that are all zero say that a packet of no bytes was seen in 1970. As many bytes
/// of them in a row, with other bytes after them, are taken for a hole instead.
const LONGEST_ZERO_RUN: u64 = 4096;

/// Preallocated files end at a multiple of a disk's sector, in bytes. Less than a record header of
/// zeros is their tail if it ends there, and else the begin of a header that was cut.
const PREALLOCATION_UNIT: u64 = 512;

const NS_PER_SECOND: u64 = 1_000_000_000;

/// The state between two records.
pub(crate) struct PcapReader {
    pub(crate) input: Input,
    pub(crate) interface: [Interface; 1],
    order: ByteOrder,
    length_order: LengthOrder,
    record_header_length: usize,
    /// Nanoseconds in the unit of the times' fractions.
    ns_per_fraction: u64,
    fractions_per_second: u32,
    /// All-zero records that were consumed but not delivered.
    pending_zeros: u64,
    finished: bool,
}

/// A record header's fields, and the same record's place.
struct RecordHead {
    time_ns: u64,
    captured_length: u32,
    original_length: u32,
}

impl PcapReader {
    /// Reads the file's header, with whose magic the input begins.
    pub(crate) fn new(mut input: Input) -> Result<Self> {
        input.ensure(HEADER_LENGTH)?;
        let header = input.available().first_chunk().and_then(Header::parse);
        let Some(header) = header else { return Err(input.truncated(0)) };
        let Some(length_order) = header.length_order() else {
            let (major, minor) = header.version;
            return Err(input.unsupported(4, format!("pcap version {major}.{minor}")));
        };
        if header.has_link_junk() {
            input.warnings.add(WarningKind::LinkFieldJunk { field: header.link_field }, 20, 1);
        }
        input.consume(HEADER_LENGTH);
        let exponent = u32::from(header.magic.time_resolution.exponent());
        Ok(Self {
            input,
            interface: [header.interface()],
            order: header.magic.order,
            length_order,
            record_header_length: header.magic.record_header_length,
            ns_per_fraction: 10_u64.pow(9 - exponent),
            fractions_per_second: 10_u32.pow(exponent),
            pending_zeros: 0,
            finished: false,
        })
    }

    #[inline]
    pub(crate) fn next_record(&mut self) -> Result<Option<Record<'_>>> {
        let head = match self.next_head() {
            Ok(Some(head)) => head,
            Err(error) if error.is_would_block() => return Err(error),
            end => {
                self.finished = true;
                return end.map(|_| None);
            }
        };
        let length = head.captured_length as usize;
        Ok(Some(Record {
            time_ns: head.time_ns,
            data: self.input.consumed(length, length),
            original_length: head.original_length,
            interface: 0,
            flags: PacketFlags(0),
            queue: None,
            drop_count: None,
        }))
    }

    /// Consumes the next record, whose bytes are then the last thing consumed.
    #[inline]
    fn next_head(&mut self) -> Result<Option<RecordHead>> {
        if self.finished {
            return Ok(None);
        }
        if self.pending_zeros > 0 {
            return Ok(Some(self.next_zero()));
        }
        if self.input.is_in_zeros() {
            return self.zero_header();
        }
        let offset = self.input.offset();
        let header_length = self.record_header_length;
        let available = self.input.ensure(header_length)?;
        let first = self.input.available().first_chunk::<16>();
        let (Some(first), true) = (first, available >= header_length) else {
            return self.end_of_records();
        };
        if u128::from_ne_bytes(*first) == 0 && self.has_zero_header() {
            return self.zero_header();
        }
        let order = self.order;
        let word = |at: usize| order.u32([first[at], first[at + 1], first[at + 2], first[at + 3]]);
        let (seconds, fraction) = (word(0), word(4));
        let (captured_length, original_length) = match self.length_order {
            LengthOrder::CapturedFirst => (word(8), word(12)),
            LengthOrder::OriginalFirst => (word(12), word(8)),
            LengthOrder::SmallerIsCaptured => (word(8).min(word(12)), word(8).max(word(12))),
        };
        if captured_length > MAXIMUM_CAPTURED_LENGTH {
            let what = format!(
                "captured length {captured_length}; the longest accepted is \
                 {MAXIMUM_CAPTURED_LENGTH}"
            );
            return Err(self.input.corrupt(offset, what));
        }
        let length = header_length + captured_length as usize;
        if self.input.ensure(length)? < length {
            return Err(self.input.truncated(offset));
        }
        self.input.consume(length);
        self.input.packets += 1;
        if fraction >= self.fractions_per_second {
            self.input.warnings.add(WarningKind::TimeFraction, offset, 1);
        }
        let time_ns =
            u64::from(seconds) * NS_PER_SECOND + u64::from(fraction) * self.ns_per_fraction;
        Ok(Some(RecordHead { time_ns, captured_length, original_length }))
    }

    #[cold]
    fn has_zero_header(&self) -> bool {
        self.input.available().iter().take(self.record_header_length).all(|byte| *byte == 0)
    }

    /// The file ends within a record's header: at its begin, in a tail of zeros, or by a cut.
    #[cold]
    fn end_of_records(&mut self) -> Result<Option<RecordHead>> {
        let offset = self.input.offset();
        let available = self.input.available().len() as u64;
        if available == 0 {
            return Ok(None);
        }
        if !(offset + available).is_multiple_of(PREALLOCATION_UNIT) {
            return Err(self.input.truncated(offset));
        }
        match self.input.consume_zeros(self.record_header_length)? {
            (_, true) => Ok(None),
            (_, false) => Err(self.input.truncated(offset)),
        }
    }

    /// A header of zeros: the tail of a file that was preallocated, a hole, or true records.
    #[cold]
    fn zero_header(&mut self) -> Result<Option<RecordHead>> {
        let unit = self.record_header_length;
        let (run, to_the_end) = self.input.consume_zeros(unit)?;
        if to_the_end {
            return Ok(None);
        }
        let length = run.units * unit as u64;
        if length > LONGEST_ZERO_RUN {
            let what = format!("{length} zero bytes in place of records, with more after them");
            return Err(self.input.corrupt(run.begin, what));
        }
        self.pending_zeros = run.units;
        Ok(Some(self.next_zero()))
    }

    fn next_zero(&mut self) -> RecordHead {
        self.pending_zeros -= 1;
        self.input.packets += 1;
        RecordHead { time_ns: 0, captured_length: 0, original_length: 0 }
    }
}
