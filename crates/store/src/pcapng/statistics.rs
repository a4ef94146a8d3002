//! The Interface Statistics Block (draft section 4.6).

use super::block::{self, BlockBuilder, ByteOrder, Malformed};
use super::options::{CustomOption, Options, RawOption};
use crate::error::{Result, StoreError};
use crate::record::{InterfaceStatistics, TimeScale};

/// `isb_starttime`.
pub const START_TIME: u16 = 2;
/// `isb_endtime`.
pub const END_TIME: u16 = 3;
/// `isb_ifrecv`.
pub const RECEIVED: u16 = 4;
/// `isb_ifdrop`.
pub const INTERFACE_DROPPED: u16 = 5;
/// `isb_filteraccept`.
pub const FILTER_ACCEPTED: u16 = 6;
/// `isb_osdrop`.
pub const SYSTEM_DROPPED: u16 = 7;
/// `isb_usrdeliv`.
pub const DELIVERED: u16 = 8;

/// Where the options of the block begin, in bytes.
pub const OPTIONS_AT: usize = 20;

/// Appends an Interface Statistics Block; returns its length in bytes.
///
/// `interface` counts within the section, `scale` is that interface's; the counters' own interface
/// index is not looked at. Custom options follow the counters. Errors: a time that the scale cannot
/// express, custom data over 65,531 bytes.
pub fn encode_statistics(
    into: &mut Vec<u8>,
    interface: u32,
    scale: TimeScale,
    statistics: &InterfaceStatistics,
    custom: &[CustomOption<'_>],
) -> Result<usize> {
    let mut builder = BlockBuilder::begin(into, block::INTERFACE_STATISTICS);
    builder.field(&interface.to_le_bytes()).field(&time(scale, statistics.time_ns)?);
    let times = [(START_TIME, statistics.start_time_ns), (END_TIME, statistics.end_time_ns)];
    for (code, time_ns) in times {
        if let Some(time_ns) = time_ns {
            builder.option(code, &time(scale, time_ns)?)?;
        }
    }
    let counters = [
        (RECEIVED, statistics.received_packets),
        (INTERFACE_DROPPED, statistics.interface_dropped_packets),
        (FILTER_ACCEPTED, statistics.filter_accepted_packets),
        (SYSTEM_DROPPED, statistics.system_dropped_packets),
        (DELIVERED, statistics.delivered_packets),
    ];
    for (code, counter) in counters {
        if let Some(counter) = counter {
            builder.option(code, &counter.to_le_bytes())?;
        }
    }
    for option in custom {
        builder.custom(option)?;
    }
    builder.finish()
}

/// A time as the format wants it: the upper half before the lower.
fn time(scale: TimeScale, time_ns: u64) -> Result<[u8; 8]> {
    let Some(ticks) = scale.to_ticks(time_ns) else {
        let what =
            format!("the time {time_ns} ns in the interface's unit and offset; use nanoseconds");
        return Err(StoreError::Unwritable { what });
    };
    Ok(ticks.rotate_left(32).to_le_bytes())
}

/// The interface, counted within the section, that a whole Interface Statistics Block is about.
pub fn statistics_interface(block: &[u8], order: ByteOrder) -> Result<u32, Malformed> {
    match order.u32_at(block, 8) {
        Some(interface) if block.len() >= OPTIONS_AT + 4 => Ok(interface),
        _ => Err(Malformed::new(format!("interface statistics of {} bytes", block.len()))),
    }
}

/// Reads a whole Interface Statistics Block, given the interface's time scale. The result's
/// interface counts within the section; the flag says that options were found that do not fit in
/// the block or have the wrong length. Errors: a block too short for its fields.
pub fn parse_statistics(
    block: &[u8],
    order: ByteOrder,
    scale: TimeScale,
) -> Result<(InterfaceStatistics, bool), Malformed> {
    let interface = statistics_interface(block, order)?;
    let halves = [order.u32_at(block, 12), order.u32_at(block, 16)].map(Option::unwrap_or_default);
    let mut statistics = InterfaceStatistics {
        interface,
        time_ns: scale.to_ns(u64::from(halves[0]) << 32 | u64::from(halves[1])),
        ..Default::default()
    };
    let mut malformed = false;
    for option in Options::of_block(block, OPTIONS_AT, order) {
        match option {
            Ok(option) => {
                malformed |= take_option(&mut statistics, &option, order, scale).is_none();
            }
            Err(_) => malformed = true,
        }
    }
    Ok((statistics, malformed))
}

/// None if the option's value has not the length that its code asks for.
fn take_option(
    statistics: &mut InterfaceStatistics,
    option: &RawOption<'_>,
    order: ByteOrder,
    scale: TimeScale,
) -> Option<()> {
    let place = match option.code {
        START_TIME => &mut statistics.start_time_ns,
        END_TIME => &mut statistics.end_time_ns,
        RECEIVED => &mut statistics.received_packets,
        INTERFACE_DROPPED => &mut statistics.interface_dropped_packets,
        FILTER_ACCEPTED => &mut statistics.filter_accepted_packets,
        SYSTEM_DROPPED => &mut statistics.system_dropped_packets,
        DELIVERED => &mut statistics.delivered_packets,
        _ => return Some(()),
    };
    *place = Some(match option.code {
        START_TIME | END_TIME => {
            let (high, low) = option.value.split_first_chunk()?;
            let ticks =
                u64::from(order.u32(*high)) << 32 | u64::from(order.u32(low.try_into().ok()?));
            scale.to_ns(ticks)
        }
        _ => option.u64(order)?,
    });
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pcapng::options;

    #[test]
    fn counters_times_and_custom_options_survive_a_round_trip() {
        let statistics = InterfaceStatistics {
            interface: 3,
            time_ns: 1_700_000_000_000_000_001,
            start_time_ns: Some(1_600_000_000_000_000_002),
            end_time_ns: Some(1_700_000_000_000_000_000),
            received_packets: Some(u64::MAX),
            interface_dropped_packets: Some(0),
            filter_accepted_packets: None,
            system_dropped_packets: Some(1 << 40),
            delivered_packets: Some(7),
        };
        let data = [9; 65_531];
        let custom =
            CustomOption { code: options::CUSTOM_BYTES_NOT_COPIED, enterprise: 77, data: &data };
        let mut block = Vec::new();
        let scale = TimeScale::NANOSECONDS;
        let length = encode_statistics(&mut block, 3, scale, &statistics, &[custom]).unwrap();
        assert_eq!(length, block.len());
        let back = parse_statistics(&block, ByteOrder::Little, scale).unwrap();
        assert_eq!(back, (statistics, false));
        let last = Options::of_block(&block, OPTIONS_AT, ByteOrder::Little).last().unwrap();
        assert_eq!(last.unwrap().custom(ByteOrder::Little), Some(custom));
    }
}
