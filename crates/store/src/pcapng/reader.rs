//! Reads pcapng streams block by block; used through [`crate::capture::CaptureReader`].

use super::block::{self, BlockHead, ByteOrder, Malformed};
use super::interface::parse_interface;
use super::packet::{PacketHead, enhanced_packet_length};
use super::section::{parse_section, version};
use super::statistics::{parse_statistics, statistics_interface};
use crate::error::Result;
use crate::input::Input;
use crate::record::{
    Interface, InterfaceStatistics, MAXIMUM_CAPTURED_LENGTH, PacketFlags, Record, Section,
    TimeScale,
};
use crate::warning::WarningKind;

/// More interfaces than any real file has, so that their descriptions cannot fill the memory.
const MAXIMUM_INTERFACES: usize = 1 << 20;

/// What is needed of an interface for each of its packets.
struct InterfaceState {
    scale: TimeScale,
    snap_length: u32,
    /// Index into the reader's statistics, once there are any.
    statistics: Option<usize>,
}

/// All that there is to say of a packet whose block has no options.
struct BarePacket {
    time_ns: u64,
    interface: u32,
    captured_length: u32,
    original_length: u32,
}

/// The state between two blocks.
pub(crate) struct PcapngReader {
    pub(crate) input: Input,
    order: ByteOrder,
    finished: bool,
    /// Index of the current section's first interface.
    first_interface: usize,
    states: Vec<InterfaceState>,
    pub(crate) interfaces: Vec<Interface>,
    pub(crate) sections: Vec<Section>,
    pub(crate) statistics: Vec<InterfaceStatistics>,
}

impl PcapngReader {
    /// Reads the first section header, with whose block type the input begins.
    pub(crate) fn new(input: Input) -> Result<Self> {
        let mut reader = Self {
            input,
            order: ByteOrder::Little,
            finished: false,
            first_interface: 0,
            states: Vec::new(),
            interfaces: Vec::new(),
            sections: Vec::new(),
            statistics: Vec::new(),
        };
        if let Some(head) = reader.next_block()? {
            reader.take_description(&head)?;
        }
        Ok(reader)
    }

    #[inline]
    pub(crate) fn next_record(&mut self) -> Result<Option<Record<'_>>> {
        if self.finished {
            return Ok(None);
        }
        if let Some(bare) = self.next_bare_packet() {
            let padded = bare.captured_length.next_multiple_of(4) as usize;
            return Ok(Some(Record {
                time_ns: bare.time_ns,
                data: self.input.consumed(padded + 4, bare.captured_length as usize),
                original_length: bare.original_length,
                interface: bare.interface,
                flags: PacketFlags(0),
                queue: None,
                drop_count: None,
            }));
        }
        self.next_record_of_any_kind()
    }

    /// The common case without detours: consumes an Enhanced Packet Block that has no options and
    /// lies whole in the buffer. None leaves everything, good or bad, to the general path.
    #[inline]
    fn next_bare_packet(&mut self) -> Option<BarePacket> {
        let order = self.order;
        let available = self.input.available();
        let head = available.first_chunk::<28>()?;
        let word = |at: usize| order.u32([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (length, captured_length) = (word(4), word(20));
        let bare = word(0) == block::ENHANCED_PACKET
            && captured_length <= MAXIMUM_CAPTURED_LENGTH
            && length as usize == enhanced_packet_length(captured_length as usize);
        let trailer = available.get(..length as usize)?.last_chunk::<4>()?;
        if !bare || *trailer != head[4..8] {
            return None;
        }
        let index = self.first_interface + word(8) as usize;
        let ticks = u64::from(word(12)) << 32 | u64::from(word(16));
        let packet = BarePacket {
            time_ns: self.states.get(index)?.scale.to_ns(ticks),
            interface: index as u32,
            captured_length,
            original_length: word(24),
        };
        self.input.consume(length as usize);
        self.input.packets += 1;
        Some(packet)
    }

    #[inline(never)]
    fn next_record_of_any_kind(&mut self) -> Result<Option<Record<'_>>> {
        let (time_ns, interface, packet, block_length) = match self.next_packet() {
            Ok(Some(found)) => found,
            Err(error) if error.is_would_block() => return Err(error),
            end => {
                self.finished = true;
                return end.map(|_| None);
            }
        };
        let back = block_length - packet.data_at;
        Ok(Some(Record {
            time_ns,
            data: self.input.consumed(back, packet.captured_length as usize),
            original_length: packet.original_length,
            interface,
            flags: packet.flags,
            queue: packet.queue,
            drop_count: packet.drop_count,
        }))
    }

    /// Steps to the next packet: its time, global interface, description, and block length.
    fn next_packet(&mut self) -> Result<Option<(u64, u32, PacketHead, usize)>> {
        loop {
            let offset = self.input.offset();
            let Some(head) = self.next_block()? else { return Ok(None) };
            match head.block_type {
                block::ENHANCED_PACKET | block::SIMPLE_PACKET | block::PACKET => {
                    let block = self.input.consumed(head.length, head.length);
                    let located = PacketHead::parse(&head, block)
                        .and_then(|packet| self.place(packet, head.block_type));
                    let (time_ns, interface, packet) =
                        located.map_err(|error| self.input.corrupt(offset, error.what))?;
                    if packet.malformed_options {
                        self.input.warnings.add(WarningKind::MalformedOptions, offset, 1);
                    }
                    self.input.packets += 1;
                    return Ok(Some((time_ns, interface, packet, head.length)));
                }
                _ => self.take_description(&head)?,
            }
        }
    }

    /// Consumes the next block, which is then the last thing consumed; None at the end.
    fn next_block(&mut self) -> Result<Option<BlockHead>> {
        let offset = self.input.offset();
        if self.input.is_in_zeros() {
            return self.end_in_zeros();
        }
        self.input.ensure(block::MINIMUM_LENGTH)?;
        let Some(first) = self.input.available().first_chunk::<{ block::MINIMUM_LENGTH }>() else {
            return self.end_of_blocks(None);
        };
        let head = match BlockHead::parse(first, self.order) {
            Ok(head) => head,
            Err(error) => return self.end_of_blocks(Some(error)),
        };
        if self.input.ensure(head.length)? < head.length {
            return Err(self.input.truncated(offset));
        }
        let block = self.input.available().get(..head.length).unwrap_or_default();
        head.check_trailer(block).map_err(|error| self.input.corrupt(offset, error.what))?;
        self.input.consume(head.length);
        Ok(Some(head))
    }

    /// Tells apart the end of the file, a tail or a hole of zeros, a cut, and nonsense.
    #[cold]
    fn end_of_blocks(&mut self, error: Option<Malformed>) -> Result<Option<BlockHead>> {
        let offset = self.input.offset();
        let available = self.input.available();
        if available.is_empty() {
            return Ok(None);
        }
        // No block has type 0, and one that is cut within its type is no tail of zeros: those are
        // whole words.
        let zeros = available.iter().take(8).all(|byte| *byte == 0);
        if zeros && available.len() >= 4 {
            return self.end_in_zeros();
        }
        Err(match error {
            Some(error) => self.input.corrupt(offset, error.what),
            None => self.input.truncated(offset),
        })
    }

    /// Passes over zeros, which are a tail or a hole.
    #[cold]
    fn end_in_zeros(&mut self) -> Result<Option<BlockHead>> {
        let (run, to_the_end) = self.input.consume_zeros(4)?;
        if to_the_end {
            return Ok(None);
        }
        let length = run.units * 4;
        let what = format!("{length} zero bytes in place of a block, with more after them");
        Err(self.input.corrupt(run.begin, what))
    }

    /// Gives a packet its time and the global index of its interface.
    fn place(
        &self,
        mut packet: PacketHead,
        block_type: u32,
    ) -> Result<(u64, u32, PacketHead), Malformed> {
        let index = self.first_interface + packet.interface as usize;
        let Some(state) = self.states.get(index) else {
            return Err(self.unknown_interface("a packet", packet.interface));
        };
        if block_type == block::SIMPLE_PACKET {
            let limit = if state.snap_length == 0 { u32::MAX } else { state.snap_length };
            let captured_length = packet.original_length.min(limit);
            if captured_length > packet.captured_length {
                return Err(Malformed::new(format!(
                    "captured length {captured_length} in a block with room for {} bytes",
                    packet.captured_length
                )));
            }
            packet.captured_length = captured_length;
        }
        let time_ns = packet.ticks.map_or(0, |ticks| state.scale.to_ns(ticks));
        Ok((time_ns, index as u32, packet))
    }

    #[cold]
    fn unknown_interface(&self, thing: &str, interface: u32) -> Malformed {
        let count = self.states.len() - self.first_interface;
        Malformed::new(format!("{thing} of interface {interface}; the section has {count} so far"))
    }

    /// Takes in a block that is no packet and was consumed last. Blocks of other types, known or
    /// not, are passed over.
    #[cold]
    fn take_description(&mut self, head: &BlockHead) -> Result<()> {
        let offset = self.input.offset() - head.length as u64;
        let block = self.input.consumed(head.length, head.length);
        let malformed = match head.block_type {
            block::SECTION_HEADER => match version(block, head.order) {
                Ok((1, 0 | 2)) => {
                    let (section, malformed) = parse_section(block, head.order);
                    self.order = head.order;
                    self.sections.push(section);
                    self.first_interface = self.states.len();
                    Ok(malformed)
                }
                Ok((major, minor)) => {
                    let what = format!("pcapng version {major}.{minor}");
                    return Err(self.input.unsupported(offset, what));
                }
                Err(error) => Err(error),
            },
            block::INTERFACE_DESCRIPTION => parse_interface(block, head.order)
                .and_then(|(interface, malformed)| self.take_interface(interface, malformed)),
            block::INTERFACE_STATISTICS => statistics_interface(block, head.order)
                .and_then(|interface| self.take_statistics(interface, head)),
            _ => Ok(false),
        };
        if malformed.map_err(|error| self.input.corrupt(offset, error.what))? {
            self.input.warnings.add(WarningKind::MalformedOptions, offset, 1);
        }
        Ok(())
    }

    fn take_interface(&mut self, interface: Interface, malformed: bool) -> Result<bool, Malformed> {
        if self.interfaces.len() == MAXIMUM_INTERFACES {
            return Err(Malformed::new(format!("more than {MAXIMUM_INTERFACES} interfaces")));
        }
        self.states.push(InterfaceState {
            scale: interface.time_scale(),
            snap_length: interface.snap_length,
            statistics: None,
        });
        self.interfaces.push(interface);
        Ok(malformed)
    }

    /// Takes in the statistics block that was consumed last.
    fn take_statistics(&mut self, interface: u32, head: &BlockHead) -> Result<bool, Malformed> {
        let index = self.first_interface + interface as usize;
        let Some(state) = self.states.get(index) else {
            return Err(self.unknown_interface("statistics", interface));
        };
        let block = self.input.consumed(head.length, head.length);
        let (mut later, malformed) = parse_statistics(block, head.order, state.scale)?;
        later.interface = index as u32;
        match state.statistics.and_then(|place| self.statistics.get_mut(place)) {
            Some(statistics) => statistics.update(&later),
            None => {
                if let Some(state) = self.states.get_mut(index) {
                    state.statistics = Some(self.statistics.len());
                }
                self.statistics.push(later);
            }
        }
        Ok(malformed)
    }
}
